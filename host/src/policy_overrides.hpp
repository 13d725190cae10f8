#pragma once

#include <holdfast/error.hpp>
#include <holdfast/policy.hpp>

#include "configuration.hpp"

namespace holdfast::detail {

// One [policies.NAME] table; refuses unknown keys and values of the wrong form.
result<policy_override> read_policy_override(const config_table& table);

// The declared policy with the override's fields in place. Where the override takes the other of two forms that exclude
// each other (intervals, say), the declared form gives way. errc::configuration when the whole breaks a rule.
result<policy_options> apply_override(const policy_options& declared, const policy_override& changes);

} // namespace holdfast::detail
