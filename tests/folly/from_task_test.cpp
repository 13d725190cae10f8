// Tasks in folly's coroutines and as futures.
#include <chrono>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <thread>

#include <folly/coro/BlockingWait.h>
#include <folly/coro/WithCancellation.h>
#include <folly/executors/ManualExecutor.h>

#include <holdfast/folly_bridge.hpp>
#include <holdfast/folly_runtime.hpp>
#include <holdfast/sleep.hpp>

#include "catch.hpp"

using namespace holdfast;
using namespace std::chrono_literals;
namespace coro = folly::coro;

namespace {

task<int> add_after(runtime& on, duration d, int a, int b) {
    co_await sleep_for(on, d);
    co_return a + b;
}
task<void> throw_later(runtime& on) {
    co_await resume_on(on);
    throw std::runtime_error("from the task");
}
task<std::unique_ptr<int>> give_pointer(runtime& on) {
    co_await resume_on(on);
    co_return std::make_unique<int>(9);
}
task<sleep_end> sleep_long(runtime& on, std::stop_token stop) {
    co_return co_await sleep_for(on, 1h, std::move(stop));
}
task<void> sleep_or_throw(runtime& on, std::stop_token stop) {
    const auto end = co_await sleep_for(on, 1h, std::move(stop));
    if (end == sleep_end::cancelled) throw operation_cancelled();
}
task<void> cancelled_by_itself() {
    throw operation_cancelled();
    co_return;
}

} // namespace

TEST_CASE("to_folly_task: a task in a folly task") {
    folly_runtime rt;
    auto both = [](folly_runtime& on) -> coro::Task<int> {
        const int sum = co_await to_folly_task(add_after(on, 1ms, 1, 2));
        const auto pointer = co_await to_folly_task(give_pointer(on));
        co_return sum + *pointer;
    };
    CHECK(coro::blockingWait(both(rt)) == 12);
}

TEST_CASE("to_folly_task: the folly task goes on on its own executor") {
    folly_runtime rt;
    auto where = [](folly_runtime& on) -> coro::Task<std::thread::id> {
        co_await to_folly_task(add_after(on, 1ms, 1, 2));
        co_return std::this_thread::get_id();
    };
    CHECK(coro::blockingWait(where(rt)) == std::this_thread::get_id()); // blockingWait runs it here
}

TEST_CASE("to_folly_task: an exception leaves the task through the folly task") {
    folly_runtime rt;
    CHECK_THROWS_WITH(coro::blockingWait(to_folly_task(throw_later(rt))), "from the task");
}

TEST_CASE("to_folly_task: cancelling the folly task fires the task's stop token") {
    folly_runtime rt;
    folly::CancellationSource cancel;
    auto make = [&rt](std::stop_token stop) { return sleep_long(rt, std::move(stop)); };
    std::jthread canceller([&] { cancel.requestCancellation(); });
    CHECK(coro::blockingWait(coro::co_withCancellation(cancel.getToken(), to_folly_task(make))) ==
          sleep_end::cancelled);
}

TEST_CASE("to_folly_task: a task that ends for the cancellation ends the folly task as cancelled") {
    folly_runtime rt;
    folly::CancellationSource cancel;
    auto make = [&rt](std::stop_token stop) { return sleep_or_throw(rt, std::move(stop)); };
    std::jthread canceller([&] { cancel.requestCancellation(); });
    CHECK_THROWS_AS(coro::blockingWait(coro::co_withCancellation(cancel.getToken(), to_folly_task(make))),
                    folly::OperationCancelled);
    CHECK_THROWS_AS(coro::blockingWait(to_folly_task(cancelled_by_itself())), operation_cancelled);
}

TEST_CASE("to_folly_task: a function that makes a task is kept until the task has ended") {
    folly_runtime rt;
    auto held = std::make_shared<int>(5);
    auto result = to_folly_task([held, &rt](std::stop_token) -> task<int> { // reads its captures after a suspension
        co_await sleep_for(rt, 1ms);
        co_return *held;
    });
    CHECK(coro::blockingWait(std::move(result)) == 5);
}

TEST_CASE("to_semi_future: gives the task's value or its exception") {
    folly_runtime rt;
    CHECK(to_semi_future(rt.get_executor(), add_after(rt, 1ms, 20, 22)).get() == 42);
    CHECK(*to_semi_future(rt.get_executor(), give_pointer(rt)).get() == 9);
    CHECK_THROWS_WITH(to_semi_future(rt.get_executor(), throw_later(rt)).get(), "from the task");
}

TEST_CASE("to_semi_future: starts the task on the executor, never inside the call") {
    folly::ManualExecutor mine;
    std::thread::id where;
    auto note = [&where](std::stop_token) -> task<void> {
        where = std::this_thread::get_id();
        co_return;
    };
    auto future = to_semi_future(folly::getKeepAliveToken(mine), note);
    CHECK(where == std::thread::id{});
    mine.drain();
    CHECK(where == std::this_thread::get_id());
    CHECK(future.isReady());
}

TEST_CASE("to_semi_future: cancelling the future fires the task's stop token") {
    folly_runtime rt;
    auto future =
        to_semi_future(rt.get_executor(), [&rt](std::stop_token stop) { return sleep_long(rt, std::move(stop)); });
    future.cancel();
    CHECK(std::move(future).get() == sleep_end::cancelled);
    auto thrown =
        to_semi_future(rt.get_executor(), [&rt](std::stop_token stop) { return sleep_or_throw(rt, std::move(stop)); });
    thrown.cancel();
    CHECK_THROWS_AS(std::move(thrown).get(), folly::FutureCancellation);
}

TEST_CASE("bridges: a stop goes through a folly task into a task and back") {
    folly_runtime rt;
    std::stop_source stop;
    auto make = [&rt](std::stop_token s) { return sleep_long(rt, std::move(s)); };
    std::jthread stopper([&] { stop.request_stop(); });
    bool cancelled = false;
    try {
        cancelled =
            sync_wait(to_task(rt.get_executor(), to_folly_task(make), stop.get_token())) == sleep_end::cancelled;
    } catch (const operation_cancelled&) {
        cancelled = true; // before the task began
    }
    CHECK(cancelled);
}
