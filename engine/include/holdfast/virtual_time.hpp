// Virtual time on a real runtime: work runs on the inner runtime's threads and pool, timers on a clock that jumps. The
// conformance kit runs every case that involves time on this, so that no test sleeps and every runtime is tried with
// the same schedule.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

#include <holdfast/runtime.hpp>
#include <holdfast/timer_queue.hpp>

namespace holdfast {

// Time moves only inside wait(): when all posted and blocking work has ended (or waits here itself), it jumps to the
// next timer. Timers run one at a time, each settled before the next, a timer of the past too. Aborts with a message
// when somebody waits and nothing happens for ten seconds of real time. The inner runtime must outlive this, must run
// its work on threads of its own, and is not stopped by it.
class virtual_time_runtime final : public runtime {
public:
    explicit virtual_time_runtime(runtime& inner);
    ~virtual_time_runtime() override;

    std::string_view name() const noexcept override { return inner_.name(); }
    time_point now() const noexcept override;
    bool post(work& w) noexcept override;
    bool post_blocking(work& w) noexcept override;
    bool arm(timer& t, time_point due) noexcept override;
    bool cancel(timer& t) noexcept override;
    void wait(parker& p) noexcept override;
    void stop() noexcept override;
    bool stopped() const noexcept override;

    std::size_t timers() const;

    // While this lives, time does not move behind the back of the thread that made it: it counts as running, except
    // inside wait(). Without it, a thread of the caller's own counts only while it waits. Destroy it on its thread.
    class participant {
    public:
        explicit participant(virtual_time_runtime& in) noexcept;
        ~participant();
        participant(const participant&) = delete;
        participant& operator=(const participant&) = delete;

    private:
        virtual_time_runtime& in_;
        const virtual_time_runtime* before_;
    };

private:
    struct carrier;

    bool forward(work& w, bool blocking) noexcept;
    void run_timer(std::unique_lock<std::mutex>& lock, timer& t, wake why) noexcept;
    void work_ended() noexcept;
    void left_pool_queue() noexcept;
    bool settled(bool pool_is_stuck) const noexcept;

    runtime& inner_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    timer_queue timers_;
    std::vector<const parker*> awaited_; // by everybody who is inside wait()
    std::atomic<std::int64_t> now_;
    std::uint64_t progress_ = 0;
    int carried_ = 0;       // work that was taken and has not ended, and participants
    int waiting_ = 0;       // of that, what is inside wait()
    int in_pool_queue_ = 0; // of that, what the pool has not started
    std::atomic<bool> stopped_ = false;
};

} // namespace holdfast
