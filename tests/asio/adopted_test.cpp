// The runtime on an io_context that the application runs.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include <boost/asio/post.hpp>

#include <holdfast/asio_runtime.hpp>
#include <holdfast/sleep.hpp>

#include "catch.hpp"
#include "runtimes/call.hpp"

using namespace holdfast;
using namespace std::chrono_literals;
namespace asio = boost::asio;
using holdfast::testing::call;
using holdfast::testing::timed_call;

TEST_CASE("adopted context: work and timers run on the threads that run it, and only then") {
    asio::io_context io;
    asio_runtime rt(io);
    std::vector<std::thread::id> where;
    call w([&](wake) { where.push_back(std::this_thread::get_id()); });
    timed_call t([&](wake) { where.push_back(std::this_thread::get_id()); });
    REQUIRE(rt.post(w));
    REQUIRE(rt.arm(t, rt.now()));
    CHECK(where.empty());
    io.run();
    CHECK(where == std::vector(2, std::this_thread::get_id()));
}

TEST_CASE("adopted context: runs out of work when the runtime holds nothing") {
    asio::io_context io;
    asio_runtime rt(io);
    io.run(); // returns at once
    io.restart();

    timed_call soon([](wake) {}), far([](wake) { std::abort(); });
    const time_point start = rt.now();
    REQUIRE(rt.arm(soon, rt.now() + 2ms));
    REQUIRE(rt.arm(far, rt.now() + 1h));
    asio::post(io, [&] { CHECK(rt.cancel(far)); });
    io.run(); // until the one that is left has run
    CHECK(rt.now() - start >= 2ms);
    CHECK(rt.now() - start < 1min);
    io.restart();

    REQUIRE(rt.arm(far, never));
    CHECK(rt.cancel(far));
    io.run();
    CHECK(rt.now() - start < 1min);
}

TEST_CASE("adopted context: keeps running while a timer is armed, even one without an end") {
    asio::io_context io;
    asio_runtime rt(io);
    timed_call t([](wake) { std::abort(); });
    REQUIRE(rt.arm(t, never));
    CHECK(io.run_for(2ms) == 0);
    CHECK_FALSE(io.stopped()); // it would be, had it run out of work
    CHECK(rt.cancel(t));
    io.run();
    CHECK(io.stopped());
}

TEST_CASE("adopted context: keeps running while blocking work runs, so that its result is not stranded") {
    asio::io_context io;
    asio_runtime rt(io);
    bool came_back = false;
    auto work = [](runtime& on, bool& back) -> task<void> {
        co_await resume_on(on);
        auto blocking = run_blocking(on, [] { std::this_thread::sleep_for(3ms); });
        co_await std::move(blocking);
        back = true;
    };
    auto running = work(rt, came_back);
    parker done;
    detail::unpark_at_end(running, done);
    io.run();
    CHECK(came_back);
    CHECK(done.ready());
}

TEST_CASE("adopted context: stop ends without anybody running the context, and runs everything itself") {
    asio::io_context io;
    asio_runtime rt(io);
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
    io.run(); // what stayed in the context does nothing
    CHECK(worked == count);
}

TEST_CASE("adopted context: stop also runs timers that wait behind one of the same time") {
    // One thread runs the context for one batch only, and leaves the rest in the middle of a line of equal timers.
    asio::io_context io;
    asio_runtime rt(io, {.threads = 2});
    constexpr int count = 1'000;
    std::vector<int> order;
    std::deque<timed_call> timers;
    for (int i = 0; i < count; ++i) timers.emplace_back([&, i](wake) { order.push_back(i); });
    const time_point due = rt.now();
    for (auto& each : timers) REQUIRE(rt.arm(each, due));
    io.run_one();
    io.run_one();
    CHECK(order.size() < count);
    rt.stop();
    CHECK(order.size() == count);
    CHECK(std::is_sorted(order.begin(), order.end()));
}

TEST_CASE("adopted context: stop waits for work that a thread of the context is running") {
    asio::io_context io;
    asio_runtime rt(io);
    parker inside;
    std::atomic<bool> go = false, ended = false;
    call w([&](wake) {
        inside.unpark();
        while (!go) std::this_thread::yield();
        ended = true;
    });
    REQUIRE(rt.post(w));
    std::jthread runner([&] { io.run(); });
    inside.park();
    std::jthread releaser([&] {
        while (!rt.stopped()) std::this_thread::yield();
        go = true;
    });
    rt.stop();
    CHECK(ended);
}

TEST_CASE("adopted context: stop may be called on the context's only thread") {
    asio::io_context io;
    asio_runtime rt(io);
    int ran = 0;
    timed_call t([&](wake why) { ran += why == wake::stopped; });
    REQUIRE(rt.arm(t, rt.now() + 1h));
    asio::post(io, [&] { rt.stop(); });
    io.run();
    CHECK(ran == 1);
}

TEST_CASE("adopted context: the runtime may go before the context, and leaves nothing behind") {
    asio::io_context io;
    int ran = 0;
    {
        call w([&](wake) { ++ran; });
        timed_call t([&](wake) { ++ran; });
        asio_runtime rt(io);
        REQUIRE(rt.post(w));
        REQUIRE(rt.arm(t, rt.now() + 1h));
    }
    CHECK(ran == 2);
    SECTION("and the context runs on") {
        bool others = false;
        asio::post(io, [&] { others = true; });
        io.run();
        CHECK(others);
    }
    SECTION("or never runs again") {}
    CHECK(ran == 2);
}

TEST_CASE("adopted context: a long line of work lets the application's own handlers have their turn") {
    asio::io_context io;
    asio_runtime rt(io);
    std::atomic<bool> application_ran = false;
    int before = 0;
    std::unique_ptr<call> w;
    w = std::make_unique<call>([&](wake) {
        if (application_ran) return;
        if (++before > 100'000) return;
        if (!rt.post(*w)) std::abort();
    });
    REQUIRE(rt.post(*w));
    asio::post(io, [&] { application_ran = true; });
    io.run();
    CHECK(application_ran);
    CHECK(before < 1'000);
}

TEST_CASE("adopted context: two runtimes may share one context") {
    asio::io_context io;
    asio_runtime a(io), b(io);
    int ran = 0;
    timed_call ta([&](wake) { ++ran; }), tb([&](wake) { ++ran; });
    REQUIRE(a.arm(ta, a.now() + 1ms));
    REQUIRE(b.arm(tb, b.now() + 1ms));
    io.run();
    CHECK(ran == 2);
}

TEST_CASE("adopted context: stop races the threads that run it") {
    for (int round = 0; round < 30; ++round) {
        asio::io_context io;
        auto guard = asio::make_work_guard(io);
        asio_runtime rt(io, {.threads = 3});
        std::atomic<int> taken = 0, ran = 0;
        std::deque<call> works;
        std::deque<timed_call> timers;
        for (int i = 0; i < 600; ++i) {
            works.emplace_back([&](wake) { ++ran; });
            timers.emplace_back([&](wake) { ++ran; });
        }
        std::vector<std::jthread> threads;
        for (int i = 0; i < 2; ++i) threads.emplace_back([&] { io.run(); });
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
        guard.reset();
    }
}
