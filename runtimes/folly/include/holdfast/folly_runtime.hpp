// The runtime on folly: on threads of its own, or on an executor that the application has.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include <folly/Executor.h>
#include <folly/executors/CPUThreadPoolExecutor.h>
#include <folly/executors/thread_factory/NamedThreadFactory.h>
#include <folly/futures/HeapTimekeeper.h>

#include <holdfast/blocking_pool.hpp>
#include <holdfast/detail/coarse_clock.hpp>
#include <holdfast/detail/folly_lanes.hpp>
#include <holdfast/runtime.hpp>

namespace holdfast {

struct folly_options {
    // Threads of its own; or how many threads of an adopted executor may run its work at the same time.
    std::size_t threads = 2;
    std::size_t blocking_threads = 8;  // started when first needed
    std::size_t blocking_queue = 1024; // blocking work that may wait for one
};

// Work for the same runtime starts in the order in which it was posted. Callbacks of timers that are due at different
// times may run at the same time. It has a Timekeeper of its own, so folly need not be initialised.
//
// stop() on threads of its own: they run what is left and end; folly's tasks and futures on them are waited for.
//
// stop() on an adopted executor: the calling thread runs what is left, together with any threads of the executor, so it
// ends whether or not those still run. It may be called on a thread of the executor, but not from work of this runtime.
// What stays in the executor does nothing and may outlive the runtime.
class folly_runtime final : public runtime {
public:
    explicit folly_runtime(folly_options options = {}) : folly_runtime(options, {}) {}

    // Adopts an executor, which is kept alive until stop(). It has to take all that is added, and must not run it inside
    // add().
    explicit folly_runtime(folly::Executor::KeepAlive<> executor, folly_options options = {})
        : folly_runtime(options, std::move(executor)) {}

    ~folly_runtime() override { stop(); }

    std::string_view name() const noexcept override { return "folly"; }
    time_point now() const noexcept override { return detail::folly_lanes::clock::now(); }
    time_point coarse_now() const noexcept override { return detail::coarse_steady_now(); }
    bool post(work& w) noexcept override { return lanes_->post(w); }
    bool post_blocking(work& w) noexcept override { return pool_.post(w); }
    bool arm(timer& t, time_point due) noexcept override { return lanes_->arm(t, due); }
    bool cancel(timer& t) noexcept override { return lanes_->cancel(t); }
    bool stopped() const noexcept override { return stopped_.load(std::memory_order_acquire); }

    void stop() noexcept override {
        const std::lock_guard lock(stop_mutex_);
        if (stopped_.exchange(true)) return;
        pool_.close();
        lanes_->stop(); // before the pool has ended, for blocking work may wait for a timer
        pool_.stop();
        timekeeper_.reset();
        executor_.reset();
        if (own_) own_->join();
    }

    // To run folly's own work beside; only until stop().
    folly::Executor::KeepAlive<> get_executor() const { return executor_; }

private:
    folly_runtime(folly_options options, folly::Executor::KeepAlive<> adopted)
        : own_(adopted ? nullptr : make_threads(at_least_one(options.threads))),
          executor_(adopted ? std::move(adopted) : folly::getKeepAliveToken(own_.get())),
          pool_(options.blocking_threads, options.blocking_queue), timekeeper_(std::in_place),
          lanes_(std::make_shared<detail::folly_lanes>(*executor_, *timekeeper_, at_least_one(options.threads),
                                                       own_ == nullptr)) {}

    static std::size_t at_least_one(std::size_t threads) noexcept { return std::max<std::size_t>(threads, 1); }
    static std::unique_ptr<folly::CPUThreadPoolExecutor> make_threads(std::size_t count) {
        return std::make_unique<folly::CPUThreadPoolExecutor>(std::pair(count, count),
                                                              std::make_shared<folly::NamedThreadFactory>("holdfast"));
    }

    std::unique_ptr<folly::CPUThreadPoolExecutor> own_;
    folly::Executor::KeepAlive<> executor_;
    blocking_pool pool_;
    std::optional<folly::HeapTimekeeper> timekeeper_;
    std::shared_ptr<detail::folly_lanes> lanes_;
    std::mutex stop_mutex_;
    std::atomic<bool> stopped_ = false;
};

} // namespace holdfast
