// A runtime for tests: one thread, virtual time, an order of its own choosing that a seed repeats exactly. Hours pass
// in milliseconds: whenever somebody waits and nothing is left to run, time jumps to the next timer.
#pragma once

#include <cstdint>
#include <vector>

#include <holdfast/backoff.hpp>
#include <holdfast/runtime.hpp>
#include <holdfast/timer_queue.hpp>

namespace holdfast {

// One thread only. Blocking work runs like posted work, on the same thread; when it waits, other work runs inside that
// wait, so blocking calls that wait for each other cannot be simulated. A timer runs when nothing else is runnable.
class simulated_runtime final : public runtime {
public:
    // Seed 0 runs work in the order in which it was posted; any other seed shuffles what is runnable at the same time.
    explicit simulated_runtime(std::uint64_t seed = 0);
    ~simulated_runtime() override;

    std::string_view name() const noexcept override { return "simulated"; }
    time_point now() const noexcept override { return now_; }
    bool post(work& w) noexcept override;
    bool post_blocking(work& w) noexcept override;
    bool arm(timer& t, time_point due) noexcept override;
    bool cancel(timer& t) noexcept override;
    // Runs work, and moves time, until p is unparked. Aborts with a message when nothing is left that could unpark it.
    void wait(parker& p) noexcept override;
    void stop() noexcept override;
    bool stopped() const noexcept override { return stopped_; }

    // Runs everything that is runnable now, without moving time.
    void run_ready();
    // Moves time by d, running on the way everything that falls due, at its own time.
    void advance(duration d);
    // Runs until nothing is runnable and no timer is armed, except for `never`.
    void run_until_idle();
    // Timers that are armed.
    std::size_t timers() const noexcept { return timers_.size(); }

private:
    bool run_one();
    bool jump_to_next(time_point no_later_than);

    time_point now_{std::chrono::hours{1}}; // not zero, so that an uninitialised time shows
    timer_queue timers_;
    std::vector<work*> ready_; // from first_ on
    std::size_t first_ = 0;
    random_series random_;
    bool shuffle_;
    bool stopped_ = false;
};

} // namespace holdfast
