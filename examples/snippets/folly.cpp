// What docs/runtime-and-tasks.md quotes about folly.
#include <chrono>
#include <stdexcept>
#include <string>

#include <folly/coro/BlockingWait.h>
#include <folly/coro/Task.h>
#include <folly/executors/CPUThreadPoolExecutor.h>

#include <holdfast/engine.hpp>
#include <holdfast/folly_bridge.hpp>
#include <holdfast/folly_runtime.hpp>

#include "check.hpp"

using namespace std::chrono_literals;

namespace {

inline constexpr auto upload =
    holdfast::policy({.name = "upload", .retry = {.max_attempts = 2, .delay = 1ms}, .timeout = 5s});

folly::coro::Task<std::string> post(bool fails) {
    if (fails) throw std::runtime_error("once more");
    co_return "sent";
}

// [to-task]
// A coroutine of folly's in a task, cancelled with the attempt.
holdfast::task<std::string> send(folly::Executor::KeepAlive<> on, holdfast::attempt& a) {
    co_return co_await holdfast::to_task(on, post(!a.last()), a.stop_token());
}
// [/to-task]

// [to-folly-task]
// A policy from a program that is written with folly::coro::Task.
folly::coro::Task<std::string> send_it(holdfast::policies& policies, folly::Executor::KeepAlive<> on) {
    co_return co_await holdfast::to_folly_task([&](std::stop_token stop) {
        return policies.execute(upload, [on](holdfast::attempt& a) { return send(on, a); }, stop).as_task();
    });
}
// [/to-folly-task]

} // namespace

int main() {
    // [adopt-executor]
    folly::CPUThreadPoolExecutor mine(2); // the application's own
    holdfast::folly_runtime runtime(folly::getKeepAliveToken(mine));
    holdfast::engine engine(runtime);
    engine.add(upload);
    // [/adopt-executor]
    const auto sent = folly::coro::blockingWait(send_it(engine.policies(), runtime.get_executor()));
    runtime.stop();
    check(sent == "sent", "sent through the application's own executor");
    std::puts("ok");
}
