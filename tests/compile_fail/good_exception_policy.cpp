// compiles
#include <stdexcept>

#include <holdfast/exception_policy.hpp>

using namespace std::chrono_literals;

void declare(holdfast::exception_policy& rules) {
    const auto is_passing = [](const std::runtime_error&) { return true; };
    rules.on<std::runtime_error>(is_passing).retry(5, 200ms).then_redeliver();
    rules.on<std::logic_error>().dead_letter();
    rules.on<std::bad_alloc>().discard();
    rules.on(std::errc::connection_reset).retry();
    rules.on(holdfast::errc::unavailable, std::errc::timed_out, std::error_code()).retry({100ms, 1s});
    rules.on<std::range_error>().retry(3, 500ms, holdfast::backoff::linear).then_redeliver({5min, 15min});
    rules.on<std::overflow_error>().redeliver(5, 2min).then_dead_letter();
    rules.on<std::underflow_error>().redeliver({30s, 5min});
    rules.default_().retry().then_redeliver(3, 1min).then_dead_letter();
    rules.inherit().max_total_attempts(50);
}
