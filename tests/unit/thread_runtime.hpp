// A runtime of a few real threads, for tests that need them. Timers are not offered.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include <holdfast/runtime.hpp>

namespace holdfast::test {

class thread_runtime final : public runtime {
public:
    explicit thread_runtime(int threads) {
        for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
    }
    ~thread_runtime() override { stop(); }

    std::string_view name() const noexcept override { return "threads"; }
    time_point now() const noexcept override { return std::chrono::steady_clock::now(); }
    bool post(work& w) noexcept override {
        {
            const std::lock_guard lock(mutex_);
            if (stopped_) return false;
            ready_.push_back(&w);
        }
        changed_.notify_one();
        return true;
    }
    bool post_blocking(work& w) noexcept override { return post(w); }
    bool arm(timer&, time_point) noexcept override { return false; }
    bool cancel(timer&) noexcept override { return false; }
    void stop() noexcept override {
        {
            const std::lock_guard lock(mutex_);
            stopped_ = true;
        }
        changed_.notify_all();
        threads_.clear(); // joins
    }
    bool stopped() const noexcept override {
        const std::lock_guard lock(mutex_);
        return stopped_;
    }

private:
    void run() {
        std::unique_lock lock(mutex_);
        for (;;) {
            changed_.wait(lock, [&] { return stopped_ || !ready_.empty(); });
            if (ready_.empty()) return;
            work* w = ready_.front();
            ready_.pop_front();
            lock.unlock();
            w->run(*w, wake::due);
            lock.lock();
        }
    }

    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<work*> ready_;
    bool stopped_ = false;
    std::vector<std::jthread> threads_;
};

} // namespace holdfast::test
