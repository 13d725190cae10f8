// The queue of work and the timers of a runtime that runs on somebody's threads, and the functions ("lanes") that run
// them there. For authors of runtimes.
//
// A lane runs work until there is none left, or for a batch, after which it lets others on those threads have a turn.
// There are as many lanes as pieces of work that may run at the same time. Whoever brings work wakes an idle lane if
// there is one; otherwise bringing work costs a lock and a link. All timers share one alarm, which is touched only when
// the earliest deadline gets earlier.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include <holdfast/detail/work_list.hpp>
#include <holdfast/runtime.hpp>
#include <holdfast/timer_queue.hpp>

namespace holdfast {

// What a library brings: threads that run a lane, and an alarm. The object lives until the last lane that was scheduled
// has run, or was thrown away with its executor, which may be long after stop().
class work_lanes {
public:
    using clock = std::chrono::steady_clock;

    work_lanes(const work_lanes&) = delete;
    work_lanes& operator=(const work_lanes&) = delete;

    bool post(work& w) noexcept {
        lane* woken = nullptr;
        {
            const std::lock_guard lock(mutex_);
            if (stopping_) return false;
            ready_.push(w);
            woken = take_to_wake();
        }
        if (woken != nullptr) wake_up(*woken);
        return true;
    }

    // Also false when there is no memory left for one more timer.
    bool arm(timer& t, time_point due) noexcept {
        lane* woken = nullptr;
        {
            const std::lock_guard lock(mutex_);
            if (stopping_) return false;
            try {
                timers_.push(t, due);
                if (t.position == 0 && rings_after(due)) {
                    if (due <= clock::now()) woken = take_to_wake(); // no lane idle: one that runs will see it
                    else ring_at(due);
                }
            } catch (...) {
                timers_.remove(t);
                return false;
            }
        }
        if (woken != nullptr) wake_up(*woken);
        return true;
    }

    bool cancel(timer& t) noexcept {
        lane* woken = nullptr;
        {
            const std::lock_guard lock(mutex_);
            if (!timers_.remove(t)) return false;
            if (stopping_) quiet_.notify_all();
            else if (traits_.alarm_holds && alarm_is_set_ && timers_.empty()) woken = take_to_wake(); // it silences it
        }
        if (woken != nullptr) wake_up(*woken);
        return true;
    }

    bool takes_work() noexcept {
        const std::lock_guard lock(mutex_);
        return !stopping_;
    }

    // Refuses new work, has everything run that was taken, and returns when nothing runs any more. Once.
    void stop() noexcept {
        std::unique_lock lock(mutex_);
        stopping_ = true;
        while (!quiet()) {
            lane* mine = take_waiting();
            if (mine == nullptr) {
                quiet_.wait(lock);
                continue;
            }
            lock.unlock();
            if (traits_.adopted) run(*mine); // maybe nobody runs the threads any more
            else schedule(number_of(*mine));
            lock.lock();
        }
        silence();
        lock.unlock();
        while (waking_.load(std::memory_order_acquire) != 0) std::this_thread::yield();
    }

protected:
    struct traits {
        std::size_t lanes = 1;
        bool adopted = false;     // others run the threads, or no longer do: stop() does the work itself
        bool alarm_holds = false; // a set alarm keeps the threads from ending, so it may not outlive the timers
    };

    explicit work_lanes(const traits& t) : traits_(t), lanes_(t.lanes) {
        for (lane& each : lanes_) make_idle(each);
    }
    ~work_lanes() = default;

    // Calls run_lane(which) on a thread, never inside this call. At most once at a time for each lane.
    virtual void schedule(std::size_t which) noexcept = 0;
    // Replaces the alarm: rang(number) is to be called on a thread at `at` or later, never inside this call; earlier is
    // taken for a false alarm. Both are called under a lock that rang() takes.
    virtual void set_alarm(time_point at, std::uint64_t number) = 0;
    virtual void put_alarm_off() noexcept = 0; // also when it has rung, or was never set

    void run_lane(std::size_t which) noexcept { run(lanes_[which]); }

    // For a thread that may run a lane and has work to bring: takes w and tells which lane that thread has to run next,
    // by run_lane(), unless one that runs will see to it.
    struct brought {
        bool taken = false; // false: stopped
        std::optional<std::size_t> lane{};
    };
    brought bring(work& w) noexcept {
        const std::lock_guard lock(mutex_);
        if (stopping_) return {};
        ready_.push(w);
        lane* mine = take_idle();
        return {.taken = true, .lane = mine == nullptr ? std::nullopt : std::optional(number_of(*mine))};
    }

    // Runs a lane, so on a thread that may.
    void rang(std::uint64_t number) noexcept {
        lane* me = nullptr;
        {
            const std::lock_guard lock(mutex_);
            if (number != alarm_number_ || stopping_) return; // set anew meanwhile
            alarm_is_set_ = false;
            me = take_idle();
        }
        if (me != nullptr) run(*me);
    }

private:
    static constexpr unsigned batch = 64;
    static constexpr time_point no_time = time_point::min();

    enum class state : unsigned char { idle, scheduled, running };

    struct lane {
        lane* next_idle = nullptr;
        state now = state::idle;
        bool timer_turn = false;
        time_point clock_read = no_time;
        std::optional<time_point> due; // of the timer that it runs
        detail::work_list same_due;    // timers for that very time, which have to wait for it
    };

