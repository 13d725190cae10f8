// The policies that are measured, and the host that runs them as an application would have it.
#pragma once

#include <holdfast/host.hpp>
#include <holdfast/policies.hpp>
#include <holdfast/policy.hpp>

namespace bench {

using namespace std::chrono_literals;

inline constexpr auto retry_only = holdfast::policy({.name = "retry", .retry = {.max_attempts = 3}});

inline constexpr auto retry_timeout =
    holdfast::policy({.name = "timeout", .retry = {.max_attempts = 3}, .timeout = 1s});

inline constexpr auto timeout_breaker = holdfast::policy({
    .name = "timeout-breaker",
    .retry = {.max_attempts = 3},
    .timeout = 1s,
    .breaker = {.consecutive_failures = 5},
});

inline constexpr auto all_stages = holdfast::policy({
    .name = "all-stages",
    .retry = {.max_attempts = 3},
    .timeout = 1s,
    .total_timeout = 10s,
    .breaker = {.failure_ratio = 0.5},
    .concurrency = {.limit = 1000, .queue = 100},
    .rate = {.permits = 100'000'000, .per = 1s},
    .budget = {.ratio = 0.2, .reserve = 10},
});

inline constexpr auto opened = holdfast::policy({
    .name = "opened",
    .retry = {.max_attempts = 3},
    .timeout = 1s,
    .breaker = {.consecutive_failures = 1, .break_for = 24h},
});

inline constexpr auto contended = holdfast::policy({
    .name = "contended",
    .retry = {.max_attempts = 3},
    .breaker = {.failure_ratio = 0.5},
});

inline constexpr auto on_result = holdfast::policy({
    .name = "on-result",
    .retry = {.max_attempts = 10, .delay = 0s},
    .rules = {holdfast::retry_on(holdfast::errc::unavailable)},
});

inline constexpr auto patient = holdfast::policy({
    .name = "patient",
    .retry = {.max_attempts = 1, .delay = 10min, .max_delay = 10min},
});

// Started on first use, on the Asio runtime, and kept for the whole run.
holdfast::host& running_host();

} // namespace bench
