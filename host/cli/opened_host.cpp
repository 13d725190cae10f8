#include "opened_host.hpp"

#include <charconv>
#include <filesystem>
#include <memory>

namespace holdfast::cli {

namespace {

host open(const arguments& given) {
    auto opened = host::from_file(configuration_of(given));
    opened.allow_unknown_policies().without_work();
    opened.log_to(std::make_shared<null_logger>());
    opened.start();
    return opened;
}

} // namespace

std::string configuration_of(const arguments& given) {
    if (auto named = given.value("--config")) return *named;
    if (std::filesystem::exists(default_config)) return std::string(default_config);
    throw failed(
        {errc::configuration,
         "there is no " + std::string(default_config) + " in this folder; name the configuration with --config FILE",
         std::nullopt});
}

opened_host::opened_host(const arguments& given) : host_(open(given)) {}

int count_of(const arguments& given, std::string_view option, int otherwise) {
    const auto text = given.value(option);
    if (!text) return otherwise;
    int value = -1;
    const auto read = std::from_chars(text->data(), text->data() + text->size(), value);
    if (read.ec != std::errc() || read.ptr != text->data() + text->size() || value < 0)
        throw usage_error(std::string(option) + " is \"" + *text + "\"; expected a whole number from 0 on");
    return value;
}

std::vector<identifier> ids_of(const std::vector<std::string>& texts, std::string_view of, std::string_view shown_by) {
    std::vector<identifier> ids;
    for (const std::string& each : texts) {
        const auto id = parse_identifier(each);
        if (!id)
            throw usage_error("\"" + each + "\" is not the id of " + std::string(of) +
                              "; it has 26 letters and digits, as " + std::string(shown_by) + " shows it");
        ids.push_back(*id);
    }
    return ids;
}

} // namespace holdfast::cli
