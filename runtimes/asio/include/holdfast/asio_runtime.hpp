// The runtime on Boost.Asio: on threads of its own, or on an io_context that the application runs.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

#include <holdfast/blocking_pool.hpp>
#include <holdfast/detail/asio_lanes.hpp>
#include <holdfast/detail/asio_readable.hpp>
#include <holdfast/detail/coarse_clock.hpp>
#include <holdfast/runtime.hpp>

namespace holdfast {

struct asio_options {
    // Threads of its own; or how many threads of an adopted context may run its work at the same time.
    std::size_t threads = 2;
    std::size_t blocking_threads = 8;  // started when first needed
    std::size_t blocking_queue = 1024; // blocking work that may wait for one
};

// Work for the same runtime starts in the order in which it was posted. Callbacks of timers that are due at different
// times may run at the same time.
//
// stop() on threads of its own: they run what is left and end. Operations that others began on its context are
// abandoned: their handlers are destroyed with the runtime, uncalled.
//
// stop() on an adopted context: the calling thread runs what is left, together with any threads that run the context,
// so it ends whether or not somebody still does. It may be called on a thread of the context, but not from work of this
// runtime. What stays in the context does nothing and may outlive the runtime. The context keeps running for others.
class asio_runtime final : public runtime {
public:
    using executor_type = boost::asio::io_context::executor_type;

    explicit asio_runtime(asio_options options = {})
        : options_(checked(options)), own_(std::in_place, static_cast<int>(options_.threads)), context_(*own_),
          busy_(std::in_place, context_.get_executor()), pool_(options_.blocking_threads, options_.blocking_queue),
          lanes_(std::make_shared<detail::asio_lanes>(context_, options_.threads, false)) {
        try {
            for (std::size_t i = 0; i < options_.threads; ++i) threads_.emplace_back([this] { context_.run(); });
        } catch (...) {
            stop();
            throw;
        }
    }

    // Adopts a context that the application runs, on as many threads as it likes, and that must outlive this. The
    // context is kept from running out of work only while this holds a timer or any work, or waits for something to read.
    explicit asio_runtime(boost::asio::io_context& context, asio_options options = {})
        : options_(checked(options)), context_(context),
          pool_(options_.blocking_threads, options_.blocking_queue, [this](bool busy) { keep_running(busy); }),
          lanes_(std::make_shared<detail::asio_lanes>(context_, options_.threads, true)) {}

    ~asio_runtime() override { stop(); }

    std::string_view name() const noexcept override { return "asio"; }
    time_point now() const noexcept override { return detail::asio_lanes::clock::now(); }
    time_point coarse_now() const noexcept override { return detail::coarse_steady_now(); }
    bool post(work& w) noexcept override { return lanes_->post(w); }
    bool post_blocking(work& w) noexcept override { return pool_.post(w); }
    bool arm(timer& t, time_point due) noexcept override { return lanes_->arm(t, due); }
    bool cancel(timer& t) noexcept override { return lanes_->cancel(t); }
    std::unique_ptr<readable_watch> watch_readable(int descriptor) override {
        return std::make_unique<detail::asio_readable>(lanes_, descriptor);
    }
    bool stopped() const noexcept override { return stopped_.load(std::memory_order_acquire); }

    void stop() noexcept override {
        const std::lock_guard lock(stop_mutex_);
        if (stopped_.exchange(true)) return;
        pool_.close();
        lanes_->stop(); // before the pool has ended, for blocking work may wait for a timer
        pool_.stop();
        busy_.reset();
        if (own_) own_->stop();
        for (auto& each : threads_) each.join();
        threads_.clear();
    }

    boost::asio::io_context& context() noexcept { return context_; }
    executor_type get_executor() noexcept { return context_.get_executor(); }

private:
    static asio_options checked(asio_options o) noexcept {
        o.threads = std::max<std::size_t>(o.threads, 1);
        return o;
    }
    void keep_running(bool busy) {
        if (busy) busy_.emplace(context_.get_executor());
        else busy_.reset();
    }

    const asio_options options_;
    std::optional<boost::asio::io_context> own_;
    boost::asio::io_context& context_;
    std::optional<boost::asio::executor_work_guard<executor_type>> busy_;
    blocking_pool pool_;
    std::shared_ptr<detail::asio_lanes> lanes_;
    std::vector<std::thread> threads_;
    std::mutex stop_mutex_;
    std::atomic<bool> stopped_ = false;
};

} // namespace holdfast
