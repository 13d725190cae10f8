#include "jobs_store.hpp"

#include <charconv>
#include <memory>

#include <holdfast/nearest.hpp>

namespace holdfast::cli {

namespace {

host open(const arguments& given) {
    auto opened = host::from_file(given.value("--config").value_or("holdfast.toml"));
    opened.allow_unknown_policies().without_work();
    opened.log_to(std::make_shared<null_logger>());
    opened.start();
    store& kept = opened.store_of(facet::jobs);
    if (!kept.capabilities().shared)
        throw failed({errc::unsupported,
                      "the " + std::string(kept.name()) +
                          " store keeps its jobs inside its own process, where this command cannot see them",
                      std::nullopt});
    return opened;
}

} // namespace

jobs_store::jobs_store(const arguments& given) : host_(open(given)) {}

job_state state_of(const std::string& text) {
    std::vector<std::string_view> known;
    for (int i = 0; i < job_state_count; ++i) {
        const auto each = static_cast<job_state>(i);
        if (text == to_text(each)) return each;
        known.push_back(to_text(each));
    }
    std::string all;
    for (const std::string_view each : known) all += (all.empty() ? "" : ", ") + std::string(each);
    throw usage_error("there is no state \"" + text + "\"" + did_you_mean(text, known) + "; there are: " + all);
}

job_filter filter_of(const arguments& given) {
    job_filter filter;
    if (const auto state = given.value("--state")) filter.state = state_of(*state);
    filter.queue = given.value("--queue");
    filter.type = given.value("--type");
    return filter;
}

int count_of(const arguments& given, std::string_view option, int otherwise) {
    const auto text = given.value(option);
    if (!text) return otherwise;
    int value = -1;
    const auto read = std::from_chars(text->data(), text->data() + text->size(), value);
    if (read.ec != std::errc() || read.ptr != text->data() + text->size() || value < 0)
        throw usage_error(std::string(option) + " is \"" + *text + "\"; expected a whole number from 0 on");
    return value;
}

std::vector<identifier> ids_of(const std::vector<std::string>& texts) {
    std::vector<identifier> ids;
    for (const std::string& each : texts) {
        const auto id = parse_identifier(each);
        if (!id)
            throw usage_error(
                "\"" + each +
                "\" is not the id of a job; it has 26 letters and digits, as holdfast jobs list shows it");
        ids.push_back(*id);
    }
    return ids;
}

} // namespace holdfast::cli