    struct picked {
        work* what = nullptr;
        wake why = wake::due;
        lane* helper = nullptr; // to be woken, for there is more
    };

    void make_idle(lane& l) noexcept {
        l.now = state::idle;
        l.next_idle = idle_;
        idle_ = &l;
    }
    lane* take_idle() noexcept {
        lane* l = idle_;
        if (l == nullptr) return nullptr;
        idle_ = l->next_idle;
        l->now = state::scheduled;
        return l;
    }
    // For wake_up(), once the lock is free.
    lane* take_to_wake() noexcept {
        lane* l = take_idle();
        if (l != nullptr) waking_.fetch_add(1, std::memory_order_relaxed);
        return l;
    }
    void wake_up(lane& l) noexcept {
        schedule(number_of(l));
        waking_.fetch_sub(1, std::memory_order_release);
    }
    std::size_t number_of(const lane& l) const noexcept { return static_cast<std::size_t>(&l - lanes_.data()); }

    void run(lane& me) noexcept {
        std::unique_lock lock(mutex_);
        if (me.now != state::scheduled) return; // stop() ran it instead
        me.now = state::running;
        ++running_;
        me.clock_read = timers_.empty() ? no_time : clock::now();
        for (unsigned done = 0; done < batch || stopping_; ++done) {
            const picked next = pick(me);
            if (next.what == nullptr && !due_left(me)) return retire(me);
            if (next.what == nullptr) break;
            lock.unlock();
            if (next.helper != nullptr) wake_up(*next.helper);
            next.what->run(*next.what, next.why);
            lock.lock();
        }
        --running_;
        me.now = state::scheduled;
        if (me.same_due.empty()) me.due.reset();
        waking_.fetch_add(1, std::memory_order_relaxed);
        lock.unlock();
        wake_up(me);
    }

    void retire(lane& me) noexcept {
        --running_;
        make_idle(me);
        if (stopping_) {
            quiet_.notify_all();
        } else if (timers_.empty()) {
            if (traits_.alarm_holds && alarm_is_set_) silence();
        } else if (rings_after(timers_.next_due())) {
            ring_at(timers_.next_due());
        }
    }

    picked pick(lane& me) noexcept {
        if (work* w = me.same_due.pop()) return {w, stopping_ ? wake::stopped : wake::due, nullptr};
        me.due.reset();
        me.timer_turn = !me.timer_turn; // neither timers nor work may starve the other
        if (me.timer_turn)
            if (const picked p = pick_timer(me); p.what != nullptr) return p;
        if (work* w = ready_.pop()) return {w, wake::due, nullptr};
        if (!timers_.empty()) me.clock_read = clock::now();
        return pick_timer(me);
    }

    picked pick_timer(lane& me) noexcept {
        for (unsigned moved = 0; moved < batch || stopping_; ++moved) {
            timer* t = stopping_ ? timers_.pop() : timers_.pop_due(me.clock_read);
            if (t == nullptr) return {};
            if (lane* holder = holder_of(t->due)) {
                holder->same_due.push(*t);
                continue;
            }
            me.due = t->due;
            const bool more = stopping_ ? !timers_.empty() : timers_.next_due() <= me.clock_read;
            return {t, stopping_ ? wake::stopped : wake::due, more ? take_to_wake() : nullptr};
        }
        return {};
    }

    bool due_left(const lane& me) const noexcept { return !timers_.empty() && timers_.next_due() <= me.clock_read; }

    // The lane that runs a timer for that time.
    lane* holder_of(time_point due) noexcept {
        for (lane& each : lanes_)
            if (each.due == due) return &each;
        return nullptr;
    }

    bool rings_after(time_point due) const noexcept { return !alarm_is_set_ || due < alarm_at_; }
    void ring_at(time_point at) {
        ++alarm_number_;
        alarm_is_set_ = false;
        set_alarm(at, alarm_number_);
        alarm_at_ = at;
        alarm_is_set_ = true;
    }
    void silence() noexcept {
        ++alarm_number_;
        alarm_is_set_ = false;
        put_alarm_off();
    }

    bool quiet() const noexcept {
        if (running_ != 0 || !ready_.empty() || !timers_.empty()) return false;
        for (const lane& each : lanes_)
            if (!each.same_due.empty()) return false;
        return true;
    }

    // For stop(): a lane that no thread runs and that would find work. On threads of our own those that are scheduled
    // run by themselves.
    lane* take_waiting() noexcept {
        const bool anything = !ready_.empty() || !timers_.empty();
        if (anything && idle_ != nullptr) return take_idle();
        if (!traits_.adopted) return nullptr;
        for (lane& each : lanes_)
            if (each.now == state::scheduled && (anything || !each.same_due.empty())) return &each;
        return nullptr;
    }

    const traits traits_;
    std::mutex mutex_;
    std::condition_variable quiet_;
    detail::work_list ready_;
    timer_queue timers_;
    std::vector<lane> lanes_;
    lane* idle_ = nullptr;
    std::size_t running_ = 0;
    bool stopping_ = false;
    std::atomic<std::size_t> waking_ = 0; // threads between the lock and schedule()

    std::uint64_t alarm_number_ = 0; // tells the alarm that is set from earlier ones
    time_point alarm_at_{};
    bool alarm_is_set_ = false;
};

} // namespace holdfast
