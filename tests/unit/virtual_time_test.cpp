#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <holdfast/conformance.hpp>
#include <holdfast/sleep.hpp>
#include <holdfast/sync_wait.hpp>
#include <holdfast/timer_queue.hpp>
#include <holdfast/virtual_time.hpp>
#include <holdfast/when_all.hpp>

#include "catch.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

namespace {

// A plain runtime on threads: as little as the contract asks for.
class threaded_runtime final : public runtime {
public:
    threaded_runtime(int threads, int blocking) {
        for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { run_queue(posted_, work_came_); });
        for (int i = 0; i < blocking; ++i) threads_.emplace_back([this] { run_queue(blocking_, blocking_came_); });
        threads_.emplace_back([this] { run_timers(); });
    }
    ~threaded_runtime() override { stop(); }

    std::string_view name() const noexcept override { return "threaded"; }
    time_point now() const noexcept override { return std::chrono::steady_clock::now(); }
    bool post(work& w) noexcept override { return push(posted_, work_came_, w, 1'000'000); }
    bool post_blocking(work& w) noexcept override { return push(blocking_, blocking_came_, w, 64); }
    bool arm(timer& t, time_point due) noexcept override {
        const std::lock_guard lock(mutex_);
        if (stopped_) return false;
        timers_.push(t, due);
        timer_came_.notify_one();
        return true;
    }
    bool cancel(timer& t) noexcept override {
        const std::lock_guard lock(mutex_);
        return timers_.remove(t);
    }
    void stop() noexcept override {
        {
            const std::lock_guard lock(mutex_);
            if (stopped_) return;
            stopped_ = true;
        }
        for (auto* each : {&work_came_, &blocking_came_, &timer_came_}) each->notify_all();
        for (auto& each : threads_) each.join();
    }
    bool stopped() const noexcept override {
        const std::lock_guard lock(mutex_);
        return stopped_;
    }

private:
    using queue = std::deque<work*>;

    bool push(queue& to, std::condition_variable& came, work& w, std::size_t most) noexcept {
        const std::lock_guard lock(mutex_);
        if (stopped_ || to.size() >= most) return false;
        to.push_back(&w);
        came.notify_one();
        return true;
    }
    void run_queue(queue& from, std::condition_variable& came) {
        std::unique_lock lock(mutex_);
        for (;;) {
            came.wait(lock, [&] { return stopped_ || !from.empty(); });
            if (from.empty()) return;
            work& w = *from.front();
            from.pop_front();
            lock.unlock();
            w.run(w, wake::due);
            lock.lock();
        }
    }
    void run_timers() {
        std::unique_lock lock(mutex_);
        for (;;) {
            const bool stopping = stopped_;
            if (timer* t = stopping ? timers_.pop() : timers_.pop_due(now())) {
                lock.unlock();
                t->run(*t, stopping ? wake::stopped : wake::due);
                lock.lock();
            } else if (stopping) {
                return;
            } else {
                timer_came_.wait_until(lock, std::min(timers_.next_due(), now() + 1h));
            }
        }
    }

    mutable std::mutex mutex_;
    std::condition_variable work_came_, blocking_came_, timer_came_;
    queue posted_, blocking_;
    timer_queue timers_;
    bool stopped_ = false;
    std::vector<std::thread> threads_;
};

struct rig {
    threaded_runtime inner{3, 3};
    virtual_time_runtime r{inner};
    virtual_time_runtime::participant here{r};
};

task<duration> nap(runtime& on, duration d) {
    const auto start = on.now();
    auto sleeping = sleep_for(on, d);
    co_await sleeping;
    co_return on.now() - start;
}

} // namespace

TEST_CASE("hours pass at once on a real runtime with virtual time") {
    rig x;
    const auto start = x.r.now();
    const auto real = std::chrono::steady_clock::now();
    CHECK(block_for(x.r, 1000h) == sleep_end::due);
    CHECK(x.r.now() - start == 1000h);
    CHECK(std::chrono::steady_clock::now() - real < 5s);
    CHECK(x.r.name() == "threaded");
}

