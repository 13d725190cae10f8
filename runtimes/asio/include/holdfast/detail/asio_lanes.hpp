// Lanes on an io_context, with one Asio timer as their alarm.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include <holdfast/work_lanes.hpp>

namespace holdfast::detail {

// Shared with its handlers, which may stay in an adopted context long after the runtime is gone.
class asio_lanes final : public work_lanes, public std::enable_shared_from_this<asio_lanes> {
public:
    asio_lanes(boost::asio::io_context& context, std::size_t lanes, bool adopted)
        : work_lanes({.lanes = lanes, .adopted = adopted, .alarm_holds = adopted}), context_(context), memory_(lanes) {}

    using work_lanes::bring;
    using work_lanes::run_lane;
    boost::asio::io_context& context() noexcept { return context_; }

private:
    struct handler_memory {
        bool taken = false;
        alignas(std::max_align_t) std::byte bytes[256];
    };

    // Gives a lane's handler memory of its own, so that waking one allocates nothing.
    template <class T>
    struct lane_allocator {
        using value_type = T;
        explicit lane_allocator(handler_memory* of) noexcept : owner(of) {}
        template <class U>
        lane_allocator(const lane_allocator<U>& other) noexcept : owner(other.owner) {}

        T* allocate(std::size_t n) {
            if (owner->taken || n * sizeof(T) > sizeof(owner->bytes) || alignof(T) > alignof(std::max_align_t))
                return std::allocator<T>().allocate(n);
            owner->taken = true;
            return reinterpret_cast<T*>(owner->bytes);
        }
        void deallocate(T* p, std::size_t n) noexcept {
            if (static_cast<void*>(p) != owner->bytes) return std::allocator<T>().deallocate(p, n);
            owner->taken = false;
        }
        template <class U>
        bool operator==(const lane_allocator<U>& other) const noexcept {
            return owner == other.owner;
        }
        handler_memory* owner;
    };

    struct handler {
        using allocator_type = lane_allocator<std::byte>;
        allocator_type get_allocator() const noexcept { return allocator_type(&owner->memory_[lane]); }
        void operator()() const noexcept { owner->run_lane(lane); }
        std::shared_ptr<asio_lanes> owner;
        std::size_t lane;
    };

    void schedule(std::size_t lane) noexcept override {
        boost::asio::post(context_, handler{shared_from_this(), lane});
    }

    void set_alarm(time_point at, std::uint64_t number) override {
        if (!alarm_) alarm_.emplace(context_);
        alarm_->expires_at(at);
        alarm_->async_wait(
            [self = shared_from_this(), number](const boost::system::error_code&) { self->rang(number); });
    }
    void put_alarm_off() noexcept override { alarm_.reset(); }

    boost::asio::io_context& context_;
    std::vector<handler_memory> memory_;
    std::optional<boost::asio::steady_timer> alarm_; // not there once stopped
};

} // namespace holdfast::detail
