#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <deque>
#include <latch>
#include <set>
#include <thread>
#include <vector>

#include <holdfast/asio_runtime.hpp>
#include <holdfast/blocking_pool.hpp>
#include <holdfast/sleep.hpp>

#include "asio/support.hpp"
#include "catch.hpp"

using namespace holdfast;
using namespace std::chrono_literals;
using holdfast::testing::call;

TEST_CASE("blocking pool: starts threads when needed and not before") {
    blocking_pool pool(3, 10);
    CHECK(pool.threads() == 0);
    parker done;
    call w([&](wake) { done.unpark(); });
    REQUIRE(pool.post(w));
    done.park();
    CHECK(pool.threads() == 1);
}

TEST_CASE("blocking pool: runs as many at once as it may have threads, keeps so many waiting, and refuses one more") {
    blocking_pool pool(2, 3);
    std::barrier inside(3);
    parker go;
    std::latch ended(5);
    std::deque<call> all;
    for (int i = 0; i < 2; ++i)
        all.emplace_back([&](wake) {
            inside.arrive_and_wait();
            go.park();
            ended.count_down();
        });
    for (int i = 0; i < 3; ++i) all.emplace_back([&](wake) { ended.count_down(); });
    for (auto& each : all) REQUIRE(pool.post(each)); // also before the threads have got to run
    inside.arrive_and_wait();
    call refused([](wake) { std::abort(); });
    CHECK_FALSE(pool.post(refused));
    CHECK(pool.threads() == 2);
    go.unpark();
    ended.wait();
}

TEST_CASE("blocking pool: one thread runs work in the order in which it came") {
    blocking_pool pool(1, 1'000);
    std::vector<int> order;
    std::deque<call> all;
    for (int i = 0; i < 1'000; ++i) all.emplace_back([&, i](wake) { order.push_back(i); });
    for (auto& each : all) REQUIRE(pool.post(each));
    pool.stop();
    CHECK(order.size() == 1'000);
    CHECK(std::is_sorted(order.begin(), order.end()));
}

TEST_CASE("blocking pool: a queue of none still uses every thread") {
    blocking_pool pool(2, 0);
    std::barrier both(3);
    std::deque<call> all;
    for (int i = 0; i < 2; ++i) all.emplace_back([&](wake) { both.arrive_and_wait(); });
    REQUIRE(pool.post(all[0]));
    REQUIRE(pool.post(all[1]));
    call refused([](wake) { std::abort(); });
    CHECK_FALSE(pool.post(refused));
    both.arrive_and_wait();
    pool.stop(); // before the barrier goes
}

TEST_CASE("blocking pool: says when it gets busy and when it is done") {
    std::vector<bool> said;
    {
        blocking_pool pool(2, 10, [&](bool busy) { said.push_back(busy); });
        parker go;
        call first([&](wake) { go.park(); }), second([&](wake) { go.park(); });
        REQUIRE(pool.post(first));
        REQUIRE(pool.post(second));
        go.unpark();
        pool.stop();
    }
    CHECK(said == std::vector<bool>{true, false});
}

TEST_CASE("asio: a full pool refuses, and run_blocking says so") {
    asio_runtime rt({.threads = 1, .blocking_threads = 1, .blocking_queue = 1});
    parker inside, go;
    call busy([&](wake) {
        inside.unpark();
        go.park();
    });
    call waiting([](wake) {});
    REQUIRE(rt.post_blocking(busy));
    inside.park();
    REQUIRE(rt.post_blocking(waiting));
    const auto code = [&]() -> errc {
        try {
            sync_wait(rt, run_blocking(rt, [] { return 1; }));
            return errc::internal;
        } catch (const failed& e) {
            return e.code();
        }
    };
    CHECK(code() == errc::overloaded);
    go.unpark();
    rt.stop();
    CHECK(code() == errc::stopped);
}

TEST_CASE("asio: stop wakes blocking work that sleeps on the runtime") {
    asio_runtime rt;
    parker inside;
    std::atomic<sleep_end> end = sleep_end::due;
    call w([&](wake) {
        inside.unpark();
        end = block_for(rt, 1h);
    });
    REQUIRE(rt.post_blocking(w));
    inside.park();
    rt.stop();
    CHECK(end == sleep_end::stopped);
}

TEST_CASE("asio: run_blocking runs on the pool and comes back to a runtime thread") {
    asio_runtime rt({.threads = 1});
    struct places {
        std::thread::id pool, after;
    };
    auto visit = [](runtime& on, places& seen) -> task<int> {
        auto blocking = run_blocking(on, [&seen] {
            seen.pool = std::this_thread::get_id();
            return 42;
        });
        const int value = co_await std::move(blocking);
        seen.after = std::this_thread::get_id();
        co_return value;
    };
    places seen;
    CHECK(sync_wait(rt, visit(rt, seen)) == 42);
    CHECK(seen.pool != seen.after);
    CHECK(seen.pool != std::this_thread::get_id());
    CHECK(seen.after != std::this_thread::get_id());
}
