// Owns tasks that run on their own. Whoever owns the scope drains it with join() before it goes away.
#pragma once

#include <atomic>
#include <cassert>
#include <coroutine>
#include <exception>
#include <mutex>
#include <utility>

#include <holdfast/task.hpp>

namespace holdfast {

class task_scope {
public:
    task_scope() = default;
    task_scope(const task_scope&) = delete;
    task_scope& operator=(const task_scope&) = delete;
    ~task_scope() { assert(running() == 0); }

    // Starts the task at once on this thread, up to its first suspension. Any thread, until join() is awaited.
    void spawn(task<void> work) { run(std::move(work)); }

    std::size_t running() const noexcept { return pending_.load(std::memory_order_relaxed) / one_task; }

    // Ends when every spawned task has ended; rethrows the first exception that left one. Await it once.
    task<void> join() {
        co_await all_ended{*this};
        if (first_error_) std::rethrow_exception(std::exchange(first_error_, nullptr));
    }

private:
    struct all_ended {
        task_scope& scope;
        bool await_ready() const noexcept { return false; }
        bool await_suspend(std::coroutine_handle<> h) const noexcept {
            scope.joining_ = h;
            return scope.pending_.fetch_sub(not_joined, std::memory_order_acq_rel) != not_joined;
        }
        void await_resume() const noexcept {}
    };

    detail::detached run(task<void> work) {
        pending_.fetch_add(one_task, std::memory_order_relaxed);
        try {
            co_await std::move(work);
        } catch (...) {
            const std::lock_guard lock(error_mutex_);
            if (!first_error_) first_error_ = std::current_exception();
        }
        work = {}; // the frame goes before the scope may
        if (pending_.fetch_sub(one_task, std::memory_order_acq_rel) == one_task) joining_.resume();
    }

    static constexpr std::size_t not_joined = 1; // the lowest bit, until join() is awaited
    static constexpr std::size_t one_task = 2;

    std::atomic<std::size_t> pending_ = not_joined;
    std::coroutine_handle<> joining_ = std::noop_coroutine();
    std::mutex error_mutex_;
    std::exception_ptr first_error_;
};

} // namespace holdfast
