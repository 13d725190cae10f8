#pragma once

#include <functional>
#include <string>

#include <holdfast/error.hpp>
#include <holdfast/logger.hpp>
#include <holdfast/runtime.hpp>
#include <holdfast/store.hpp>

namespace holdfast::detail {

inline constexpr duration prepare_patience = std::chrono::seconds{5}; // then it is said that somebody waits
inline constexpr duration prepare_limit = std::chrono::minutes{1};

// Prepares a store, on the runtime's time. Errors begin with `title`. After prepare_limit, calls `stop_runtime` to make
// the store's call end, waits until it has, and gives errc::timed_out. Not on the runtime's own threads.
result<void> prepare_store(store& what, runtime& on, logger& log, const std::string& title,
                           const std::function<void()>& stop_runtime);

} // namespace holdfast::detail
