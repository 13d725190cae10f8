// Threads for work that blocks: at most so many, started when needed and kept; at most so much work waiting, in the
// order in which it came. For authors of runtimes, and of stores and transports that wait for a server or a disk.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <holdfast/detail/work_list.hpp>
#include <holdfast/runtime.hpp>
#include <holdfast/sleep.hpp>
#include <holdfast/task.hpp>

namespace holdfast {

// All members may be called from any thread, except stop(), which must not be called from the pool's own threads.
class blocking_pool {
public:
    // Told `true` when the pool takes work while it had none, `false` when it has none left. Called under the pool's
    // lock, so it must be quick and must not call the pool.
    using busy_listener = std::function<void(bool)>;

    blocking_pool(std::size_t max_threads, std::size_t max_waiting, busy_listener listener = {})
        : max_threads_(std::max<std::size_t>(max_threads, 1)), max_waiting_(max_waiting),
          listener_(std::move(listener)) {
        threads_.reserve(max_threads_);
    }
    blocking_pool(const blocking_pool&) = delete;
    blocking_pool& operator=(const blocking_pool&) = delete;
    ~blocking_pool() { stop(); }

    // False: no thread is free and as much work waits as may, no thread can be had at all, or stopped.
    [[nodiscard]] bool post(work& w) noexcept {
        {
            const std::lock_guard lock(mutex_);
            const std::size_t free = idle_ + (max_threads_ - threads_.size());
            if (stopped_ || waiting_ >= free + max_waiting_) return false;
            if (waiting_ >= idle_ && threads_.size() < max_threads_ && !start_thread() && threads_.empty())
                return false;
            queue_.push(w);
            ++waiting_;
            if (++held_ == 1 && listener_) listener_(true);
        }
        changed_.notify_one();
        return true;
    }

    // Takes nothing new.
    void close() noexcept {
        const std::lock_guard lock(mutex_);
        stopped_ = true;
    }

    // Takes nothing new, runs what waits, ends the threads.
    void stop() noexcept {
        close();
        std::vector<std::thread> ending;
        {
            const std::lock_guard lock(mutex_);
            ending.swap(threads_);
        }
        changed_.notify_all();
        for (auto& each : ending) each.join();
    }

    std::size_t threads() const {
        const std::lock_guard lock(mutex_);
        return threads_.size();
    }

private:
    bool start_thread() noexcept {
        try {
            threads_.emplace_back([this] { serve(); });
            ++idle_; // counts as free from now on, not from when it gets to run
            return true;
        } catch (...) { // the system has no thread left: those that run must do
            return false;
        }
    }

    void serve() noexcept {
        std::unique_lock lock(mutex_);
        for (;;) {
            changed_.wait(lock, [&] { return !queue_.empty() || stopped_; });
            --idle_;
            work* next = queue_.pop();
            if (next == nullptr) return;
            --waiting_;
            lock.unlock();
            next->run(*next, wake::due);
            lock.lock();
            ++idle_;
            if (--held_ == 0 && listener_) listener_(false);
        }
    }

    const std::size_t max_threads_;
    const std::size_t max_waiting_;
    const busy_listener listener_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    detail::work_list queue_;
    std::size_t waiting_ = 0; // in the queue
    std::size_t held_ = 0;    // in the queue or running
    std::size_t idle_ = 0;
    bool stopped_ = false;
    std::vector<std::thread> threads_;
};

// Runs a blocking function on a pool of one's own and comes back to a runtime thread with its value.
template <class Function>
task<std::invoke_result_t<Function&>> run_blocking(runtime& on, blocking_pool& threads, Function function) {
    return detail::run_blocking_at(threads, &blocking_pool::post, on, std::move(function));
}

} // namespace holdfast
