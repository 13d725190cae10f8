// What docs/runtime-and-tasks.md quotes.
#include <chrono>
#include <string>
#include <vector>

#include <holdfast/engine.hpp>
#include <holdfast/simulated_runtime.hpp>
#include <holdfast/sleep.hpp>
#include <holdfast/task_scope.hpp>
#include <holdfast/when_all.hpp>

#include "check.hpp"

using namespace std::chrono_literals;

namespace {

// [task]
holdfast::task<int> price(holdfast::runtime& on, int share) {
    co_await holdfast::sleep_for(on, 10ms); // holds no thread
    co_return 100 + share;
}

holdfast::task<int> portfolio(holdfast::runtime& on) {
    const int first = co_await price(on, 1);                                    // one after the other,
    const auto [second, third] = co_await when_all(price(on, 2), price(on, 3)); // or at the same time
    co_return first + second + third;
}
// [/task]

// [scope]
holdfast::task<void> note(holdfast::runtime& on, int share, std::vector<int>& into) {
    into.push_back(co_await price(on, share));
}

holdfast::task<void> watch(holdfast::runtime& on, std::vector<int>& into) {
    holdfast::task_scope running;
    for (int share = 1; share <= 3; ++share) running.spawn(note(on, share, into));
    co_await running.join(); // always: a scope does not go away before its tasks
}
// [/scope]

// [cancel]
holdfast::task<int> poll(holdfast::runtime& on, std::stop_token stop) {
    for (int n = 0;; ++n) {
        const auto end = co_await holdfast::sleep_for(on, 1s, stop);
        if (end != holdfast::sleep_end::due) co_return n; // cancelled, or the runtime is stopping
    }
}
// [/cancel]

// [blocking]
std::string read_slowly(const std::string& name) {
    return "contents of " + name; // say it reads a disk
}

holdfast::task<std::string> read(holdfast::runtime& on, std::string name) {
    co_return co_await holdfast::run_blocking(on, [name] { return read_slowly(name); });
}
// [/blocking]

holdfast::task<void> stop_later(holdfast::runtime& on, std::stop_source source) {
    co_await holdfast::sleep_for(on, 3500ms);
    source.request_stop();
}

} // namespace

int main() {
    holdfast::simulated_runtime runtime;
    // [sync-wait]
    const int sum = sync_wait(runtime, portfolio(runtime)); // from code that is not a coroutine
    // [/sync-wait]
    check(sum == 306, "the sum");

    std::vector<int> prices;
    sync_wait(runtime, watch(runtime, prices));
    check(prices.size() == 3, "all were noted");

    std::stop_source source;
    const auto [polls, nothing] =
        sync_wait(runtime, when_all(poll(runtime, source.get_token()), stop_later(runtime, source)));
    static_cast<void>(nothing);
    check(polls == 3, "three polls before the stop");
    check(sync_wait(runtime, read(runtime, "x")) == "contents of x", "blocking work");
    std::puts("ok");
}
