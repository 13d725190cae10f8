// A reason for which a worker puts jobs off, unburnt. Each time leaves an entry in a job's history, so the waits grow: each is as long
// again as the reason has lasted.
#pragma once

#include <algorithm>

#include <holdfast/duration.hpp>
#include <holdfast/runtime.hpp>

namespace holdfast {

// The worker's lock guards it.
class put_off_reason {
public:
    put_off_reason(duration least, duration most) noexcept : least_(least), most_(std::max(least, most)) {}

    // For one more job. A reason that nobody had for long has gone meanwhile.
    duration wait(time_point now) noexcept {
        if (last_ == never || now - last_ > saturating_twice(most_)) since_ = now;
        last_ = now;
        return std::clamp(now - since_, least_, most_);
    }
    // Whether to tell of it: once a minute.
    bool complains(time_point now) noexcept {
        constexpr duration every = std::chrono::minutes{1};
        if (told_ != never && now - told_ < every) return false;
        told_ = now;
        return true;
    }

private:
    static duration saturating_twice(duration d) noexcept { return d > forever / 2 ? forever : 2 * d; }

    duration least_;
    duration most_;
    time_point since_ = never;
    time_point last_ = never;
    time_point told_ = never;
};

} // namespace holdfast
