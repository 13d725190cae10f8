// Owns tasks that run on their own. Whoever owns the scope drains it with join() before it goes away.
#pragma once

#include <atomic>
#include <cassert>
#include <coroutine>
#include <exception>
#include <mutex>
#include <optional>
#include <utility>

#include <holdfast/task.hpp>

namespace holdfast {

class task_scope {
public:
    task_scope() = default;
    task_scope(const task_scope&) = delete;
    task_scope& operator=(const task_scope&) = delete;
    ~task_scope() { assert(running() == 0); }

    // Starts the task at once on this thread, up to its first suspension. Any thread, until join() is awaited; after
    // that only where something of the scope still runs: in a task of it, or while holding a guest.
    void spawn(task<void> work) { run(std::move(work)); }

    // Keeps join() waiting while it lives, for what somebody else runs and the scope must outlive. Move-only.
    class [[nodiscard]] guest {
    public:
        guest(guest&& other) noexcept : scope_(std::exchange(other.scope_, nullptr)) {}
        guest& operator=(guest&&) = delete;
        ~guest() {
            if (scope_ != nullptr) scope_->one_ended(); // the scope may be gone afterwards
        }

    private:
        friend task_scope;
        explicit guest(task_scope& scope) noexcept : scope_(&scope) {}
        task_scope* scope_;
    };
    // Nothing once join() is awaited. Any thread, while the scope lives.
    std::optional<guest> try_enter() noexcept {
        std::size_t pending = pending_.load(std::memory_order_relaxed);
        while ((pending & not_joined) != 0)
            if (pending_.compare_exchange_weak(pending, pending + one_task, std::memory_order_relaxed))
                return guest(*this);
        return std::nullopt;
    }

    // Tasks and guests.
    std::size_t running() const noexcept { return pending_.load(std::memory_order_relaxed) / one_task; }
    // Whether join() is awaited.
    bool joining() const noexcept { return (pending_.load(std::memory_order_relaxed) & not_joined) == 0; }

    // Ends when every spawned task has ended and every guest has left; rethrows the first exception that left a task.
    // Await it once.
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
        [[maybe_unused]] const std::size_t before = pending_.fetch_add(one_task, std::memory_order_relaxed);
        assert(before != 0 && "spawned after join() had ended");
        try {
            co_await std::move(work);
        } catch (...) {
            const std::lock_guard lock(error_mutex_);
            if (!first_error_) first_error_ = std::current_exception();
        }
        work = {}; // the frame goes before the scope may
        one_ended();
    }
    void one_ended() noexcept {
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
