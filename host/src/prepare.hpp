#pragma once

#include <functional>
#include <string>

#include <holdfast/error.hpp>
#include <holdfast/logger.hpp>
#include <holdfast/runtime.hpp>
#include <holdfast/task.hpp>

namespace holdfast::detail {

inline constexpr duration prepare_patience = std::chrono::seconds{5}; // then it is said that somebody waits
inline constexpr duration prepare_limit = std::chrono::minutes{1};

// Prepares a store or what carries events, on the runtime's time. Errors begin with `title`. After prepare_limit, calls
// `stop_runtime` to make the plugin's call end, waits until it has, and gives errc::timed_out. Not on the runtime's own
// threads.
result<void> prepare(const std::function<task<result<void>>()>& how, runtime& on, logger& log, const std::string& title,
                     const std::function<void()>& stop_runtime);

} // namespace holdfast::detail
