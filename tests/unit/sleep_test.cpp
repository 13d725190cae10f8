#include <chrono>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <vector>

#include <holdfast/simulated_runtime.hpp>
#include <holdfast/sleep.hpp>
#include <holdfast/task_scope.hpp>

#include "catch.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

namespace {

task<sleep_end> sleep(runtime& on, duration d, std::stop_token stop = {}) {
    co_return co_await sleep_for(on, d, std::move(stop));
}
task<void> sleep_into(runtime& on, duration d, std::stop_token stop, std::vector<sleep_end>& into) {
    into.push_back(co_await sleep_for(on, d, std::move(stop)));
}

struct stop_at : timer {
    stop_at() {
        run = [](work& w, wake) noexcept { static_cast<stop_at&>(static_cast<timer&>(w)).source.request_stop(); };
    }
    std::stop_source source;
};

} // namespace

TEST_CASE("sleep: takes exactly its time on a virtual clock") {
    simulated_runtime rt;
    const time_point start = rt.now();
    CHECK(sync_wait(rt, sleep(rt, 6h)) == sleep_end::due);
    CHECK(rt.now() - start == 6h);
    CHECK(rt.timers() == 0);
}

TEST_CASE("sleep: nothing or less than nothing does not take time") {
    simulated_runtime rt;
    const time_point start = rt.now();
    CHECK(sync_wait(rt, sleep(rt, 0s)) == sleep_end::due);
    CHECK(sync_wait(rt, sleep(rt, -1h)) == sleep_end::due);
    CHECK(sync_wait(rt, sleep(rt, duration::min())) == sleep_end::due);
    CHECK(rt.now() == start);
}

TEST_CASE("sleep: until a time that has passed ends at once") {
    simulated_runtime rt;
    const time_point start = rt.now();
    CHECK(block_until(rt, start - 1s) == sleep_end::due);
    CHECK(rt.now() == start);
}

TEST_CASE("sleep: a stop that came before never arms a timer") {
    simulated_runtime rt;
    std::stop_source stop;
    stop.request_stop();
    std::vector<sleep_end> ends;
    task_scope scope;
    scope.spawn(sleep_into(rt, 1h, stop.get_token(), ends));
    CHECK(rt.timers() == 0);
    CHECK(ends == std::vector{sleep_end::cancelled});
    sync_wait(scope.join());
}

TEST_CASE("sleep: a stop ends it then and there, and takes the timer out") {
    simulated_runtime rt;
    stop_at stopper;
    const time_point start = rt.now();
    REQUIRE(rt.arm(stopper, start + 5s));
    CHECK(sync_wait(rt, sleep(rt, forever, stopper.source.get_token())) == sleep_end::cancelled);
    CHECK(rt.now() - start == 5s);
    CHECK(rt.timers() == 0);
}

TEST_CASE("sleep: whoever requests the stop does not run the sleeper") {
    simulated_runtime rt;
    std::stop_source stop;
    std::vector<sleep_end> ends;
    task_scope scope;
    scope.spawn(sleep_into(rt, 1h, stop.get_token(), ends));
    stop.request_stop();
    CHECK(ends.empty());
    rt.run_ready();
    CHECK(ends == std::vector{sleep_end::cancelled});
    sync_wait(scope.join());
}

TEST_CASE("sleep: a stop that comes with the time, or after, changes nothing") {
    simulated_runtime rt;
    std::stop_source stop;
    CHECK(sync_wait(rt, sleep(rt, 1s, stop.get_token())) == sleep_end::due);
    stop.request_stop();
    rt.run_until_idle();

    std::vector<sleep_end> ends;
    task_scope scope;
    stop_at stopper;
    const time_point due = rt.now() + 1s;
    scope.spawn(sleep_into(rt, 1s, stopper.source.get_token(), ends));
    REQUIRE(rt.arm(stopper, due)); // armed later, so it runs after the sleeper
    sync_wait(rt, scope.join());
    rt.run_until_idle();
    CHECK(ends == std::vector{sleep_end::due});
}

TEST_CASE("sleep: a runtime that stops ends it") {
    simulated_runtime rt;
    std::vector<sleep_end> ends;
    task_scope scope;
    scope.spawn(sleep_into(rt, 1h, {}, ends));
    scope.spawn(sleep_into(rt, forever, {}, ends));
    rt.stop();
    scope.spawn(sleep_into(rt, 1h, {}, ends));
    CHECK(ends == std::vector(3, sleep_end::stopped));
    sync_wait(scope.join());
}

TEST_CASE("sleep: 10,000 sleepers cancelled in one call all end") {
    simulated_runtime rt;
    std::stop_source stop;
    std::vector<sleep_end> ends;
    task_scope scope;
    for (int i = 0; i < 10'000; ++i) scope.spawn(sleep_into(rt, 1h + i * 1ms, stop.get_token(), ends));
    CHECK(rt.timers() == 10'000);
    stop.request_stop();
    CHECK(rt.timers() == 0);
    const time_point start = rt.now();
    sync_wait(rt, scope.join());
    CHECK(rt.now() == start);
    CHECK(ends == std::vector(10'000, sleep_end::cancelled));
}

TEST_CASE("sleep: a hundred thousand short ones in a row do not grow the stack") {
    simulated_runtime rt;
    auto many = [](runtime& on) -> task<void> {
        for (int i = 0; i < 100'000; ++i) co_await sleep_for(on, 1ms);
    };
    const time_point start = rt.now();
    sync_wait(rt, many(rt));
    CHECK(rt.now() - start == 100s);
}

TEST_CASE("block_for: sleeps for code that is not a coroutine") {
    simulated_runtime rt;
    const time_point start = rt.now();
    CHECK(block_for(rt, 90min) == sleep_end::due);
    CHECK(rt.now() - start == 90min);
}

TEST_CASE("resume_on: goes on as posted work, and says so, stays where it is on a stopped runtime") {
    simulated_runtime rt;
    std::vector<bool> moved;
    auto hop = [](runtime& on, std::vector<bool>& into) -> task<void> { into.push_back(co_await resume_on(on)); };
    task_scope scope;
    scope.spawn(hop(rt, moved));
    CHECK(moved.empty());
    rt.run_ready();
    CHECK(moved == std::vector{true});
    rt.stop();
    scope.spawn(hop(rt, moved));
    CHECK(moved == std::vector{true, false});
    sync_wait(scope.join());
}

TEST_CASE("run_blocking: gives the value, also one that only moves, or nothing") {
    simulated_runtime rt;
    CHECK(sync_wait(rt, run_blocking(rt, [] { return 5; })) == 5);
    CHECK(*sync_wait(rt, run_blocking(rt, [] { return std::make_unique<int>(6); })) == 6);
    int called = 0;
    sync_wait(rt, run_blocking(rt, [&called] { ++called; }));
    CHECK(called == 1);
}

TEST_CASE("run_blocking: an exception comes back, and a stopped runtime is an error") {
    simulated_runtime rt;
    CHECK_THROWS_WITH(sync_wait(rt, run_blocking(rt, []() -> int { throw std::runtime_error("blocked"); })), "blocked");
    CHECK_THROWS_WITH(sync_wait(rt, run_blocking(rt, []() -> void { throw std::runtime_error("void"); })), "void");
    rt.stop();
    try {
        sync_wait(rt, run_blocking(rt, [] { return 1; }));
        FAIL("it ran");
    } catch (const failed& e) {
        CHECK(e.code() == errc::stopped);
    }
}
