// The runtime's contract on threads of its own.
#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <deque>
#include <latch>
#include <memory>
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

TEST_CASE("posted work runs on another thread, never inside post") {
    runtime_under_test rt;
    std::mutex held;
    std::thread::id ran_on;
    parker done;
    call w([&](wake why) {
        const std::lock_guard lock(held); // would deadlock inside post
        ran_on = why == wake::due ? std::this_thread::get_id() : std::thread::id{};
        done.unpark();
    });
    {
        const std::lock_guard lock(held);
        REQUIRE(rt.post(w));
    }
    rt.wait(done);
    CHECK(ran_on != std::thread::id{});
    CHECK(ran_on != std::this_thread::get_id());
}

TEST_CASE("one thread runs work in the order in which it was posted") {
    runtime_under_test rt({.threads = 1});
    constexpr int count = 10'000;
    std::vector<int> order;
    parker done;
    std::deque<call> all;
    for (int i = 0; i < count; ++i)
        all.emplace_back([&, i](wake) {
            order.push_back(i);
            if (i == count - 1) done.unpark();
        });
    for (auto& each : all) REQUIRE(rt.post(each));
    rt.wait(done);
    REQUIRE(order.size() == count);
    CHECK(std::is_sorted(order.begin(), order.end()));
}

TEST_CASE("work that posts itself is never run inside its own post") {
    runtime_under_test rt;
    std::atomic<int> depth = 0, deepest = 0, left = 10'000;
    parker done;
    std::unique_ptr<call> w;
    w = std::make_unique<call>([&](wake) {
        deepest = std::max<int>(deepest, ++depth);
        const bool last = --left == 0;
        --depth;
        if (last) done.unpark();
        else if (!rt.post(*w)) std::abort();
    });
    REQUIRE(rt.post(*w));
    rt.wait(done);
    CHECK(deepest == 1);
}

TEST_CASE("as many pieces of work run at the same time as there are threads") {
    runtime_under_test rt({.threads = 4});
    std::barrier meet(4); // nobody passes unless all four run
    std::latch ended(4);
    std::deque<call> all;
    for (int i = 0; i < 4; ++i)
        all.emplace_back([&](wake) {
            meet.arrive_and_wait();
            ended.count_down();
        });
    for (auto& each : all) REQUIRE(rt.post(each));
    ended.wait();
    SUCCEED();
}

TEST_CASE("many threads post and every piece runs once") {
    runtime_under_test rt({.threads = 3});
    constexpr int posters = 4, each_posts = 5'000;
    std::deque<call> all;
    std::vector<std::atomic<int>> runs(posters * each_posts);
    std::latch ended(posters * each_posts);
    for (int i = 0; i < posters * each_posts; ++i)
        all.emplace_back([&, i](wake) {
            ++runs[i];
            ended.count_down();
        });
    {
        std::vector<std::jthread> threads;
        for (int p = 0; p < posters; ++p)
            threads.emplace_back([&, p] {
                for (int i = 0; i < each_posts; ++i)
                    if (!rt.post(all[p * each_posts + i])) std::abort();
            });
    }
    ended.wait();
    CHECK(std::all_of(runs.begin(), runs.end(), [](auto& n) { return n == 1; }));
}

TEST_CASE("a timer never runs early, and says that it is due") {
    runtime_under_test rt;
    constexpr int count = 200;
    std::deque<timed_call> all;
    std::atomic<int> early = 0, wrong = 0;
    std::latch ended(count);
    std::vector<time_point> dues(count);
    for (int i = 0; i < count; ++i)
        all.emplace_back([&, i](wake why) {
            if (rt.now() < dues[i]) ++early;
            if (why != wake::due) ++wrong;
            ended.count_down();
        });
    const time_point start = rt.now();
    for (int i = 0; i < count; ++i) dues[i] = start + (i * 7919 % 200) * 100us;
    for (int i = 0; i < count; ++i) REQUIRE(rt.arm(all[i], dues[i]));
    ended.wait();
    CHECK(early == 0);
    CHECK(wrong == 0);
}

TEST_CASE("an earlier timer armed later still comes first") {
    runtime_under_test rt;
    parker done;
    timed_call late([](wake) {});
    timed_call soon([&](wake) { done.unpark(); });
    REQUIRE(rt.arm(late, rt.now() + far));
    REQUIRE(rt.arm(soon, rt.now() + 2ms));
    rt.wait(done);
    CHECK(rt.cancel(late));
}

TEST_CASE("timers due at the same time run in the order in which they were armed, one after the other") {
    const bool past = GENERATE(true, false);
    runtime_under_test rt({.threads = 4});
    constexpr int count = 5'000;
    std::deque<timed_call> all;
    std::vector<int> order; // not guarded: they must not overlap
    std::latch ended(count);
    for (int i = 0; i < count; ++i)
        all.emplace_back([&, i](wake) {
            order.push_back(i);
            ended.count_down();
        });
    const time_point due = past ? rt.now() - 1s : rt.now() + 3ms;
    for (auto& each : all) REQUIRE(rt.arm(each, due));
    ended.wait();
    CHECK(std::is_sorted(order.begin(), order.end()));
}

TEST_CASE("a timer that takes long does not hold up one that is due at another time") {
    runtime_under_test rt({.threads = 2});
    parker second_ran, done;
    const time_point due = rt.now() + 1ms;
    timed_call first([&](wake) {
        second_ran.park();
        done.unpark();
    });
    timed_call same([](wake) {}); // has to wait for the first, and must not keep the second behind it
    timed_call second([&](wake) { second_ran.unpark(); });
    REQUIRE(rt.arm(first, due));
    REQUIRE(rt.arm(same, due));
    REQUIRE(rt.arm(second, due + 1ms));
    rt.wait(done);
    rt.stop();
}

