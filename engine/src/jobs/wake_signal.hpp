// One coroutine waits for it, until a time at the latest; anybody sets it. Set before the wait, it does not wait.
#pragma once

#include <mutex>
#include <stop_token>
#include <utility>

#include <holdfast/runtime.hpp>
#include <holdfast/sleep.hpp>
#include <holdfast/task.hpp>

namespace holdfast {

class wake_signal {
public:
    // Any thread. May resume the waiter in place when the runtime is stopping: hold no lock that it takes.
    void set() noexcept {
        std::stop_source waiting(std::nostopstate);
        {
            const std::lock_guard lock(mutex_);
            if (set_) return;
            set_ = true;
            waiting = std::exchange(waiting_, std::stop_source(std::nostopstate));
        }
        waiting.request_stop();
    }
    // False: the runtime has stopped, there is no waiting any more.
    task<bool> wait(runtime& on, time_point until) {
        std::stop_token woken;
        {
            const std::lock_guard lock(mutex_);
            if (std::exchange(set_, false)) co_return !on.stopped();
            waiting_ = std::stop_source();
            woken = waiting_.get_token();
        }
        co_await sleep_until(on, until, std::move(woken));
        const std::lock_guard lock(mutex_);
        waiting_ = std::stop_source(std::nostopstate);
        set_ = false;
        co_return !on.stopped();
    }

private:
    std::mutex mutex_;
    std::stop_source waiting_{std::nostopstate};
    bool set_ = false;
};

} // namespace holdfast
