// Testing code that retries for hours, in milliseconds: the engine on the simulated runtime. Any test framework will do;
// here it is none.
#include <chrono>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include <holdfast/engine.hpp>
#include <holdfast/simulated_runtime.hpp>
#include <holdfast/task_scope.hpp>
#include <holdfast/when_all.hpp>

using namespace std::chrono_literals;

namespace {

void check(bool holds, const char* what) {
    if (!holds) throw std::logic_error(what);
}

// [under-test]
inline constexpr auto nightly_export = holdfast::policy({
    .name = "nightly-export",
    .retry = {.max_attempts = 6,
              .delay = 10min,
              .backoff = holdfast::backoff::exponential,
              .max_delay = 4h,
              .jitter = false},
    .total_timeout = 12h,
});

struct exporter {
    int calls = 0;
    holdfast::task<std::string> run(holdfast::attempt& a) {
        ++calls;
        co_await a.sleep_for(3min); // what the export takes
        if (a.number() < 5) throw std::runtime_error("warehouse closed");
        co_return "exported";
    }
};
// [/under-test]

void retries_over_hours() {
    // [hours]
    holdfast::simulated_runtime time;
    holdfast::engine engine(time, 42); // the seed of every random draw
    engine.add(nightly_export);

    exporter nightly;
    const auto began = time.now();
    auto call = engine.policies().try_execute(nightly_export, [&](holdfast::attempt& a) { return nightly.run(a); });
    const auto outcome = sync_wait(time, std::move(call));

    check(outcome.succeeded(), "the export succeeds in the end");
    check(nightly.calls == 5, "at the fifth attempt");
    check(time.now() - began == 5 * 3min + 10min + 20min + 40min + 80min, "after 2 h 45 min, to the nanosecond");
    // [/hours]
}

void time_step_by_step() {
    // [steps]
    holdfast::simulated_runtime time;
    holdfast::engine engine(time, 42);
    engine.add(nightly_export);

    exporter nightly;
    holdfast::task_scope running;
    std::stop_source operator_says_stop;
    const auto start = [](holdfast::policies& policies, exporter& e, std::stop_token stop) -> holdfast::task<void> {
        const auto outcome =
            co_await policies.try_execute(nightly_export, [&e](holdfast::attempt& a) { return e.run(a); }, stop);
        check(outcome.stop_reason() == holdfast::stop_reason::cancelled, "stopped by the operator");
    };
    running.spawn(start(engine.policies(), nightly, operator_says_stop.get_token()));

    time.advance(12min);
    check(nightly.calls == 1, "it is still waiting for its first retry");
    time.advance(2min);
    check(nightly.calls == 2, "now it is in its second attempt");
    operator_says_stop.request_stop();
    sync_wait(time, running.join());
    check(time.timers() == 0, "nothing is left behind");
    // [/steps]
}

void other_orders() {
    // [orders]
    // Seed 0 runs work in the order in which it was posted. Other seeds shuffle what could run at the same time, each in
    // a way of its own that it repeats: a test that fails can be played again.
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
        holdfast::simulated_runtime time(seed);
        holdfast::engine engine(time, seed);
        engine.add(nightly_export);
        exporter one, two;
        auto both = when_all(
            engine.policies().execute(nightly_export, [&](holdfast::attempt& a) { return one.run(a); }).as_task(),
            engine.policies().execute(nightly_export, [&](holdfast::attempt& a) { return two.run(a); }).as_task());
        sync_wait(time, std::move(both));
        check(one.calls == 5 && two.calls == 5, "both succeed in any order");
    }
    // [/orders]
}

} // namespace

int main() {
    try {
        retries_over_hours();
        time_step_by_step();
        other_orders();
    } catch (const std::exception& e) {
        std::cerr << "failed: " << e.what() << "\n";
        return 1;
    }
    std::cout << "hours of retries, tested\n";
    return 0;
}
