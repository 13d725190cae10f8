#pragma once

#include "arguments.hpp"

namespace holdfast::cli {

command plugins_command();
command policies_command();
command doctor_command();
command rules_command();
command run_command();
command verify_command();
std::vector<command> jobs_commands();
std::vector<command> queues_commands();
std::vector<command> events_commands();
std::vector<command> outbox_commands();

} // namespace holdfast::cli
