#include "policy_overrides.hpp"

#include <algorithm>

#include <holdfast/nearest.hpp>
#include <holdfast/policy_config.hpp>

namespace holdfast::detail {

namespace {

// "breaker.break_for" is in the group "breaker"; "delay" in "".
std::string_view group_of(std::string_view key) {
    const std::size_t dot = key.find('.');
    return dot == key.npos ? std::string_view{} : key.substr(0, dot);
}

std::string_view name_in_group(std::string_view key) {
    return key.substr(key.find('.') + 1);
}

bool is_group(std::string_view name) {
    return std::ranges::any_of(policy_keys(), [&](std::string_view key) { return group_of(key) == name; });
}

// What may stand in a group; in the outermost one, also the names of the groups.
std::vector<std::string_view> names_in(std::string_view group) {
    std::vector<std::string_view> names;
    for (const std::string_view key : policy_keys()) {
        const std::string_view name = group_of(key) == group ? name_in_group(key) : group_of(key);
        if (group.empty() || group_of(key) == group) names.push_back(name);
    }
    return names;
}

std::unexpected<error> unknown_key(const std::string& section, const config_entry& entry) {
    std::string_view group = group_of(entry.key);
    std::string_view name = name_in_group(entry.key);
    if (!group.empty() && !is_group(group)) {
        name = group;
        group = {};
    }
    std::string message = entry.value.where + ": [" + section + (group.empty() ? "" : "." + std::string(group)) +
                          "] has no key \"" + std::string(name) + "\"";
    if (group.empty() && name == "retry") message += "; retry keys stand in [" + section + "] itself";
    else if (group.empty() && is_group(name)) message += "; write [" + section + "." + std::string(name) + "]";
    else message += did_you_mean(name, names_in(group));
    return fail(errc::configuration, std::move(message));
}

bool overrides(const policy_override& changes, std::string_view key) {
    return std::ranges::find(changes.fields, key, &config_entry::key) != changes.fields.end();
}

bool overrides_delays(const policy_override& changes) {
    return overrides(changes, "max_attempts") || overrides(changes, "delay") || overrides(changes, "backoff");
}

// Two ways to say the same thing exclude each other: the one in the configuration stands.
void make_way(policy_options& options, const policy_override& changes) {
    auto& retry = options.retry;
    if (overrides(changes, "intervals")) {
        retry.max_attempts.reset();
        retry.delay.reset();
        retry.backoff.reset();
    } else if (overrides_delays(changes)) {
        retry.intervals = {};
    }
    if (overrides(changes, "breaker.failure_ratio")) options.breaker.consecutive_failures.reset();
    else if (overrides(changes, "breaker.consecutive_failures")) options.breaker.failure_ratio.reset();
}

} // namespace

result<policy_override> read_policy_override(const config_table& table) {
    policy_override read{table.name, table.where, flatten(table)};
    const auto known = policy_keys();
    policy_options scratch;
    for (const config_entry& each : read.fields) {
        if (std::ranges::find(known, each.key) == known.end()) return unknown_key(table.path, each);
        if (auto set = set_policy_field(scratch, each.key, each.value.items); !set)
            return fail(errc::configuration, each.value.where + ": [" + table.path + "] " + set.error().message);
    }
    if (overrides(read, "intervals") && overrides_delays(read))
        return fail(errc::configuration,
                    table.where + ": [" + table.path +
                        "] intervals already says how often and how long: drop max_attempts, delay and backoff");
    return read;
}

result<policy_options> apply_override(const policy_options& declared, const policy_override& changes) {
    policy_options options = declared;
    make_way(options, changes);
    for (const config_entry& each : changes.fields)
        if (auto set = set_policy_field(options, each.key, each.value.items); !set)
            return fail(errc::configuration,
                        each.value.where + ": [policies." + changes.policy + "] " + set.error().message);
    if (auto valid = check_policy(options); !valid)
        return fail(errc::configuration, changes.where + ": " + valid.error().message);
    return options;
}

} // namespace holdfast::detail
