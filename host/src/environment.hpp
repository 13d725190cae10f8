// Values of a configuration that are given by the environment: secrets, and what differs between processes. Pure.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <holdfast/error.hpp>

namespace holdfast::detail {

using environment = std::function<std::optional<std::string>(const std::string& name)>;

// The process' own.
std::optional<std::string> environment_variable(const std::string& name);

// ${NAME} is the variable's value, ${NAME:-text} that or, where it is not set or empty, the text; $${ stands for ${ itself.
// A variable that is not set, and what is neither of these, is an error whose message says what to do.
result<std::string> fill_in(std::string_view text, const environment& from);

} // namespace holdfast::detail
