// Bounds retries to a share of calls, so that a failing dependency is not hit harder than a healthy one. Any thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>

#include <holdfast/duration.hpp>
#include <holdfast/policy.hpp>

namespace holdfast {

// Counts in thousandths of a retry. It starts with one second of reserve (at least one retry when there is a reserve)
// and never holds more than ten seconds of reserve plus a hundred retries. A quiet time earns at most ten seconds of
// reserve, or one retry where that is more.
class retry_budget {
public:
    // A call was made.
    void earn(const budget_options& o) noexcept {
        if (o.ratio <= 0) return;
        const std::int64_t most = limit(o);
        const auto amount = static_cast<std::int64_t>(o.ratio * unit);
        if (balance_.load(std::memory_order_relaxed) + amount <= most)
            balance_.fetch_add(amount, std::memory_order_relaxed);
    }

    // False: no retry may be made now.
    bool spend(const budget_options& o, time_point now) {
        const std::lock_guard lock(mutex_);
        if (!started_) {
            started_ = true;
            refilled_ = now;
            if (o.reserve > 0) balance_.fetch_add(std::max<std::int64_t>(unit, scaled(o.reserve)));
        }
        const double seconds = std::chrono::duration<double>(now - refilled_).count();
        const double longest = std::max(10.0, 1.0 / o.reserve); // a small reserve saves up for one whole retry
        const auto refill = static_cast<std::int64_t>(std::min(seconds, longest) * o.reserve * unit);
        if (refill > 0) {
            // What is left over of a thousandth stays for the next time.
            refilled_ = seconds >= longest ? now : std::min(now, refilled_ + time_for(refill, o.reserve));
            const std::int64_t room = std::max<std::int64_t>(0, limit(o) - balance_.load());
            balance_.fetch_add(std::min(refill, room));
        }
        std::int64_t balance = balance_.load();
        do {
            if (balance < unit) return false;
        } while (!balance_.compare_exchange_weak(balance, balance - unit));
        return true;
    }

private:
    static constexpr std::int64_t unit = 1000;
    static std::int64_t scaled(double retries) noexcept { return static_cast<std::int64_t>(retries * unit); }
    static duration time_for(std::int64_t refill, double reserve) noexcept {
        return duration{static_cast<std::int64_t>(static_cast<double>(refill) * 1e9 / (reserve * unit))};
    }
    static std::int64_t limit(const budget_options& o) noexcept { return scaled(o.reserve) * 10 + 100 * unit; }

    std::atomic<std::int64_t> balance_ = 0;
    std::mutex mutex_;
    time_point refilled_{};
    bool started_ = false;
};

} // namespace holdfast
