// Handlers that have every blocking thread of a runtime, and all the room to wait for one.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include <holdfast/runtime.hpp>
#include <holdfast/simulated_runtime.hpp>

namespace holdfast::conformance {

// They end when this goes, or after ten seconds at the latest.
class held_threads {
public:
    // The simulated runtime has none, so nobody has them there.
    explicit held_threads(runtime& on) {
        if (dynamic_cast<simulated_runtime*>(&on) != nullptr) return;
        while (all_.size() < enough && on.post_blocking(all_.emplace_back(*this))) ++posted_;
        if (static_cast<std::size_t>(posted_) < all_.size()) all_.pop_back(); // the one that found no room
        impatient_ = std::jthread([this] {
            std::unique_lock lock(mutex_);
            if (changed_.wait_for(lock, patience, [&] { return over_; })) return;
            late_ = over_ = true;
            changed_.notify_all();
        });
    }
    held_threads(const held_threads&) = delete;
    held_threads& operator=(const held_threads&) = delete;
    ~held_threads() {
        std::unique_lock lock(mutex_);
        over_ = true;
        changed_.notify_all();
        changed_.wait(lock, [&] { return posted_ == 0; });
    }

    // What was called meanwhile had to wait for them.
    bool were_waited_for() const {
        const std::lock_guard lock(mutex_);
        return late_;
    }

private:
    struct handler : work {
        explicit handler(held_threads& in) : owner(in) {
            run = [](work& w, wake) noexcept { static_cast<handler&>(w).owner.work_on(); };
        }
        held_threads& owner;
    };
    void work_on() noexcept {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return over_; });
        --posted_;
        changed_.notify_all();
    }

    static constexpr std::size_t enough = 3000;
    static constexpr std::chrono::seconds patience{10};
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<handler> all_;
    int posted_ = 0;
    bool over_ = false;
    bool late_ = false;
    std::jthread impatient_;
};

} // namespace holdfast::conformance
