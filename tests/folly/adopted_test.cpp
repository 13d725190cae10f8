// The runtime on an executor that the application has.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include <folly/executors/CPUThreadPoolExecutor.h>
#include <folly/executors/ManualExecutor.h>

#include <holdfast/folly_runtime.hpp>

#include "catch.hpp"
#include "runtimes/call.hpp"

using namespace holdfast;
using namespace std::chrono_literals;
using holdfast::testing::call;
using holdfast::testing::timed_call;

TEST_CASE("adopted executor: work and timers run on the threads that run it, and only then") {
    folly::ManualExecutor mine;
    folly_runtime rt(folly::getKeepAliveToken(mine));
    std::vector<std::thread::id> where;
    call w([&](wake) { where.push_back(std::this_thread::get_id()); });
    timed_call t([&](wake) { where.push_back(std::this_thread::get_id()); });
    REQUIRE(rt.post(w));
    REQUIRE(rt.arm(t, rt.now() + 1ms));
    CHECK(where.empty());
    while (where.size() < 2) mine.makeProgress();
    CHECK(where == std::vector(2, std::this_thread::get_id()));
}

TEST_CASE("adopted executor: stop ends without anybody running it, and runs everything itself") {
    folly::ManualExecutor mine;
    folly_runtime rt(folly::getKeepAliveToken(mine));
    constexpr int count = 500;
    std::atomic<int> worked = 0, stopped = 0, blocked = 0;
    std::deque<call> works;
    std::deque<timed_call> timers;
    for (int i = 0; i < count; ++i) {
        works.emplace_back([&](wake) { ++worked; });
        timers.emplace_back([&](wake why) { stopped += why == wake::stopped; });
    }
    call blocking([&](wake) { ++blocked; });
    for (int i = 0; i < count; ++i) {
        REQUIRE(rt.post(works[i]));
        REQUIRE(rt.arm(timers[i], rt.now() + 1h));
    }
    REQUIRE(rt.post_blocking(blocking));
    rt.stop();
    CHECK(worked == count);
    CHECK(stopped == count);
    CHECK(blocked == 1);
    works.clear();
    timers.clear();
    mine.drain(); // what stayed in the executor does nothing
    CHECK(worked == count);
}

TEST_CASE("adopted executor: stop also runs timers that wait behind one of the same time") {
    // The executor runs one batch only, and leaves the rest in the middle of a line of equal timers.
    folly::ManualExecutor mine;
    folly_runtime rt(folly::getKeepAliveToken(mine), {.threads = 2});
    constexpr int count = 1'000;
    std::vector<int> order;
    std::deque<timed_call> timers;
    for (int i = 0; i < count; ++i) timers.emplace_back([&, i](wake) { order.push_back(i); });
    const time_point due = rt.now();
    for (auto& each : timers) REQUIRE(rt.arm(each, due));
    mine.run();
    CHECK(order.size() < count);
    rt.stop();
    CHECK(order.size() == count);
    CHECK(std::is_sorted(order.begin(), order.end()));
}

TEST_CASE("adopted executor: stop waits for work that one of its threads is running") {
    folly::CPUThreadPoolExecutor mine(1);
    folly_runtime rt(folly::getKeepAliveToken(mine));
    parker inside;
    std::atomic<bool> go = false, ended = false;
    call w([&](wake) {
        inside.unpark();
        while (!go) std::this_thread::yield();
        ended = true;
    });
    REQUIRE(rt.post(w));
    inside.park();
    const std::jthread releaser([&] {
        while (!rt.stopped()) std::this_thread::yield();
        go = true;
    });
    rt.stop();
    CHECK(ended);
}

TEST_CASE("adopted executor: stop may be called on its only thread") {
    folly::CPUThreadPoolExecutor mine(1);
    folly_runtime rt(folly::getKeepAliveToken(mine));
    std::atomic<int> ran = 0;
    timed_call t([&](wake why) { ran += why == wake::stopped; });
    REQUIRE(rt.arm(t, rt.now() + 1h));
    parker done;
    mine.add([&] {
        rt.stop();
        done.unpark();
    });
    done.park();
    CHECK(ran == 1);
}

TEST_CASE("adopted executor: the runtime may go before it, and leaves nothing behind") {
    folly::ManualExecutor mine;
    int ran = 0;
    {
        call w([&](wake) { ++ran; });
        timed_call t([&](wake) { ++ran; });
        folly_runtime rt(folly::getKeepAliveToken(mine));
        REQUIRE(rt.post(w));
        REQUIRE(rt.arm(t, rt.now() + 1h));
    }
    CHECK(ran == 2);
    SECTION("and the executor runs on") {
        bool others = false;
        mine.add([&] { others = true; });
        mine.drain();
        CHECK(others);
    }
    SECTION("or never runs again") {}
    CHECK(ran == 2);
}

TEST_CASE("adopted executor: a long line of work lets the application's own functions have their turn") {
    folly::ManualExecutor mine;
    folly_runtime rt(folly::getKeepAliveToken(mine));
    bool application_ran = false;
    int before = 0;
    std::unique_ptr<call> w;
    w = std::make_unique<call>([&](wake) {
        if (application_ran || ++before > 100'000) return;
        if (!rt.post(*w)) std::abort();
    });
    REQUIRE(rt.post(*w));
    mine.add([&] { application_ran = true; });
    mine.drain();
    CHECK(application_ran);
    CHECK(before < 1'000);
}

TEST_CASE("adopted executor: stop races its threads") {
    for (int round = 0; round < 30; ++round) {
        folly::CPUThreadPoolExecutor mine(2);
        folly_runtime rt(folly::getKeepAliveToken(mine), {.threads = 3});
        std::atomic<int> taken = 0, ran = 0;
        std::deque<call> works;
        std::deque<timed_call> timers;
        for (int i = 0; i < 600; ++i) {
            works.emplace_back([&](wake) { ++ran; });
            timers.emplace_back([&](wake) { ++ran; });
        }
        std::jthread poster([&] {
            for (int i = 0; i < 600; ++i) {
                if (rt.post(works[i])) ++taken;
                if (rt.arm(timers[i], rt.now() + (i % 3) * 10us)) ++taken;
                if (i % 5 == 0 && rt.cancel(timers[i])) --taken;
            }
        });
        while (taken < 100) std::this_thread::yield();
        rt.stop();
        poster.join();
        CHECK(ran == taken);
    }
}

TEST_CASE("own threads: stop waits for what folly runs on them") {
    folly_runtime rt;
    parker inside;
    std::atomic<bool> go = false, ended = false;
    rt.get_executor().add([&](folly::Executor::KeepAlive<>&&) {
        inside.unpark();
        while (!go) std::this_thread::yield();
        ended = true;
    });
    inside.park();
    const std::jthread releaser([&] {
        while (!rt.stopped()) std::this_thread::yield();
        go = true;
    });
    rt.stop();
    CHECK(ended);
}
