// Stopping a runtime that has threads of its own.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "runtimes/call.hpp"
#include "runtimes/under_test.hpp"

using namespace holdfast;
using namespace std::chrono_literals;
using holdfast::testing::call;
using holdfast::testing::runtime_under_test;
using holdfast::testing::timed_call;

namespace {

constexpr auto far = 1h;

} // namespace

TEST_CASE("stop runs what was posted, and every armed timer with wake::stopped") {
    runtime_under_test rt;
    constexpr int count = 1'000;
    std::atomic<int> worked = 0, timers_stopped = 0, timers_due = 0, blocked = 0;
    std::deque<call> posted, blocking;
    std::deque<timed_call> timers;
    for (int i = 0; i < count; ++i) {
        posted.emplace_back([&](wake) { ++worked; });
        timers.emplace_back([&](wake why) { ++(why == wake::stopped ? timers_stopped : timers_due); });
        if (i < 100) blocking.emplace_back([&](wake) { ++blocked; });
    }
    for (int i = 0; i < count; ++i) REQUIRE(rt.arm(timers[i], i % 2 == 0 ? rt.now() + far : never));
    for (auto& each : posted) REQUIRE(rt.post(each));
    for (auto& each : blocking) REQUIRE(rt.post_blocking(each));
    CHECK_FALSE(rt.stopped());
    rt.stop();
    CHECK(rt.stopped());
    CHECK(worked == count);
    CHECK(timers_stopped == count);
    CHECK(timers_due == 0);
    CHECK(blocked == 100);
    rt.stop();
}

TEST_CASE("a stopped runtime takes nothing") {
    runtime_under_test rt;
    rt.stop();
    call w([](wake) { std::abort(); });
    timed_call a([](wake) { std::abort(); });
    CHECK_FALSE(rt.post(w));
    CHECK_FALSE(rt.post_blocking(w));
    CHECK_FALSE(rt.arm(a, rt.now()));
    CHECK_FALSE(rt.cancel(a));
}

TEST_CASE("what runs during stop finds the runtime stopped and may cancel other timers") {
    runtime_under_test rt({.threads = 1});
    std::atomic<bool> refused = false, cancelled = false, other_ran = false;
    call w([](wake) {});
    timed_call other([&](wake) { other_ran = true; });
    timed_call a([&](wake) {
        refused = rt.stopped() && !rt.post(w) && !rt.arm(other, never) && !rt.post_blocking(w);
        cancelled = rt.cancel(other);
    });
    REQUIRE(rt.arm(a, rt.now() + far));
    REQUIRE(rt.arm(other, rt.now() + far + 1s));
    rt.stop();
    CHECK(refused);
    CHECK(cancelled != other_ran);
}

TEST_CASE("posts and arms that race stop are either refused or run") {
    for (int round = 0; round < 20; ++round) {
        runtime_under_test rt;
        constexpr int posters = 3, each_posts = 300;
        std::atomic<int> ran = 0, taken = 0;
        std::deque<call> works;
        std::deque<timed_call> timers;
        for (int i = 0; i < posters * each_posts; ++i) {
            works.emplace_back([&](wake) { ++ran; });
            timers.emplace_back([&](wake) { ++ran; });
        }
        {
            std::vector<std::jthread> threads;
            for (int p = 0; p < posters; ++p)
                threads.emplace_back([&, p] {
                    for (int i = p * each_posts; i < (p + 1) * each_posts; ++i) {
                        if (i % 3 == 0 ? rt.post_blocking(works[i]) : rt.post(works[i])) ++taken;
                        if (rt.arm(timers[i], rt.now() + (i % 2 == 0 ? duration(far) : duration(0)))) ++taken;
                    }
                });
            rt.stop();
        }
        CHECK(ran == taken); // and nothing runs later: works and timers go away here
    }
}