TEST_CASE("virtual time stands still while work runs") {
    rig x;
    std::atomic<bool> moved = false;
    const auto busy = [&] {
        const auto before = x.r.now();
        std::this_thread::sleep_for(5ms);
        moved = x.r.now() != before;
        return 1;
    };
    const auto [one, slept] = sync_wait(x.r, when_all(run_blocking(x.r, busy), nap(x.r, 1h)));
    CHECK(one == 1);
    CHECK(slept == 1h);
    CHECK_FALSE(moved);
}

TEST_CASE("blocking work that waits on virtual time does not hold it up") {
    rig x;
    const auto start = x.r.now();
    const auto sleeper = [&](duration d) {
        return run_blocking(x.r, [&x, d, start] {
            block_for(x.r, d);
            return x.r.now() - start;
        });
    };
    const auto [a, b, c] = sync_wait(x.r, when_all(sleeper(3h), sleeper(1h), sleeper(2h)));
    CHECK(a == 3h);
    CHECK(b == 1h);
    CHECK(c == 2h);
}

TEST_CASE("a pool that is full of waiting work does not stop virtual time") {
    threaded_runtime inner(1, 1);
    virtual_time_runtime r(inner);
    const virtual_time_runtime::participant here(r);
    const auto sleeper = [&] { return run_blocking(r, [&r] { return block_for(r, 1h) == sleep_end::due ? 1 : 0; }); };
    const auto [a, b, c] = sync_wait(r, when_all(sleeper(), sleeper(), sleeper()));
    CHECK(a + b + c == 3);
}

TEST_CASE("time does not move behind the back of a participant") {
    rig x;
    for (int i = 0; i < 200; ++i) {
        const auto start = x.r.now();
        std::stop_source source;
        auto sleeping = run_blocking(x.r, [&] { return block_for(x.r, 1h, source.get_token()); });
        parker done;
        detail::unpark_at_end(sleeping, done);
        std::this_thread::yield();
        CHECK(x.r.now() == start);
        source.request_stop();
        x.r.wait(done);
        CHECK(sleeping.frame().promise().take() == sleep_end::cancelled);
        CHECK(x.r.now() == start);
    }
}

TEST_CASE("somebody outside may wake a waiter on virtual time") {
    rig x;
    parker p;
    std::jthread other([&] {
        std::this_thread::sleep_for(3ms);
        p.unpark();
    });
    x.r.wait(p);
    CHECK(p.ready());
}

TEST_CASE("stopping virtual time wakes all sleepers and leaves the inner runtime alone") {
    threaded_runtime inner(2, 2);
    std::atomic<int> stopped = 0;
    constexpr int sleepers = 2000;
    {
        virtual_time_runtime r(inner);
        const auto sleeper = [](runtime& on, std::atomic<int>& count) -> task<void> {
            auto sleeping = sleep_for(on, 1h);
            if (co_await sleeping == sleep_end::stopped) ++count;
        };
        std::vector<task<void>> all;
        for (int i = 0; i < sleepers; ++i) all.push_back(sleeper(r, stopped));
        auto joined = when_all(std::move(all));
        parker done;
        detail::unpark_at_end(joined, done);
        CHECK(r.timers() == sleepers);
        r.stop();
        r.wait(done);
        CHECK(r.stopped());
        CHECK(block_for(r, 1h) == sleep_end::stopped);
    }
    CHECK(stopped == sleepers);
    CHECK_FALSE(inner.stopped());
}

TEST_CASE("a plain threaded runtime passes every conformance case") {
    std::string messages;
    const auto total = conformance::run_runtime_suite([] { return std::make_unique<threaded_runtime>(2, 4); }, {},
                                                      [&](const auto& r) {
                                                          if (r.state == conformance::case_result::failed)
                                                              messages += r.title() + ": " + r.message + "\n";
                                                      });
    INFO(messages);
    CHECK(total.failed == 0);
    CHECK(total.skipped == 4); // it watches no descriptors
}
