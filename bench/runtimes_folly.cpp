// folly's own retries, timeouts and sleeps.
#include <chrono>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>
#include <folly/CancellationToken.h>
#include <folly/coro/BlockingWait.h>
#include <folly/coro/Collect.h>
#include <folly/coro/Retry.h>
#include <folly/coro/Sleep.h>
#include <folly/coro/Task.h>
#include <folly/coro/Timeout.h>
#include <folly/coro/WithCancellation.h>
#include <folly/executors/CPUThreadPoolExecutor.h>
#include <folly/futures/HeapTimekeeper.h>

#include <holdfast/folly_runtime.hpp>

#include "best_of.hpp"
#include "runtimes.hpp"

namespace bench {
namespace {

namespace coro = folly::coro;
using namespace std::chrono_literals;

constexpr int chain = 1000;
constexpr std::uint32_t retries = 3;

folly::CPUThreadPoolExecutor& executor() {
    static folly::CPUThreadPoolExecutor instance(2);
    return instance;
}
folly::Timekeeper& timekeeper() {
    static folly::HeapTimekeeper instance;
    return instance;
}

coro::Task<int> work() {
    int value = 1;
    benchmark::DoNotOptimize(value);
    co_return value;
}

void add_step(int left, holdfast::parker& done) {
    if (left == 0) return done.unpark();
    executor().add([left, &done] { add_step(left - 1, done); });
}

void add(benchmark::State& state) {
    allocation_count allocations(state);
    allocations.warm();
    for (auto _ : state) {
        holdfast::parker done;
        add_step(chain, done);
        done.park();
    }
    state.counters["per"] = chain;
}

void after_and_cancel(benchmark::State& state) {
    allocation_count allocations(state);
    allocations.warm();
    for (auto _ : state) timekeeper().after(1h).cancel();
}

coro::Task<void> retry_in_a_loop(benchmark::State& state) {
    for (int i = 0; i < 100; ++i) co_await coro::retryN(retries, work);
    allocation_count allocations(state);
    allocations.warm();
    for (auto _ : state) {
        const int value = co_await coro::retryN(retries, work);
        benchmark::DoNotOptimize(value);
    }
}

coro::Task<void> timeout_in_a_loop(benchmark::State& state) {
    for (int i = 0; i < 100; ++i) co_await coro::timeout(coro::retryN(retries, work), 1s, &timekeeper());
    allocation_count allocations(state);
    allocations.warm();
    for (auto _ : state) {
        const int value = co_await coro::timeout(coro::retryN(retries, work), 1s, &timekeeper());
        benchmark::DoNotOptimize(value);
    }
}

void run(coro::Task<void> what) {
    coro::blockingWait(coro::co_withExecutor(folly::getKeepAliveToken(executor()), std::move(what)));
}

coro::Task<int> fail() {
    throw std::runtime_error("down");
    co_return 0;
}

coro::Task<void> sleep_between_attempts() {
    co_await coro::retryWhen(fail, [](const folly::exception_wrapper&) { return coro::sleep(10min, &timekeeper()); });
}

} // namespace

std::unique_ptr<holdfast::runtime> make_folly_runtime() {
    return std::make_unique<holdfast::folly_runtime>();
}

void register_folly_itself() {
    const auto add_one = [](const char* name, auto what) { benchmark::RegisterBenchmark(name, what)->UseRealTime(); };
    add_one("folly's own: Executor::add", add);
    add_one("folly's own: Timekeeper::after, cancelled", after_and_cancel);
    add_one("folly's own: retryN", [](benchmark::State& s) { run(retry_in_a_loop(s)); });
    add_one("folly's own: timeout(retryN)", [](benchmark::State& s) { run(timeout_in_a_loop(s)); });
}

sleeper_figures sleepers_on_folly_itself(int count) {
    folly::CancellationSource cancel;
    const std::size_t before = bytes_in_use();
    std::vector<folly::SemiFuture<folly::Unit>> ends;
    ends.reserve(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i)
        ends.push_back(coro::co_withExecutor(folly::getKeepAliveToken(executor()),
                                             coro::co_withCancellation(cancel.getToken(), sleep_between_attempts()))
                           .start());
    holdfast::parker all_asleep; // the executor takes things in order, and has two threads
    executor().add([&] { all_asleep.unpark(); });
    all_asleep.park();
    const double bytes = static_cast<double>(bytes_in_use() - before);
    const auto start = std::chrono::steady_clock::now();
    cancel.requestCancellation();
    folly::collectAll(std::move(ends)).wait();
    const auto took = std::chrono::steady_clock::now() - start;
    return {count, bytes / count, std::chrono::duration<double, std::milli>(took).count()};
}

} // namespace bench
