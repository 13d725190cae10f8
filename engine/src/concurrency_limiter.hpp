// Slots for calls that run at the same time, and a bounded first-come queue for those that wait. Entering and leaving
// with nobody waiting takes no lock.
#pragma once

#include <atomic>
#include <coroutine>
#include <cstdint>
#include <mutex>
#include <optional>
#include <stop_token>

#include <holdfast/policy.hpp>
#include <holdfast/runtime.hpp>

namespace holdfast {

class concurrency_limiter {
public:
    enum class entry : unsigned char { entered, must_wait, full };

    // must_wait: await wait_for_slot().
    entry try_enter(const concurrency_options& o) noexcept {
        std::uint64_t word = word_.load(std::memory_order_relaxed);
        for (;;) {
            if (waiting(word) > 0 || running(word) >= o.limit)
                return waiting(word) < o.queue ? entry::must_wait : entry::full;
            if (word_.compare_exchange_weak(word, word + one_running, std::memory_order_acquire)) return entry::entered;
        }
    }
    void leave() noexcept {
        std::uint64_t word = word_.load(std::memory_order_relaxed);
        while (waiting(word) == 0)
            if (word_.compare_exchange_weak(word, word - one_running, std::memory_order_release)) return;
        pass_on();
    }
    int running_now() const noexcept { return running(word_.load(std::memory_order_relaxed)); }
    int waiting_now() const noexcept { return waiting(word_.load(std::memory_order_relaxed)); }

    enum class wait_end : unsigned char { entered, full, cancelled };

    // Waits in line. Resumes on a runtime thread.
    class waiter : work {
    public:
        waiter(concurrency_limiter& line, const concurrency_options& o, runtime& on, std::stop_token stop) noexcept;
        waiter(const waiter&) = delete;
        waiter& operator=(const waiter&) = delete;

        bool await_ready() const noexcept { return false; }
        bool await_suspend(std::coroutine_handle<> awaiting) noexcept;
        wait_end await_resume() noexcept {
            on_stop_.reset();
            return end_;
        }

    private:
        friend class concurrency_limiter;
        struct leave_line {
            waiter* self;
            void operator()() const noexcept { self->cancelled(); }
        };
        void cancelled() noexcept;
        void wake_up() noexcept;
        void finish() noexcept;
        static void posted(work& w, wake) noexcept { static_cast<waiter&>(w).finish(); }

        concurrency_limiter& line_;
        const concurrency_options options_;
        runtime& on_;
        std::stop_token stop_;
        std::coroutine_handle<> awaiting_;
        std::atomic<int> parties_ = 2; // see detail::sleeper
        wait_end end_ = wait_end::entered;
        waiter* before_ = nullptr;
        waiter* after_ = nullptr;
        std::optional<std::stop_callback<leave_line>> on_stop_;
    };
    waiter wait_for_slot(const concurrency_options& o, runtime& on, std::stop_token stop) noexcept {
        return {*this, o, on, std::move(stop)};
    }

private:
    static constexpr std::uint64_t one_running = 1;
    static constexpr std::uint64_t one_waiting = std::uint64_t{1} << 32;
    static int running(std::uint64_t word) noexcept { return static_cast<int>(word & 0xffff'ffff); }
    static int waiting(std::uint64_t word) noexcept { return static_cast<int>(word >> 32); }

    entry join(waiter& w) noexcept;  // entered, must_wait (now in line), or full
    bool remove(waiter& w) noexcept; // false: it was already given a slot
    void pass_on() noexcept;         // gives the caller's slot to the first in line
    void unlink(waiter& w) noexcept;

    std::atomic<std::uint64_t> word_ = 0; // waiting | running
    std::mutex mutex_;
    waiter* first_ = nullptr;
    waiter* last_ = nullptr;
};

} // namespace holdfast
