// A descriptor that an io_context watches, for work of the runtime.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include <boost/asio/posix/stream_descriptor.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <holdfast/detail/asio_lanes.hpp>
#include <holdfast/runtime.hpp>

namespace holdfast::detail {

class asio_readable final : public readable_watch {
public:
    // Watches a copy of the descriptor, so that whoever closes the other takes nothing away. Throws if there is none left.
    asio_readable(std::shared_ptr<asio_lanes> lanes, int descriptor)
        : state_(std::make_shared<state>(std::move(lanes), ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0))) {}
    ~asio_readable() override {
        cancel();
        state_->close();
    }

    bool wait(work& w) noexcept override { return state_->wait(w); }
    bool cancel() noexcept override { return state_->cancel(); }

private:
    // Shared with its handlers, which may stay in an adopted context.
    class state : public std::enable_shared_from_this<state> {
    public:
        state(std::shared_ptr<asio_lanes> lanes, int copy) : lanes_(std::move(lanes)), of_(lanes_->context()) {
            try {
                of_.assign(copy);
            } catch (...) {
                ::close(copy);
                throw;
            }
        }

        bool wait(work& w) noexcept {
            const std::lock_guard lock(mutex_);
            if (waiting_ != nullptr || !lanes_->takes_work()) return false;
            try {
                of_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                               [self = shared_from_this(), number = ++number_](const boost::system::error_code&) {
                                   self->came(number);
                               });
            } catch (...) {
                return false;
            }
            waiting_ = &w;
            return true;
        }

        bool cancel() noexcept {
            const std::lock_guard lock(mutex_);
            if (std::exchange(waiting_, nullptr) == nullptr) return false;
            boost::system::error_code ignored;
            static_cast<void>(of_.cancel(ignored));
            return true;
        }

        void close() noexcept {
            const std::lock_guard lock(mutex_);
            boost::system::error_code ignored;
            static_cast<void>(of_.close(ignored));
        }

    private:
        void came(std::uint64_t number) noexcept {
            std::optional<std::size_t> lane;
            {
                const std::lock_guard lock(mutex_);
                if (waiting_ == nullptr || number != number_) return; // it was cancelled
                const auto brought = lanes_->bring(*waiting_);
                if (!brought.taken) return; // stopped: who waits gets it back by cancel()
                waiting_ = nullptr;
                lane = brought.lane;
            }
            if (lane) lanes_->run_lane(*lane);
        }

        const std::shared_ptr<asio_lanes> lanes_;
        std::mutex mutex_;
        boost::asio::posix::stream_descriptor of_;
        work* waiting_ = nullptr;
        std::uint64_t number_ = 0; // of the latest wait: those before were cancelled
    };

    std::shared_ptr<state> state_;
};

} // namespace holdfast::detail
