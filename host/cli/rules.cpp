// `holdfast rules`: what becomes of errors, in words.
#include <iostream>

#include <holdfast/exception_explain.hpp>
#include <holdfast/host.hpp>

#include "commands.hpp"
#include "json.hpp"
#include "opened_host.hpp"

namespace holdfast::cli {

namespace {

std::string to_json(const std::vector<consumer_rules>& consumers) {
    json_array all;
    for (const consumer_rules& each : consumers) {
        json_array warnings;
        for (const std::string& warning : lint(each.table)) warnings.add(json_text(warning));
        all.add(json_object()
                    .add_text("consumer", each.consumer)
                    .add_text("rules", explain(each.table))
                    .add("warnings", warnings.text())
                    .text());
    }
    return json_object().add("consumers", all.text()).text() + "\n";
}

std::string to_text(const std::vector<consumer_rules>& consumers) {
    std::string text;
    for (const consumer_rules& each : consumers) {
        text += (text.empty() ? "" : "\n") + ("consumer " + each.consumer + "\n") + explain(each.table);
        if (!text.ends_with('\n')) text += "\n";
        for (const std::string& warning : lint(each.table)) text += "warning: " + warning + "\n";
    }
    return text.empty() ? "no consumers\n" : text;
}

int list(const arguments& given) {
    const std::string file = configuration_of(given);
    auto host = host::from_file(file);
    if (!host.has_application())
        throw failed({errc::configuration,
                      file + ": there is no [application]; rules are declared by the program, and only that can tell",
                      std::nullopt});
    host.log_to(std::make_shared<null_logger>()).without_stores().start();
    const auto consumers = host.rules_in_force();
    std::cout << (given.has("--json") ? to_json(consumers) : to_text(consumers));
    return 0;
}

} // namespace

command rules_command() {
    return {"rules",
            "",
            "Explains what becomes of the errors of each consumer of the configured application.",
            {config_option, json_option},
            &list};
}

} // namespace holdfast::cli
