#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <deque>
#include <latch>
#include <set>
#include <thread>
#include <vector>

#include <holdfast/blocking_pool.hpp>

#include "catch.hpp"
#include "runtimes/call.hpp"

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
