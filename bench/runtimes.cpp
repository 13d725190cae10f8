// What a runtime costs: a piece of work, a timer that is called off, and a policy when nothing goes wrong.
#include "runtimes.hpp"

#include <chrono>

#include <benchmark/benchmark.h>

#include <holdfast/engine.hpp>
#include <holdfast/sleep.hpp>
#include <holdfast/sync_wait.hpp>

#include "best_of.hpp"
#include "subjects.hpp"

namespace bench {
namespace {

using holdfast::attempt;
using holdfast::task;

constexpr int chain = 1000;

// Work that posts itself again and again.
struct link : holdfast::work {
    holdfast::runtime* on = nullptr;
    int left = 0;
    holdfast::parker* done = nullptr;

    static void step(holdfast::work& w, holdfast::wake) noexcept {
        auto& self = static_cast<link&>(w);
        if (--self.left == 0 || !self.on->post(self)) self.done->unpark();
    }
};

void post(benchmark::State& state, holdfast::runtime& on) {
    allocation_count allocations(state);
    allocations.warm();
    for (auto _ : state) {
        holdfast::parker done;
        link each;
        each.run = &link::step;
        each.on = &on;
        each.left = chain;
        each.done = &done;
        if (!on.post(each)) return state.SkipWithError("stopped");
        on.wait(done);
    }
    state.counters["per"] = chain;
}

void arm_and_cancel(benchmark::State& state, holdfast::runtime& on) {
    holdfast::timer t;
    t.run = [](holdfast::work&, holdfast::wake) noexcept {};
    const auto due = on.now() + std::chrono::hours{1};
    allocation_count allocations(state);
    allocations.warm();
    for (auto _ : state) {
        benchmark::DoNotOptimize(on.arm(t, due));
        benchmark::DoNotOptimize(on.cancel(t));
    }
}

task<int> work_async(attempt&) {
    int value = 1;
    benchmark::DoNotOptimize(value);
    co_return value;
}

task<void> execute_in_a_loop(benchmark::State& state, holdfast::runtime& on, const holdfast::policy& policy) {
    holdfast::engine engine(on);
    engine.add(policy);
    co_await holdfast::resume_on(on);
    for (int i = 0; i < 100; ++i) benchmark::DoNotOptimize(co_await engine.policies().execute(policy, work_async));
    allocation_count allocations(state);
    allocations.warm();
    for (auto _ : state) {
        const int value = co_await engine.policies().execute(policy, work_async);
        benchmark::DoNotOptimize(value);
    }
}

void execute(benchmark::State& state, holdfast::runtime& on, const holdfast::policy& policy) {
    holdfast::sync_wait(execute_in_a_loop(state, on, policy));
}

} // namespace

void register_runtime(const std::string& name, holdfast::runtime& on) {
    const auto add = [&](const char* what, auto run) {
        benchmark::RegisterBenchmark((name + ": " + what).c_str(), run)->UseRealTime();
    };
    add("post", [&on](benchmark::State& s) { post(s, on); });
    add("timer, armed and called off", [&on](benchmark::State& s) { arm_and_cancel(s, on); });
    add("retry", [&on](benchmark::State& s) { execute(s, on, retry_only); });
    add("retry, timeout", [&on](benchmark::State& s) { execute(s, on, retry_timeout); });
}

sleeper_figures sleepers_on(holdfast::runtime& on, int count) {
    holdfast::engine engine(on);
    engine.add(patient);
    return measure_sleepers(engine.policies(), count);
}

} // namespace bench
