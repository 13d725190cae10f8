// Warnings about policies that are valid but probably not meant.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <holdfast/policy.hpp>

namespace holdfast {

// The longest that one execution can take, waiting for a slot not counted; nothing when nothing limits it.
std::optional<duration> worst_case_duration(const policy_options& options);

// The largest number of calls that one execution can make; nothing when unlimited.
std::optional<long> worst_case_calls(const policy_options& options);

// One sentence per finding.
std::vector<std::string> lint(const policy_options& options);

// For policies around each other, outermost first: also what their attempts and durations multiply to.
std::vector<std::string> lint(std::span<const policy> chain);

} // namespace holdfast
