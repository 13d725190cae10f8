#include "jobs_store.hpp"

#include <holdfast/nearest.hpp>

namespace holdfast::cli {

jobs_store::jobs_store(const arguments& given) : opened_host(given) {
    store& kept = opened().store_of(facet::jobs);
    if (!kept.capabilities().shared)
        throw failed({errc::unsupported,
                      "the " + std::string(kept.name()) +
                          " store keeps its jobs inside its own process, where this command cannot see them; it works "
                          "on stores that "
                          "processes share: sqlite, postgres, redis",
                      std::nullopt});
}

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

std::vector<identifier> job_ids_of(const arguments& given) {
    return ids_of(given.operands(), "a job", "holdfast jobs list");
}

} // namespace holdfast::cli
