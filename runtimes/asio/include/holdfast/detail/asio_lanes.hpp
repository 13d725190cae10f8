// The queue of work and the timers of one asio_runtime, and the handlers ("lanes") that run them on an io_context.
//
// A lane is an Asio handler that runs work until there is none left, or for a batch, after which it lets others on the
// context have a turn. There are as many lanes as pieces of work that may run at the same time. Whoever brings work
// wakes an idle lane if there is one; otherwise bringing work costs a lock and a link. All timers share one Asio timer,
// the alarm, which is touched only when the earliest deadline gets earlier.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include <holdfast/detail/work_list.hpp>
#include <holdfast/runtime.hpp>
#include <holdfast/timer_queue.hpp>

namespace holdfast::detail {

// Shared with its handlers, which may stay in an adopted context long after the runtime is gone.
class asio_lanes : public std::enable_shared_from_this<asio_lanes> {
public:
    using clock = std::chrono::steady_clock;

    // `adopted`: others run the context, so the alarm may not outlive the timers, and stop() does the work itself.
    asio_lanes(boost::asio::io_context& context, std::size_t lanes, bool adopted)
        : context_(context), adopted_(adopted), lanes_(lanes), alarm_(std::in_place, context) {
        for (lane& each : lanes_) make_idle(each);
    }

    bool post(work& w) noexcept {
        lane* woken = nullptr;
        {
            const std::lock_guard lock(mutex_);
            if (stopping_) return false;
            ready_.push(w);
            woken = take_idle();
        }
        if (woken != nullptr) schedule(*woken);
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
                    if (due <= clock::now()) woken = take_idle(); // no lane idle: one that runs will see it
                    else set_alarm(due);
                }
            } catch (...) {
                timers_.remove(t);
                return false;
            }
        }
        if (woken != nullptr) schedule(*woken);
        return true;
    }

    bool cancel(timer& t) noexcept {
        lane* woken = nullptr;
        {
            const std::lock_guard lock(mutex_);
            if (!timers_.remove(t)) return false;
            if (stopping_) quiet_.notify_all();
            else if (adopted_ && alarm_is_set_ && timers_.empty()) woken = take_idle(); // it puts the alarm off
        }
        if (woken != nullptr) schedule(*woken);
        return true;
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
            if (adopted_) run(*mine); // maybe nobody runs the context any more
            else schedule(*mine);
            lock.lock();
        }
        alarm_.reset();
    }

private:
    static constexpr unsigned batch = 64;
    static constexpr time_point no_time = time_point::min();

    enum class state : unsigned char { idle, scheduled, running };

    struct lane {
        lane* next_idle = nullptr;
        state now = state::idle;
        bool timer_turn = false;
        bool memory_taken = false;
        time_point clock_read = no_time;
        std::optional<time_point> due; // of the timer that it runs
        work_list same_due;            // timers for that very time, which have to wait for it
        alignas(std::max_align_t) std::byte memory[256];
    };

    // Gives a lane's handler the lane's own memory, so that waking one allocates nothing.
    template <class T>
    struct lane_allocator {
        using value_type = T;
        explicit lane_allocator(lane* of) noexcept : owner(of) {}
        template <class U>
        lane_allocator(const lane_allocator<U>& other) noexcept : owner(other.owner) {}

        T* allocate(std::size_t n) {
            if (owner->memory_taken || n * sizeof(T) > sizeof(owner->memory) || alignof(T) > alignof(std::max_align_t))
                return std::allocator<T>().allocate(n);
            owner->memory_taken = true;
            return reinterpret_cast<T*>(owner->memory);
        }
        void deallocate(T* p, std::size_t n) noexcept {
            if (static_cast<void*>(p) != owner->memory) return std::allocator<T>().deallocate(p, n);
            owner->memory_taken = false;
        }
        template <class U>
        bool operator==(const lane_allocator<U>& other) const noexcept {
            return owner == other.owner;
        }
        lane* owner;
    };

    struct run_lane {
        using allocator_type = lane_allocator<std::byte>;
        allocator_type get_allocator() const noexcept { return allocator_type(mine); }
        void operator()() const noexcept { owner->run(*mine); }
        std::shared_ptr<asio_lanes> owner;
        lane* mine;
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
    void schedule(lane& l) noexcept { boost::asio::post(context_, run_lane{shared_from_this(), &l}); }

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
            if (next.helper != nullptr) schedule(*next.helper);
            next.what->run(*next.what, next.why);
            lock.lock();
        }
        --running_;
        me.now = state::scheduled;
        if (me.same_due.empty()) me.due.reset();
        lock.unlock();
        schedule(me);
    }

    void retire(lane& me) noexcept {
        --running_;
        make_idle(me);
        if (stopping_) {
            quiet_.notify_all();
        } else if (timers_.empty()) {
            if (adopted_ && alarm_is_set_) put_alarm_off();
        } else if (rings_after(timers_.next_due())) {
            set_alarm(timers_.next_due());
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
            return {t, stopping_ ? wake::stopped : wake::due, more ? take_idle() : nullptr};
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
    void set_alarm(time_point at) {
        ++alarm_number_;
        alarm_is_set_ = false;
        alarm_->expires_at(at);
        alarm_->async_wait([self = shared_from_this(), number = alarm_number_](const boost::system::error_code&) {
            self->rang(number);
        });
        alarm_at_ = at;
        alarm_is_set_ = true;
    }
    void put_alarm_off() noexcept {
        ++alarm_number_;
        alarm_is_set_ = false;
        alarm_->cancel();
    }
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

    bool quiet() const noexcept {
        if (running_ != 0 || !ready_.empty() || !timers_.empty()) return false;
        for (const lane& each : lanes_)
            if (!each.same_due.empty()) return false;
        return true;
    }

    // For stop(): a lane that no thread runs and that would find work. In a context of our own those that are
    // scheduled run by themselves.
    lane* take_waiting() noexcept {
        const bool anything = !ready_.empty() || !timers_.empty();
        if (anything && idle_ != nullptr) return take_idle();
        if (!adopted_) return nullptr;
        for (lane& each : lanes_)
            if (each.now == state::scheduled && (anything || !each.same_due.empty())) return &each;
        return nullptr;
    }

    boost::asio::io_context& context_;
    const bool adopted_;
    std::mutex mutex_;
    std::condition_variable quiet_;
    work_list ready_;
    timer_queue timers_;
    std::vector<lane> lanes_;
    lane* idle_ = nullptr;
    std::size_t running_ = 0;
    bool stopping_ = false;

    std::optional<boost::asio::steady_timer> alarm_; // gone once stopped
    std::uint64_t alarm_number_ = 0;                 // tells the alarm that is set from earlier ones
    time_point alarm_at_{};
    bool alarm_is_set_ = false;
};

} // namespace holdfast::detail
