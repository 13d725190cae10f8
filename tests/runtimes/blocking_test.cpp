// Blocking work on the runtime's pool.
#include <atomic>
#include <chrono>
#include <thread>

#include <holdfast/sleep.hpp>

#include "catch.hpp"
#include "runtimes/call.hpp"
#include "runtimes/under_test.hpp"

using namespace holdfast;
using namespace std::chrono_literals;
using holdfast::testing::call;
using holdfast::testing::runtime_under_test;

TEST_CASE("a full pool refuses, and run_blocking says so") {
    runtime_under_test rt({.threads = 1, .blocking_threads = 1, .blocking_queue = 1});
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

TEST_CASE("stop wakes blocking work that sleeps on the runtime") {
    runtime_under_test rt;
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

TEST_CASE("run_blocking runs on the pool and comes back to a runtime thread") {
    runtime_under_test rt({.threads = 1});
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
