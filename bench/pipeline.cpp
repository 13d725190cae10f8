// What a policy costs when nothing goes wrong, and when it refuses, beside the loop that one would write by hand.
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <utility>

#include <benchmark/benchmark.h>

#include <holdfast/exception_decision.hpp>
#include <holdfast/sync_wait.hpp>
#include <holdfast/task.hpp>

#include "best_of.hpp"
#include "subjects.hpp"

namespace {

using bench::allocation_count;
using holdfast::attempt;
using holdfast::task;
using std::chrono::steady_clock;

int work(attempt&) noexcept {
    int value = 1;
    benchmark::DoNotOptimize(value);
    return value;
}

task<int> work_async(attempt&) {
    int value = 1;
    benchmark::DoNotOptimize(value);
    co_return value;
}

void clock_read(benchmark::State& state) {
    for (auto _ : state) benchmark::DoNotOptimize(steady_clock::now());
}

// A retry loop as found in many services.
void by_hand_retry(benchmark::State& state) {
    for (auto _ : state) {
        for (int n = 0;; ++n) {
            try {
                int value = 1;
                benchmark::DoNotOptimize(value);
                break;
            } catch (const std::exception&) {
                if (n == 3) throw;
            }
        }
    }
}

// The same with a deadline per attempt and a breaker that counts failures in a row.
void by_hand_timeout_breaker(benchmark::State& state) {
    static std::atomic<int> failures = 0;
    static std::atomic<long> open_until = 0;
    for (auto _ : state) {
        for (int n = 0;; ++n) {
            const auto started = steady_clock::now();
            if (started.time_since_epoch().count() < open_until.load(std::memory_order_acquire))
                throw std::runtime_error("circuit open");
            try {
                int value = 1;
                benchmark::DoNotOptimize(value);
                if (steady_clock::now() - started > std::chrono::seconds{1}) throw std::runtime_error("timed out");
                if (failures.load(std::memory_order_relaxed) != 0) failures.store(0, std::memory_order_relaxed);
                break;
            } catch (const std::exception&) {
                if (failures.fetch_add(1) + 1 >= 5)
                    open_until.store((steady_clock::now() + std::chrono::seconds{5}).time_since_epoch().count());
                if (n == 3) throw;
            }
        }
    }
}

void blocking(benchmark::State& state, const holdfast::policy& policy) {
    auto& policies = bench::running_host().policies();
    for (int i = 0; i < 100; ++i) benchmark::DoNotOptimize(policies.execute(policy, work));
    allocation_count allocations(state);
    allocations.warm();
    for (auto _ : state) benchmark::DoNotOptimize(policies.execute(policy, work));
}

void blocking_as_value(benchmark::State& state, const holdfast::policy& policy) {
    auto& policies = bench::running_host().policies();
    allocation_count allocations(state);
    allocations.warm();
    for (auto _ : state) benchmark::DoNotOptimize(policies.try_execute(policy, work).has_value());
}

task<void> await_in_a_loop(benchmark::State& state, const holdfast::policy& policy) {
    auto& policies = bench::running_host().policies();
    for (int i = 0; i < 100; ++i) benchmark::DoNotOptimize(co_await policies.execute(policy, work_async));
    allocation_count allocations(state);
    allocations.warm();
    for (auto _ : state) {
        const int value = co_await policies.execute(policy, work_async);
        benchmark::DoNotOptimize(value);
    }
}

void coroutine(benchmark::State& state, const holdfast::policy& policy) {
    holdfast::sync_wait(await_in_a_loop(state, policy));
}

void bare_task(benchmark::State& state) {
    struct loop {
        static task<int> one() {
            int value = 1;
            benchmark::DoNotOptimize(value);
            co_return value;
        }
        static task<void> run(benchmark::State& s) {
            for (auto _ : s) benchmark::DoNotOptimize(co_await one());
        }
    };
    holdfast::sync_wait(loop::run(state));
}

void open_circuit(benchmark::State& state) {
    auto& policies = bench::running_host().policies();
    (void)policies.try_execute(bench::opened, [](attempt& a) -> int {
        a.retry_after(holdfast::duration::zero());
        throw std::runtime_error("down");
    });
    blocking_as_value(state, bench::opened);
}

// Ten attempts that fail by value, then one that succeeds: the cost is divided by the ten.
void retry_on_error(benchmark::State& state) {
    auto& policies = bench::running_host().policies();
    const auto unavailable = std::unexpected(holdfast::error{holdfast::errc::unavailable, {}, {}});
    allocation_count allocations(state);
    allocations.warm();
    for (auto _ : state) {
        int left = 10;
        const auto fails_first = [&](attempt&) -> holdfast::result<int> {
            if (left-- > 0) return unavailable;
            return 1;
        };
        benchmark::DoNotOptimize(policies.execute(bench::on_result, fails_first));
    }
    state.counters["per"] = 10;
}

template <int>
struct unrelated_error : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// What comes next for an exception that the last of ten rules takes; nothing is thrown for it.
void find_rule(benchmark::State& state) {
    holdfast::exception_policy rules;
    [&]<int... N>(std::integer_sequence<int, N...>) {
        (rules.on<unrelated_error<N>>().dead_letter(), ...);
    }(std::make_integer_sequence<int, 9>());
    rules.on<std::exception>().retry();
    const auto table = holdfast::resolve({.consumer = &rules});
    const auto thrown = std::make_exception_ptr(std::logic_error("x"));
    holdfast::random_series random(1);
    for (auto _ : state) benchmark::DoNotOptimize(decide(table, holdfast::failure::thrown(thrown), {}, random));
}

BENCHMARK(clock_read)->Name("clock read");
BENCHMARK(by_hand_retry)->Name("by hand: retry");
BENCHMARK(by_hand_timeout_breaker)->Name("by hand: retry, timeout, breaker");
BENCHMARK_CAPTURE(blocking, retry, bench::retry_only)->Name("blocking: retry");
BENCHMARK_CAPTURE(blocking, timeout, bench::timeout_breaker)->Name("blocking: retry, timeout, breaker");
BENCHMARK_CAPTURE(blocking, all, bench::all_stages)->Name("blocking: all stages");
BENCHMARK_CAPTURE(blocking_as_value, retry, bench::retry_only)->Name("blocking: retry, with ledger");
BENCHMARK(bare_task)->Name("coroutine: a bare task");
BENCHMARK_CAPTURE(coroutine, retry, bench::retry_only)->Name("coroutine: retry");
BENCHMARK_CAPTURE(coroutine, timeout, bench::timeout_breaker)->Name("coroutine: retry, timeout, breaker");
BENCHMARK_CAPTURE(coroutine, all, bench::all_stages)->Name("coroutine: all stages");
BENCHMARK(open_circuit)->Name("open circuit, refused as a value");
BENCHMARK(retry_on_error)->Name("one more attempt after a returned error");
BENCHMARK(find_rule)->Name("exception policy: the last of ten rules");
BENCHMARK_CAPTURE(blocking, contended, bench::contended)
    ->Name("breaker, contended")
    ->Threads(1)
    ->Threads(2)
    ->Threads(8)
    ->Threads(64)
    ->UseRealTime();

} // namespace
