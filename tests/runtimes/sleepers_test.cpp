// Sleeping coroutines on real timers.
#include <atomic>
#include <chrono>
#include <cstddef>
#include <stop_token>
#include <thread>
#include <vector>

#include <holdfast/sleep.hpp>
#include <holdfast/task_scope.hpp>
#include <holdfast/when_all.hpp>

#include "catch.hpp"
#include "runtimes/under_test.hpp"

using namespace holdfast;
using namespace std::chrono_literals;
using holdfast::testing::runtime_under_test;

namespace {

struct tally {
    std::atomic<int> due = 0, cancelled = 0, stopped = 0;
    void count(sleep_end e) { ++(e == sleep_end::due ? due : e == sleep_end::cancelled ? cancelled : stopped); }
};

task<void> sleep_and_count(runtime& on, duration d, std::stop_token stop, tally& into) {
    into.count(co_await sleep_for(on, d, std::move(stop)));
}

task<void> sleep_on_runtime(runtime& on, duration d, std::stop_token stop, tally& into) {
    co_await resume_on(on);
    into.count(co_await sleep_for(on, d, std::move(stop)));
}

} // namespace

TEST_CASE("a coroutine sleeps, not too short, and wakes on a runtime thread") {
    runtime_under_test rt;
    auto nap = [](runtime& on, std::thread::id& woke) -> task<duration> {
        const time_point start = on.now();
        co_await sleep_for(on, 3ms);
        woke = std::this_thread::get_id();
        co_return on.now() - start;
    };
    std::thread::id woke;
    CHECK(sync_wait(rt, nap(rt, woke)) >= 3ms);
    CHECK(woke != std::this_thread::get_id());
}

TEST_CASE("10,000 sleepers are cancelled, all of them, at once") {
    runtime_under_test rt;
    constexpr int count = 10'000;
    std::stop_source stop;
    tally ends;
    task_scope scope;
    for (int i = 0; i < count; ++i) scope.spawn(sleep_and_count(rt, 1h + i * 1us, stop.get_token(), ends));
    CHECK(scope.running() == count);
    const time_point start = rt.now();
    stop.request_stop();
    sync_wait(rt, scope.join());
    const duration took = rt.now() - start;
    CHECK(ends.cancelled == count);
    CHECK(took < 1min);
    WARN("cancelled 10,000 sleepers in " << to_short_text(took));
}

TEST_CASE("10,000 sleepers end when the runtime stops") {
    runtime_under_test rt;
    constexpr int count = 10'000;
    tally ends;
    task_scope scope;
    for (int i = 0; i < count; ++i) scope.spawn(sleep_and_count(rt, i % 2 == 0 ? duration(1h) : forever, {}, ends));
    rt.stop();
    sync_wait(scope.join());
    CHECK(ends.stopped == count);
}

TEST_CASE("sleepers that are cancelled while they fall due end once each") {
    runtime_under_test rt({.threads = 3});
    for (int round = 0; round < 20; ++round) {
        constexpr int count = 300;
        std::vector<std::stop_source> stops(count);
        tally ends;
        task_scope scope;
        for (int i = 0; i < count; ++i) scope.spawn(sleep_on_runtime(rt, (i % 7) * 20us, stops[i].get_token(), ends));
        {
            std::vector<std::jthread> threads;
            for (int t = 0; t < 2; ++t)
                threads.emplace_back([&, t] {
                    for (int i = t; i < count; i += 2) stops[i].request_stop();
                });
        }
        sync_wait(rt, scope.join());
        CHECK(ends.due + ends.cancelled == count);
    }
}

TEST_CASE("sleepers that are cancelled while the runtime stops end once each") {
    for (int round = 0; round < 20; ++round) {
        runtime_under_test rt;
        constexpr int count = 300;
        std::stop_source stop;
        tally ends;
        task_scope scope;
        for (int i = 0; i < count; ++i) scope.spawn(sleep_on_runtime(rt, 1h, stop.get_token(), ends));
        std::jthread canceller([&] { stop.request_stop(); });
        rt.stop();
        canceller.join();
        sync_wait(scope.join());
        CHECK(ends.stopped + ends.cancelled == count);
    }
}

TEST_CASE("when_all of sleepers takes as long as the longest") {
    runtime_under_test rt;
    tally ends;
    const time_point start = rt.now();
    sync_wait(rt, when_all(sleep_and_count(rt, 4ms, {}, ends), sleep_and_count(rt, 2ms, {}, ends)));
    CHECK(rt.now() - start >= 4ms);
    CHECK(ends.due == 2);
}
