#include "concurrency_limiter.hpp"

#include <atomic>
#include <memory>
#include <stop_token>
#include <vector>

#include <holdfast/backoff.hpp>
#include <holdfast/simulated_runtime.hpp>
#include <holdfast/sleep.hpp>
#include <holdfast/sync_wait.hpp>
#include <holdfast/task.hpp>
#include <holdfast/task_scope.hpp>

#include "catch.hpp"
#include "thread_runtime.hpp"

using namespace holdfast;
using entry = concurrency_limiter::entry;
using wait_end = concurrency_limiter::wait_end;

namespace {

task<void> wait_in_line(concurrency_limiter& line, concurrency_options o, runtime& on, std::stop_token stop, int id,
                        std::vector<std::pair<int, wait_end>>& ended) {
    auto waiting = line.wait_for_slot(o, on, std::move(stop));
    const wait_end end = co_await waiting;
    ended.emplace_back(id, end);
}

// Callers that wait, by number, and how it ended for each.
struct queue_lab {
    explicit queue_lab(concurrency_options with) : o(with) {}
    ~queue_lab() { sync_wait(on, scope.join()); }

    void wait(int id, std::stop_token stop = {}) { scope.spawn(wait_in_line(line, o, on, std::move(stop), id, ended)); }
    void leave() {
        line.leave();
        on.run_ready();
    }
    std::vector<int> entered() const {
        std::vector<int> ids;
        for (const auto& [id, end] : ended)
            if (end == wait_end::entered) ids.push_back(id);
        return ids;
    }

    concurrency_options o;
    concurrency_limiter line;
    simulated_runtime on;
    std::vector<std::pair<int, wait_end>> ended;
    task_scope scope;
};

} // namespace

TEST_CASE("calls enter up to the limit, then wait up to the queue, then are refused") {
    queue_lab x({.limit = 2, .queue = 1});
    CHECK(x.line.try_enter(x.o) == entry::entered);
    CHECK(x.line.try_enter(x.o) == entry::entered);
    CHECK(x.line.running_now() == 2);
    CHECK(x.line.try_enter(x.o) == entry::must_wait);
    x.wait(1);
    CHECK(x.line.waiting_now() == 1);
    CHECK(x.line.try_enter(x.o) == entry::full);
    x.leave();
    CHECK(x.entered() == std::vector{1});
    CHECK(x.line.running_now() == 2);
    CHECK(x.line.waiting_now() == 0);
}

TEST_CASE("without a queue a call over the limit is refused at once") {
    concurrency_limiter line;
    const concurrency_options o{.limit = 1};
    CHECK(line.try_enter(o) == entry::entered);
    CHECK(line.try_enter(o) == entry::full);
    line.leave();
    CHECK(line.running_now() == 0);
    CHECK(line.try_enter(o) == entry::entered);
}

TEST_CASE("those who wait are served in the order in which they came") {
    queue_lab x({.limit = 1, .queue = 10});
    CHECK(x.line.try_enter(x.o) == entry::entered);
    for (int id = 1; id <= 5; ++id) x.wait(id);
    CHECK(x.line.waiting_now() == 5);
    for (int id = 1; id <= 5; ++id) {
        x.leave();
        CHECK(x.entered().size() == static_cast<std::size_t>(id));
    }
    CHECK(x.entered() == std::vector{1, 2, 3, 4, 5});
    CHECK(x.line.running_now() == 1);
    x.leave();
    CHECK(x.line.running_now() == 0);
}

TEST_CASE("nobody overtakes those who wait") {
    queue_lab x({.limit = 1, .queue = 2});
    CHECK(x.line.try_enter(x.o) == entry::entered);
    x.wait(1);
    x.line.leave(); // the slot is already the waiter's, though it has not run yet
    CHECK(x.line.try_enter(x.o) == entry::must_wait);
    x.on.run_ready();
    CHECK(x.entered() == std::vector{1});
}

TEST_CASE("a waiter that is cancelled leaves the line and takes no slot") {
    const int which = GENERATE(1, 2, 3); // first, middle, last
    queue_lab x({.limit = 1, .queue = 3});
    CHECK(x.line.try_enter(x.o) == entry::entered);
    std::vector<std::stop_source> stops(4);
    for (int id = 1; id <= 3; ++id) x.wait(id, stops[static_cast<std::size_t>(id)].get_token());
    stops[static_cast<std::size_t>(which)].request_stop();
    CHECK(x.line.waiting_now() == 2); // it made room at once
    x.on.run_ready();
    REQUIRE(x.ended.size() == 1);
    CHECK(x.ended[0] == std::pair{which, wait_end::cancelled});
    x.leave();
    x.leave();
    std::vector<int> others{1, 2, 3};
    std::erase(others, which);
    CHECK(x.entered() == others);
    x.leave();
    CHECK(x.line.running_now() == 0);
    CHECK(x.line.waiting_now() == 0);
}