TEST_CASE("a cancelled timer does not run") {
    runtime_under_test rt;
    std::atomic<int> runs = 0;
    timed_call a([&](wake) { ++runs; });
    REQUIRE(rt.arm(a, rt.now() + 1ms));
    const bool was_armed = rt.cancel(a);
    CHECK_FALSE(rt.cancel(a));
    parker later;
    timed_call b([&](wake) { later.unpark(); });
    REQUIRE(rt.arm(b, rt.now() + 5ms));
    rt.wait(later);
    CHECK(runs == (was_armed ? 0 : 1));
    rt.stop();
    CHECK(runs == (was_armed ? 0 : 1));
}

TEST_CASE("a timer that was never armed, or has run, cannot be cancelled") {
    runtime_under_test rt;
    parker done;
    timed_call a([&](wake) { done.unpark(); });
    CHECK_FALSE(rt.cancel(a));
    REQUIRE(rt.arm(a, rt.now()));
    rt.wait(done);
    CHECK_FALSE(rt.cancel(a));
}

TEST_CASE("a timer can be armed again, by its own callback too") {
    runtime_under_test rt;
    std::atomic<int> left = 50;
    parker done;
    std::unique_ptr<timed_call> a;
    a = std::make_unique<timed_call>([&](wake) {
        if (--left == 0) done.unpark();
        else if (!rt.arm(*a, rt.now() + 10us)) std::abort();
    });
    REQUIRE(rt.arm(*a, rt.now()));
    rt.wait(done);
    CHECK(left == 0);
}

TEST_CASE("cancel races expiry, and each timer either ran or is the caller's again") {
    runtime_under_test rt({.threads = 2});
    constexpr int racers = 4, rounds = 400, width = 8;
    std::atomic<int> wrong = 0;
    std::atomic<int> cancelled = 0;
    {
        std::vector<std::jthread> threads;
        for (int r = 0; r < racers; ++r)
            threads.emplace_back([&, r] {
                for (int round = 0; round < rounds; ++round) {
                    struct one {
                        std::atomic<int> runs = 0;
                        timed_call a{[this](wake) { runs.fetch_add(1); }};
                    };
                    std::vector<std::unique_ptr<one>> all;
                    for (int i = 0; i < width; ++i) all.push_back(std::make_unique<one>());
                    const time_point now = rt.now();
                    for (int i = 0; i < width; ++i)
                        if (!rt.arm(all[i]->a, now + (i * r) * 3us)) std::abort();
                    for (auto& each : all) {
                        if (rt.cancel(each->a)) {
                            ++cancelled;
                            if (each->runs != 0) ++wrong;
                            continue; // ours again: freed at the end of the round
                        }
                        while (each->runs == 0) std::this_thread::yield(); // it must run
                        if (each->runs != 1) ++wrong;
                    }
                }
            });
    }
    rt.stop();
    INFO("cancelled " << cancelled << " of " << racers * rounds * width);
    CHECK(wrong == 0);
}

TEST_CASE("100,000 timers arm and expire, none early, in the order of their times") {
    runtime_under_test rt({.threads = 1});
    constexpr int count = 100'000;
    struct one : timer {
        std::atomic<int>* early;
        time_point* last;
        std::latch* ended;
        time_point wanted;
    };
    std::atomic<int> early = 0;
    time_point last{};
    std::latch ended(count);
    std::vector<one> all(count);
    const time_point begin = rt.now();
    for (int i = 0; i < count; ++i) {
        all[i].run = [](work& w, wake) noexcept {
            auto& self = static_cast<one&>(static_cast<timer&>(w));
            if (std::chrono::steady_clock::now() < self.wanted || self.wanted < *self.last) ++*self.early;
            *self.last = self.wanted;
            self.ended->count_down();
        };
        all[i].early = &early;
        all[i].last = &last;
        all[i].ended = &ended;
    }
    // The only thread is kept busy until all are armed, however slow the machine, so that the order can be checked.
    parker all_armed;
    call gate([&](wake) { all_armed.park(); });
    REQUIRE(rt.post(gate));
    const time_point first = begin + 20ms;
    for (int i = 0; i < count; ++i) {
        all[i].wanted = first + duration(i * 7919LL % count * 1000);
        REQUIRE(rt.arm(all[i], all[i].wanted));
    }
    const duration armed = rt.now() - begin;
    all_armed.unpark();
    ended.wait();
    const duration late = rt.now() - (first + duration(99'999 * 1000));
    CHECK(early == 0);
    WARN("armed 100,000 in " << to_short_text(armed) << ", the last was " << to_short_text(late) << " late");
}

TEST_CASE("an earliest possible and an endless deadline are both taken") {
    runtime_under_test rt;
    parker done;
    timed_call first([&](wake) { done.unpark(); });
    timed_call last([](wake) {});
    REQUIRE(rt.arm(last, never));
    REQUIRE(rt.arm(first, time_point::min()));
    rt.wait(done);
    CHECK(rt.cancel(last));
}

TEST_CASE("the cheap clock is never ahead of the exact one, nor far behind") {
    runtime_under_test rt;
    duration usual = duration::max(); // a machine that stands still for a while holds up one round or two, not all
    for (int round = 0; round < 10; ++round) {
        duration furthest{};
        for (int i = 0; i < 20'000; ++i) {
            const time_point before = rt.now();
            const time_point cheap = rt.coarse_now();
            REQUIRE(cheap <= rt.now());
            furthest = std::max(furthest, before - cheap);
        }
        usual = std::min(usual, furthest);
        std::this_thread::sleep_for(std::chrono::milliseconds{5});
    }
    CHECK(usual <= runtime::coarse_error);
}
