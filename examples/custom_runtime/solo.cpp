// A runtime of one's own, as a plugin: one thread runs posted work and timers, a few others whatever blocks.
// It needs holdfast::abstractions and nothing else.
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <holdfast/plugin.hpp>
#include <holdfast/runtime.hpp>
#include <holdfast/timer_queue.hpp>

namespace {

using holdfast::time_point;
using holdfast::timer;
using holdfast::wake;
using holdfast::work;

// [queue]
// First in, first out. The nodes are the callers', so that taking work never allocates.
class work_queue {
public:
    void push(work& w) noexcept {
        w.next = nullptr;
        (last_ == nullptr ? first_ : last_->next) = &w;
        last_ = &w;
        ++size_;
    }
    work* pop() noexcept {
        work* w = first_;
        if (w == nullptr) return nullptr;
        first_ = w->next;
        if (first_ == nullptr) last_ = nullptr;
        --size_;
        return w;
    }
    std::size_t size() const noexcept { return size_; }

private:
    work* first_ = nullptr;
    work* last_ = nullptr;
    std::size_t size_ = 0;
};
// [/queue]

class solo_runtime final : public holdfast::runtime {
public:
    solo_runtime(std::int64_t blocking_threads, std::size_t blocking_queue) : blocking_queue_(blocking_queue) {
        try {
            threads_.emplace_back([this] { run_loop(); });
            for (std::int64_t i = 0; i < blocking_threads; ++i) threads_.emplace_back([this] { run_blocking(); });
        } catch (...) { // some threads without the others would outlive this
            stop();
            throw;
        }
    }
    ~solo_runtime() override { stop(); }

    std::string_view name() const noexcept override { return "solo"; }
    time_point now() const noexcept override { return std::chrono::steady_clock::now(); }

    // [post]
    bool post(work& w) noexcept override {
        const std::lock_guard lock(mutex_);
        if (stopping_) return false;
        ready_.push(w);
        loop_has_work_.notify_one();
        return true;
    }
    bool post_blocking(work& w) noexcept override {
        const std::lock_guard lock(mutex_);
        if (stopping_ || waiting_.size() >= blocking_queue_) return false;
        waiting_.push(w);
        pool_has_work_.notify_one();
        return true;
    }
    // [/post]
    // [timers]
    bool arm(timer& t, time_point due) noexcept override {
        const std::lock_guard lock(mutex_);
        if (stopping_) return false;
        const time_point first = timers_.next_due();
        try {
            timers_.push(t, due);
        } catch (...) { // no memory: not taken, and nothing has changed
            return false;
        }
        if (due < first) loop_has_work_.notify_one();
        return true;
    }
    // Under the lock a timer is either still in the queue, and then it will not run, or it is not.
    bool cancel(timer& t) noexcept override {
        const std::lock_guard lock(mutex_);
        return timers_.remove(t);
    }
    // [/timers]

    // [stop]
    void stop() noexcept override {
        {
            const std::lock_guard lock(mutex_);
            stopping_ = true;
        }
        loop_has_work_.notify_one();
        pool_has_work_.notify_all();
        const std::lock_guard lock(join_mutex_); // a second caller waits until the first is done
        for (auto& each : threads_) each.join();
        threads_.clear();
    }
    // [/stop]
    bool stopped() const noexcept override {
        const std::lock_guard lock(mutex_);
        return stopping_;
    }

private:
    // [loop]
    // Takes turns, so that neither timers nor posted work can hold up the other.
    void run_loop() noexcept {
        std::unique_lock lock(mutex_);
        for (;;) {
            timer* t = timers_.pop_due(now());
            if (t != nullptr) run(lock, *t, wake::due);
            work* w = ready_.pop();
            if (w != nullptr) run(lock, *w, wake::due);
            if (t != nullptr || w != nullptr) continue;

            if (stopping_) break;
            if (timers_.empty()) loop_has_work_.wait(lock);
            else loop_has_work_.wait_until(lock, timers_.next_due());
        }
        while (timer* left = timers_.pop()) run(lock, *left, wake::stopped);
    }
    // Without the lock: work may post, arm and cancel, and may destroy itself.
    static void run(std::unique_lock<std::mutex>& lock, work& w, wake why) noexcept {
        lock.unlock();
        w.run(w, why);
        lock.lock();
    }
    // [/loop]
    void run_blocking() noexcept {
        std::unique_lock lock(mutex_);
        for (;;) {
            if (work* w = waiting_.pop()) run(lock, *w, wake::due);
            else if (stopping_) return;
            else pool_has_work_.wait(lock);
        }
    }

    const std::size_t blocking_queue_;
    mutable std::mutex mutex_;
    std::condition_variable loop_has_work_;
    std::condition_variable pool_has_work_;
    work_queue ready_;
    work_queue waiting_;
    holdfast::timer_queue timers_;
    bool stopping_ = false;
    std::mutex join_mutex_;
    std::vector<std::thread> threads_;
};

// [descriptor]
std::unique_ptr<holdfast::runtime> make_solo(holdfast::plugin_context& context) {
    auto& settings = context.settings(); // [runtime] in the configuration; a key that is not asked for here is refused
    const auto threads = settings.integer("blocking_threads", 4, 2, 256);
    const auto queue = settings.integer("blocking_queue", 1024, 1, 100'000);
    return std::make_unique<solo_runtime>(threads, static_cast<std::size_t>(queue));
}

} // namespace

HOLDFAST_RUNTIME_PLUGIN("solo", "1.0.0", "one thread, and a few for what blocks", &make_solo)
// [/descriptor]
