// Permits at a steady rate with a burst. Counts permits instead of adding up intervals, so it never drifts. Any
// thread, no lock.
#pragma once

#include <atomic>
#include <cstdint>

#include <holdfast/duration.hpp>
#include <holdfast/policy.hpp>

namespace holdfast {

class rate_limiter {
public:
    rate_limiter(const rate_options& o, time_point start)
        : options_(o), burst_(o.burst == 0 ? o.permits : o.burst), start_(start) {}

    const rate_options& options() const noexcept { return options_; }

    bool try_take(time_point now, duration& retry_after) noexcept {
        const std::int64_t earned = earned_by(now);
        std::int64_t taken = taken_.load(std::memory_order_relaxed);
        for (;;) {
            const std::int64_t base = taken > earned ? taken : earned; // what was earned while idle is capped
            if (base - earned >= burst_) {
                retry_after = time_of(base - burst_ + 1) - (now - start_);
                return false;
            }
            if (taken_.compare_exchange_weak(taken, base + 1, std::memory_order_relaxed)) return true;
        }
    }

private:
    // Permits earned since the start; the burst comes on top.
    std::int64_t earned_by(time_point now) const noexcept {
        const std::int64_t elapsed = (now - start_).count();
        if (elapsed <= 0) return 0;
        std::int64_t product = 0;
        if (!__builtin_mul_overflow(elapsed, static_cast<std::int64_t>(options_.permits), &product))
            return product / options_.per.count();
        return static_cast<std::int64_t>(static_cast<__int128>(elapsed) * options_.permits / options_.per.count());
    }
    // When the n-th permit is earned, rounded up, counted from the start.
    duration time_of(std::int64_t n) const noexcept {
        const auto product = static_cast<__int128>(n) * options_.per.count();
        return duration{static_cast<std::int64_t>((product + options_.permits - 1) / options_.permits)};
    }

    const rate_options options_;
    const std::int64_t burst_;
    const time_point start_;
    std::atomic<std::int64_t> taken_ = 0;
};

} // namespace holdfast
