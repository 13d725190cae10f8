// Policies from and to configuration text.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <holdfast/error.hpp>
#include <holdfast/policy.hpp>

namespace holdfast {

// Sets one field by its key: "max_attempts", "delay", "timeout", "breaker.break_for", … A list is given as several
// values ("intervals"). errc::configuration for an unknown key (with the nearest known one) or a value of the wrong
// form. Does not validate the whole; see check_policy.
result<void> set_policy_field(policy_options& options, std::string_view key, const std::vector<std::string>& values);

// The keys that set_policy_field knows, in the order of the fields.
std::vector<std::string_view> policy_keys();

// validate() as a value.
result<void> check_policy(const policy_options& options);

// Every field that is switched on, as key and text with defaults filled in: what a person wants to see.
std::vector<std::pair<std::string, std::string>> describe_policy(const policy_options& options);

} // namespace holdfast
