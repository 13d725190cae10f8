// Puts everything.toml, which docs/configuration.md quotes, in force.
#include <chrono>
#include <exception>

#include <holdfast/host.hpp>

#include "check.hpp"

using namespace std::chrono_literals;

namespace {

inline constexpr auto payment = holdfast::policy({
    .name = "payment",
    .retry = {.max_attempts = 4, .delay = 200ms},
    .timeout = 2s,
    .total_timeout = 30s,
    .breaker = {.consecutive_failures = 5},
});

} // namespace

int main() {
    try {
        auto host = holdfast::host::from_file("everything.toml");
        host.add(payment);
        host.start();
        const auto now = host.policies().bind(payment).options();
        check(now.retry.max_attempts == 6 && now.retry.delay == 200ms, "an override changes what it names and no more");
        check(now.timeout == 3s, "the timeout is overridden");
        check(!now.breaker.consecutive_failures && now.breaker.failure_ratio == 0.4, "one form gives way to the other");
        check(host.reload().has_value(), "the file can be read again");
    } catch (const std::exception& e) {
        std::fprintf(stderr, "error: %s\n", e.what());
        return 1;
    }
    std::puts("ok");
}
