#include "concurrency_limiter.hpp"

#include <utility>

namespace holdfast {

concurrency_limiter::waiter::waiter(concurrency_limiter& line, const concurrency_options& o, runtime& on,
                                    std::stop_token stop) noexcept
    : line_(line), options_(o), on_(on), stop_(std::move(stop)) {
    run = &posted;
}

bool concurrency_limiter::waiter::await_suspend(std::coroutine_handle<> awaiting) noexcept {
    awaiting_ = awaiting;
    switch (line_.join(*this)) {
    case entry::entered: return false;
    case entry::full: end_ = wait_end::full; return false;
    case entry::must_wait: break;
    }
    if (stop_.stop_possible()) on_stop_.emplace(stop_, leave_line{this});
    return parties_.fetch_sub(1, std::memory_order_acq_rel) != 1;
}

void concurrency_limiter::waiter::cancelled() noexcept {
    if (!line_.remove(*this)) return; // the slot came first
    end_ = wait_end::cancelled;
    wake_up();
}

void concurrency_limiter::waiter::wake_up() noexcept {
    if (!on_.post(*this)) finish(); // a stopped runtime cannot take us; go on right here
}

void concurrency_limiter::waiter::finish() noexcept {
    if (parties_.fetch_sub(1, std::memory_order_acq_rel) == 1) awaiting_.resume();
}

concurrency_limiter::entry concurrency_limiter::join(waiter& w) noexcept {
    const std::lock_guard lock(mutex_);
    std::uint64_t word = word_.load(std::memory_order_relaxed);
    for (;;) {
        const bool free = waiting(word) == 0 && running(word) < w.options_.limit;
        if (!free && waiting(word) >= w.options_.queue) return entry::full;
        const std::uint64_t next = word + (free ? one_running : one_waiting);
        if (!word_.compare_exchange_weak(word, next, std::memory_order_acq_rel)) continue;
        if (free) return entry::entered;
        w.before_ = last_;
        (last_ != nullptr ? last_->after_ : first_) = &w;
        last_ = &w;
        return entry::must_wait;
    }
}

bool concurrency_limiter::remove(waiter& w) noexcept {
    const std::lock_guard lock(mutex_);
    if (w.before_ == nullptr && first_ != &w) return false;
    unlink(w);
    word_.fetch_sub(one_waiting, std::memory_order_relaxed);
    return true;
}

void concurrency_limiter::pass_on() noexcept {
    waiter* next = nullptr;
    {
        const std::lock_guard lock(mutex_);
        next = first_;
        if (next == nullptr) { // the last one in line has just gone
            word_.fetch_sub(one_running, std::memory_order_release);
            return;
        }
        unlink(*next);
        word_.fetch_sub(one_waiting, std::memory_order_relaxed); // our slot is theirs now
    }
    next->wake_up();
}

void concurrency_limiter::unlink(waiter& w) noexcept {
    (w.before_ != nullptr ? w.before_->after_ : first_) = w.after_;
    (w.after_ != nullptr ? w.after_->before_ : last_) = w.before_;
    w.before_ = w.after_ = nullptr;
}

} // namespace holdfast
