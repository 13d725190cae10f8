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
    void set() noexcept { wake(false); }
    // The same, but the waiter goes on in place if it is waiting.
    void set_here() noexcept { wake(true); }

    // False: the runtime has stopped, there is no waiting any more.
    task<bool> wait(runtime& on, time_point until) {
        std::stop_token woken;
        {
            const std::lock_guard lock(mutex_);
            if (std::exchange(set_, false)) co_return !on.stopped();
            waiting_ = std::stop_source();
            woken = waiting_.get_token();
        }
        co_await detail::sleeper(on, until, std::move(woken), &here_);
        const std::lock_guard lock(mutex_);
        waiting_ = std::stop_source(std::nostopstate);
        set_ = false;
        co_return !on.stopped();
    }

private:
    void wake(bool here) noexcept {
        std::stop_source waiting(std::nostopstate);
        {
            const std::lock_guard lock(mutex_);
            if (set_) return;
            set_ = true;
            here_ = here; // read by the one that stops the sleep, which is this thread
            waiting = std::exchange(waiting_, std::stop_source(std::nostopstate));
        }
        waiting.request_stop();
    }

    std::mutex mutex_;
    std::stop_source waiting_{std::nostopstate};
    bool set_ = false;
    bool here_ = false;
};

} // namespace holdfast
