// folly's coroutines and futures in tasks.
#include <chrono>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <thread>

#include <folly/coro/Baton.h>
#include <folly/coro/Sleep.h>
#include <folly/executors/ManualExecutor.h>
#include <folly/futures/HeapTimekeeper.h>
#include <folly/futures/Promise.h>

#include <holdfast/folly_bridge.hpp>
#include <holdfast/folly_runtime.hpp>
#include <holdfast/sleep.hpp>

#include "catch.hpp"

using namespace holdfast;
using namespace std::chrono_literals;
namespace coro = folly::coro;

namespace {

coro::Task<int> add(int a, int b) {
    co_return a + b;
}
coro::Task<std::unique_ptr<int>> give_pointer() {
    co_return std::make_unique<int>(9);
}
coro::Task<void> fail() {
    throw std::runtime_error("from folly");
    co_return;
}
coro::Task<std::thread::id> where() {
    co_return std::this_thread::get_id();
}
coro::Task<void> sleep_long(folly::Timekeeper& on) {
    co_await coro::sleep(1h, &on);
}
coro::Task<int> late_value(folly::Timekeeper& on) {
    co_await coro::co_awaitTry(coro::sleep(1h, &on));
    co_return 7;
}
coro::Task<void> cancelled_by_itself() {
    throw folly::OperationCancelled();
    co_return;
}

} // namespace

TEST_CASE("to_task: a folly task in a task") {
    folly_runtime rt;
    auto both = [](folly_runtime& on) -> task<int> {
        const int sum = co_await to_task(on.get_executor(), add(1, 2));
        const auto pointer = co_await to_task(on.get_executor(), give_pointer());
        co_return sum + *pointer;
    };
    CHECK(sync_wait(both(rt)) == 12);
}

TEST_CASE("to_task: the folly task runs on the executor, and the task goes on there") {
    folly_runtime rt({.threads = 1});
    auto places = [](folly_runtime& on) -> task<bool> {
        const auto inside = co_await to_task(on.get_executor(), where());
        co_return inside == std::this_thread::get_id();
    };
    CHECK(sync_wait(places(rt)));
}

TEST_CASE("to_task: nothing of the folly task runs inside the call that awaits it") {
    folly::ManualExecutor mine;
    bool ended = false;
    auto await = [](folly::ManualExecutor& on, bool& done) -> task<void> {
        co_await to_task(folly::getKeepAliveToken(on), add(1, 2));
        done = true;
    };
    auto running = await(mine, ended);
    parker done;
    detail::unpark_at_end(running, done);
    CHECK_FALSE(ended);
    mine.drain();
    CHECK(ended);
}

TEST_CASE("to_task: an exception leaves the folly task through the task") {
    folly_runtime rt;
    CHECK_THROWS_WITH(sync_wait(to_task(rt.get_executor(), fail())), "from folly");
}

TEST_CASE("to_task: a stop cancels the folly task, and the task says so") {
    folly_runtime rt;
    folly::HeapTimekeeper timekeeper;
    std::stop_source stop;
    std::jthread stopper([&] { stop.request_stop(); });
    CHECK_THROWS_AS(sync_wait(to_task(rt.get_executor(), sleep_long(timekeeper), stop.get_token())),
                    operation_cancelled);
}

TEST_CASE("to_task: stopped before it began, the folly task does not begin") {
    folly::ManualExecutor nobody_runs;
    std::stop_source stop;
    stop.request_stop();
    const auto on = folly::getKeepAliveToken(nobody_runs);
    CHECK_THROWS_AS(sync_wait(to_task(on, add(1, 2), stop.get_token())), operation_cancelled);
    CHECK_THROWS_AS(sync_wait(to_task(on, fail(), stop.get_token())), operation_cancelled);
    CHECK_THROWS_AS(sync_wait(to_task(on, folly::makeSemiFuture(), stop.get_token())), operation_cancelled);
}

TEST_CASE("to_task: a value that comes after the stop is kept") {
    folly_runtime rt;
    folly::HeapTimekeeper timekeeper;
    std::stop_source stop;
    auto late = [](folly_runtime& on, folly::Timekeeper& by, std::stop_source s) -> task<int> {
        std::jthread stopper([&s] {
            std::this_thread::sleep_for(2ms); // let it begin
            s.request_stop();
        });
        co_return co_await to_task(on.get_executor(), late_value(by), s.get_token());
    };
    CHECK(sync_wait(late(rt, timekeeper, stop)) == 7);
}

TEST_CASE("to_task: a folly task that is cancelled without a stop keeps its exception") {
    folly_runtime rt;
    std::stop_source stop;
    CHECK_THROWS_AS(sync_wait(to_task(rt.get_executor(), cancelled_by_itself(), stop.get_token())),
                    folly::OperationCancelled);
}

TEST_CASE("to_task: a future in a task") {
    folly_runtime rt;
    folly::Promise<int> promise;
    std::jthread fulfil([&] { promise.setValue(5); });
    CHECK(sync_wait(to_task(rt.get_executor(), promise.getSemiFuture())) == 5);
    sync_wait(to_task(rt.get_executor(), folly::makeSemiFuture()));
    CHECK_THROWS_WITH(
        sync_wait(to_task(rt.get_executor(), folly::makeSemiFuture<int>(std::runtime_error("from a future")))),
        "from a future");
}

TEST_CASE("to_task: a future that is deferred runs on the executor") {
    folly_runtime rt({.threads = 1});
    auto deferred = folly::makeSemiFuture().deferValue([](folly::Unit) { return std::this_thread::get_id(); });
    CHECK(sync_wait(to_task(rt.get_executor(), std::move(deferred))) != std::this_thread::get_id());
}

TEST_CASE("to_task: a stop cancels the future, and the task says so") {
    folly_runtime rt;
    folly::HeapTimekeeper timekeeper;
    std::stop_source stop;
    std::jthread stopper([&] { stop.request_stop(); });
    CHECK_THROWS_AS(sync_wait(to_task(rt.get_executor(), timekeeper.after(1h), stop.get_token())), operation_cancelled);
}

TEST_CASE("to_task: a stop that races the end of the folly task ends it once") {
    folly_runtime rt;
    for (int round = 0; round < 500; ++round) {
        std::stop_source stop;
        folly::Promise<int> promise;
        auto future = promise.getSemiFuture();
        std::jthread stopper([&] { stop.request_stop(); });
        std::jthread fulfil([&] { promise.setValue(1); });
        try {
            CHECK(sync_wait(to_task(rt.get_executor(), std::move(future), stop.get_token())) == 1);
            CHECK(sync_wait(to_task(rt.get_executor(), add(1, round), stop.get_token())) == round + 1);
        } catch (const operation_cancelled&) {
            CHECK(stop.stop_requested());
        }
    }
}
