#pragma once

#include <vector>

#include "arguments.hpp"

namespace holdfast::cli {

// retry, cancel, discard, purge
std::vector<command> jobs_change_commands();

} // namespace holdfast::cli
