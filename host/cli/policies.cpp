#include <algorithm>
#include <iostream>

#include <holdfast/host.hpp>
#include <holdfast/policy_config.hpp>

#include "commands.hpp"
#include "json.hpp"
#include "opened_host.hpp"

namespace holdfast::cli {

namespace {

using fields = std::vector<std::pair<std::string, std::string>>;

std::string to_json(const fields& described) {
    json_object object;
    for (const auto& [key, text] : described) object.add_text(key, text);
    return object.text();
}

std::string to_json(const std::vector<policy_in_force>& policies) {
    json_array all;
    for (const policy_in_force& each : policies) {
        json_array warnings;
        for (const std::string& warning : each.warnings) warnings.add(json_text(warning));
        all.add(json_object()
                    .add_text("name", each.name)
                    .add("effective", to_json(describe_policy(each.effective)))
                    .add("declared", to_json(describe_policy(each.declared)))
                    .add("warnings", warnings.text())
                    .text());
    }
    return json_object().add("policies", all.text()).text() + "\n";
}

std::string find(const fields& in, const std::string& key) {
    const auto found = std::ranges::find(in, key, &fields::value_type::first);
    return found == in.end() ? "off" : found->second;
}

std::string to_text(const policy_in_force& policy) {
    std::string text = policy.name + "\n";
    const auto add = [&](std::string key, const std::string& value) {
        key.resize(std::max<std::size_t>(key.size(), 14), ' ');
        text += "  " + key + " " + value + "\n";
    };
    const fields effective = describe_policy(policy.effective);
    const fields declared = describe_policy(policy.declared);
    for (const auto& [key, value] : effective) {
        const std::string before = find(declared, key);
        add(key, before == value ? value : value + "  (declared: " + before + ")");
    }
    for (const auto& [key, value] : declared)
        if (find(effective, key) == "off") add(key, "off  (declared: " + value + ")");
    for (const std::string& warning : policy.warnings) add("warning", warning);
    return text;
}

int list(const arguments& given) {
    const std::string file = configuration_of(given);
    auto host = host::from_file(file);
    if (!host.has_application())
        throw failed(
            {errc::configuration,
             file + ": there is no [application]; policies of a program with a main of its own are not known here",
             std::nullopt});
    host.log_to(std::make_shared<null_logger>()).without_stores();
    host.start();
    const auto policies = host.policies_in_force();
    if (given.has("--json")) {
        std::cout << to_json(policies);
        return 0;
    }
    for (const policy_in_force& each : policies) std::cout << to_text(each);
    if (policies.empty()) std::cout << "no policies\n";
    return 0;
}

} // namespace

command policies_command() {
    return {"policies",
            "",
            "Shows the policies of the configured application, as they are in force.",
            {config_option, json_option},
            &list};
}

} // namespace holdfast::cli
