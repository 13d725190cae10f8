#include "sleepers.hpp"

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <stop_token>

#include <holdfast/runtime.hpp>
#include <holdfast/sync_wait.hpp>
#include <holdfast/task_scope.hpp>

#include "allocations.hpp"
#include "subjects.hpp"

namespace bench {
namespace {

using std::chrono::steady_clock;

double milliseconds_since(steady_clock::time_point start) {
    return std::chrono::duration<double, std::milli>(steady_clock::now() - start).count();
}

holdfast::task<int> fail(holdfast::attempt&) {
    throw std::runtime_error("down");
    co_return 0;
}

holdfast::task<void> sleep_between_attempts(holdfast::policies& policies, std::stop_token stop,
                                            std::atomic<int>& ended) {
    const auto outcome = co_await policies.try_execute(patient, fail, std::move(stop));
    if (outcome.stop_reason() == holdfast::stop_reason::cancelled) ended.fetch_add(1);
}

struct counted_timer : holdfast::timer {
    holdfast::runtime* on = nullptr;
    holdfast::time_point wanted{};
    std::atomic<int>* early = nullptr;
    std::atomic<int>* left = nullptr;
    holdfast::parker* done = nullptr;

    static void expired(holdfast::work& w, holdfast::wake) noexcept {
        auto& self = static_cast<counted_timer&>(static_cast<holdfast::timer&>(w));
        if (self.on->now() < self.wanted) self.early->fetch_add(1);
        if (self.left->fetch_sub(1) == 1) self.done->unpark();
    }
};

} // namespace

sleeper_figures measure_sleepers(holdfast::policies& policies, int count) {
    holdfast::task_scope scope;
    std::stop_source stop;
    std::atomic<int> ended = 0;
    const std::size_t before = bytes_in_use();
    for (int i = 0; i < count; ++i) scope.spawn(sleep_between_attempts(policies, stop.get_token(), ended));
    const double bytes = static_cast<double>(bytes_in_use() - before);
    const auto start = steady_clock::now();
    stop.request_stop();
    holdfast::sync_wait(scope.join());
    const double took = milliseconds_since(start);
    return {ended.load(), bytes / count, took};
}

timer_figures measure_timers(holdfast::runtime& on, int count) {
    const auto timers = std::make_unique<counted_timer[]>(static_cast<std::size_t>(count));
    std::atomic<int> early = 0;
    std::atomic<int> left = count;
    holdfast::parker done;
    const auto start = steady_clock::now();
    const auto base = on.now();
    int refused = 0;
    for (int i = 0; i < count; ++i) {
        auto& t = timers[static_cast<std::size_t>(i)];
        t.run = &counted_timer::expired;
        t.on = &on;
        t.wanted = base + std::chrono::microseconds{(i * 7919L) % 50'000};
        t.early = &early;
        t.left = &left;
        t.done = &done;
        if (!on.arm(t, t.wanted)) ++refused;
    }
    if (refused == 0) on.wait(done);
    return {count, milliseconds_since(start), early.load(), left.load()};
}

} // namespace bench
