// compiles
#include <holdfast/policy.hpp>

using namespace holdfast;
using namespace std::chrono_literals;

constexpr policy good({
    .name = "invoice-email.v2_a",
    .retry = {.max_attempts = 4, .delay = 10s, .backoff = backoff::exponential, .max_delay = 5min, .jitter = true},
    .rules = {stop_on(errc::cancelled), stop_on(errc::timed_out), stop_on(errc::circuit_open),
              stop_on(errc::rate_limited), stop_on(errc::concurrency_limited), stop_on(errc::stopped),
              stop_on(errc::overloaded), stop_on(errc::invalid_argument)},
    .timeout = 5s,
    .total_timeout = 5s,
    .breaker = {.consecutive_failures = 5, .probes = 1},
    .concurrency = {.limit = 1, .queue = 5},
    .rate = {.permits = 1, .burst = 5},
});
constexpr policy by_ratio({.name = "p", .breaker = {.failure_ratio = 0.5}});
constexpr policy hedged({.name = "p", .hedge = {.max_hedges = 1}});
constexpr policy listed({.name = "p", .retry = {.intervals = {1s, 5s}}});
