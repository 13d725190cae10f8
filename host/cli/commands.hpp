#pragma once

#include "arguments.hpp"

namespace holdfast::cli {

command plugins_command();
command policies_command();
command doctor_command();
command run_command();
command verify_command();

} // namespace holdfast::cli
