// Puts everything.toml, which docs/configuration.md quotes, in force; reads stores.toml, which docs/stores.md quotes.
#include <chrono>
#include <exception>

#include <holdfast/host.hpp>
#include <holdfast/sync_wait.hpp>

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
        // [stores]
        host.require(holdfast::facet::jobs, {.units_of_work = true}); // as [promises.jobs] would; start() refuses else
        host.start();
        auto held = holdfast::sync_wait(host.runtime(), host.locks().try_acquire("nightly report", 5min));
        // [/stores]
        check(held && held->has_value(), "nobody else has the lock");
        check(&host.locks() != host.store().locks(), "locks come from a store of their own");
        const auto now = host.policies().bind(payment).options();
        check(now.retry.max_attempts == 6 && now.retry.delay == 200ms, "an override changes what it names and no more");
        check(now.timeout == 3s, "the timeout is overridden");
        check(!now.breaker.consecutive_failures && now.breaker.failure_ratio == 0.4, "one form gives way to the other");
        check(host.reload().has_value(), "the file can be read again");
        holdfast::host::from_file("stores.toml"); // its servers are not there
    } catch (const std::exception& e) {
        std::fprintf(stderr, "error: %s\n", e.what());
        return 1;
    }
    std::puts("ok");
}