TEST_CASE("whoever was already told to stop does not wait") {
    queue_lab x({.limit = 1, .queue = 3});
    CHECK(x.line.try_enter(x.o) == entry::entered);
    std::stop_source stop;
    stop.request_stop();
    x.wait(1, stop.get_token());
    x.on.run_ready();
    REQUIRE(x.ended.size() == 1);
    CHECK(x.ended[0].second == wait_end::cancelled);
    CHECK(x.line.waiting_now() == 0);
}

TEST_CASE("a cancel that comes after the slot was given is too late") {
    queue_lab x({.limit = 1, .queue = 3});
    CHECK(x.line.try_enter(x.o) == entry::entered);
    std::stop_source stop;
    x.wait(1, stop.get_token());
    x.line.leave();
    stop.request_stop();
    x.on.run_ready();
    CHECK(x.entered() == std::vector{1});
    CHECK(x.line.running_now() == 1);
}

TEST_CASE("waiting finds a free slot that appeared meanwhile, or a queue that filled up") {
    queue_lab x({.limit = 1, .queue = 1});
    x.wait(1);
    CHECK(x.entered() == std::vector{1});
    x.wait(2);
    x.wait(3);
    REQUIRE(x.ended.size() == 2);
    CHECK(x.ended[1] == std::pair{3, wait_end::full});
    x.leave();
    CHECK(x.entered() == std::vector{1, 2});
}

TEST_CASE("a lower limit, after a change of settings, holds for those who come next") {
    concurrency_limiter line;
    for (int i = 0; i < 3; ++i) CHECK(line.try_enter({.limit = 3}) == entry::entered);
    CHECK(line.try_enter({.limit = 1}) == entry::full);
    line.leave();
    line.leave();
    CHECK(line.try_enter({.limit = 1}) == entry::full);
    line.leave();
    CHECK(line.try_enter({.limit = 1}) == entry::entered);
}

TEST_CASE("on a stopped runtime those who wait still get their turn") {
    queue_lab x({.limit = 1, .queue = 3});
    CHECK(x.line.try_enter(x.o) == entry::entered);
    x.wait(1);
    x.on.stop();
    x.line.leave();
    CHECK(x.entered() == std::vector{1});
}

namespace {

struct counters {
    std::atomic<int> running = 0;
    std::atomic<int> most = 0;
    std::atomic<int> entered = 0;
    std::atomic<int> refused = 0;
    std::atomic<int> cancelled = 0;
};

task<void> work_under(concurrency_limiter& line, concurrency_options o, runtime& on, std::stop_token stop,
                      counters& seen) {
    co_await resume_on(on);
    const entry first = line.try_enter(o);
    if (first == entry::full) {
        ++seen.refused;
        co_return;
    }
    if (first == entry::must_wait) {
        auto waiting = line.wait_for_slot(o, on, std::move(stop));
        const wait_end end = co_await waiting;
        if (end == wait_end::full) ++seen.refused;
        if (end == wait_end::cancelled) ++seen.cancelled;
        if (end != wait_end::entered) co_return;
    }
    ++seen.entered;
    const int now = ++seen.running;
    int most = seen.most;
    while (now > most && !seen.most.compare_exchange_weak(most, now)) {
    }
    co_await resume_on(on);
    --seen.running;
    line.leave();
}

} // namespace

TEST_CASE("on real threads the limit holds, every caller is answered, and every slot comes back") {
    const int queue = GENERATE(0, 5, 10'000);
    constexpr int callers = 3000;
    const concurrency_options o{.limit = 3, .queue = queue};
    test::thread_runtime on(4);
    concurrency_limiter line;
    counters seen;
    std::vector<std::stop_source> stops(callers);
    random_series random(11);
    task_scope scope;
    for (int i = 0; i < callers; ++i) {
        scope.spawn(work_under(line, o, on, stops[static_cast<std::size_t>(i)].get_token(), seen));
        if (random.next() % 3 == 0) stops[random.next() % static_cast<std::size_t>(i + 1)].request_stop();
    }
    sync_wait(on, scope.join());
    CHECK(seen.most <= 3);
    CHECK(seen.entered + seen.refused + seen.cancelled == callers);
    CHECK(line.running_now() == 0);
    CHECK(line.waiting_now() == 0);
    if (queue == 10'000) CHECK(seen.refused == 0);
    if (queue == 0) CHECK(seen.cancelled == 0);
}
