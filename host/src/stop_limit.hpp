#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

#include <holdfast/duration.hpp>

namespace holdfast::detail {

// Calls `when_late` on a thread of its own when what allow() gave time for has not gone on to the next allow(), or to
// the end of this, by then.
class stop_limit {
public:
    explicit stop_limit(std::function<void()> when_late)
        : when_late_(std::move(when_late)), watching_([this](const std::stop_token& end) { watch(end); }) {}
    stop_limit(const stop_limit&) = delete;
    stop_limit& operator=(const stop_limit&) = delete;

    void allow(duration d) { set(saturating_add(std::chrono::steady_clock::now(), d)); }
    void allow_any() { set(never); }

private:
    void set(time_point until) {
        const std::lock_guard lock(mutex_);
        until_ = until;
        changed_.notify_all();
    }
    void watch(const std::stop_token& end) {
        std::unique_lock lock(mutex_);
        while (!end.stop_requested()) {
            const time_point until = until_;
            const auto moved = [&] { return until_ != until; };
            if (until == never) {
                changed_.wait(lock, end, moved);
            } else if (!changed_.wait_until(lock, end, until, moved) && !end.stop_requested()) {
                until_ = never;
                lock.unlock();
                when_late_();
                lock.lock();
            }
        }
    }

    const std::function<void()> when_late_;
    std::mutex mutex_;
    std::condition_variable_any changed_;
    time_point until_ = never;
    std::jthread watching_; // last: it uses the others
};

} // namespace holdfast::detail
