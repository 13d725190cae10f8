#pragma once

#include <vector>

#include "arguments.hpp"

namespace holdfast::cli {

// redeliver, discard, replay, unsubscribe
std::vector<command> events_change_commands();

} // namespace holdfast::cli
