// Lanes on a folly executor, with a timeout of a Timekeeper as their alarm.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

#include <folly/Executor.h>
#include <folly/futures/Future.h>

#include <holdfast/work_lanes.hpp>

namespace holdfast::detail {

// Shared with its functions, which may stay in an adopted executor long after the runtime is gone. The executor and the
// timekeeper are used until stop() has returned.
class folly_lanes final : public work_lanes, public std::enable_shared_from_this<folly_lanes> {
public:
    folly_lanes(folly::Executor& executor, folly::Timekeeper& timekeeper, std::size_t lanes, bool adopted)
        : work_lanes({.lanes = lanes, .adopted = adopted}), executor_(executor), timekeeper_(timekeeper) {}

private:
    static constexpr std::chrono::hours longest{24}; // a deadline without an end would overflow in the timekeeper

    void schedule(std::size_t lane) noexcept override {
        executor_.add([self = shared_from_this(), lane] { self->run_lane(lane); });
    }

    void set_alarm(time_point at, std::uint64_t number) override {
        put_alarm_off();
        const duration left = std::clamp<duration>(at - clock::now(), duration::zero(), longest);
        alarm_ = timekeeper_.after(std::chrono::ceil<folly::HighResDuration>(left))
                     .via(folly::getKeepAliveToken(executor_))
                     .thenTry([self = shared_from_this(), number](folly::Try<folly::Unit>&& ended) {
                         if (ended.hasValue()) self->rang(number); // else it was put off
                     });
    }
    void put_alarm_off() noexcept override {
        if (alarm_.valid()) alarm_.cancel();
        alarm_ = folly::Future<folly::Unit>::makeEmpty();
    }

    folly::Executor& executor_;
    folly::Timekeeper& timekeeper_;
    folly::Future<folly::Unit> alarm_ = folly::Future<folly::Unit>::makeEmpty();
};

} // namespace holdfast::detail
