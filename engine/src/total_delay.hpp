// How long waits add up to, saturating at `forever`.
#pragma once

#include <algorithm>
#include <cstdint>

#include <holdfast/policy.hpp>

namespace holdfast {

inline duration saturating_sum(duration a, duration b) {
    return b >= forever - a ? forever : a + b;
}

inline duration saturating_product(duration a, long n) {
    return n > 0 && a > forever / n ? forever : a * n;
}

// delay * (1 + 2 + 3 + …), each of them at most max_delay, however many there are.
inline duration total_linear_delay(const retry_settings& r) {
    const std::int64_t rising = std::min<std::int64_t>(r.max_attempts, r.max_delay / r.delay);
    const auto sum = static_cast<__int128>(r.delay.count()) * rising * (rising + 1) / 2 +
                     static_cast<__int128>(r.max_delay.count()) * (r.max_attempts - rising);
    return sum > forever.count() ? forever : duration{static_cast<std::int64_t>(sum)};
}

// The longest all waits between attempts can add up to. Jitter only shortens them.
inline duration total_delay(const retry_settings& r) {
    if (r.intervals.empty() && r.delay == duration::zero()) return duration::zero();
    if (r.intervals.empty() && r.backoff == backoff::linear) return total_linear_delay(r);
    duration sum{};
    retry_settings plain = r;
    plain.jitter = false;
    random_series unused(0);
    for (int n = 1; n <= plain.max_attempts && sum != forever; ++n) {
        const duration d = plain.delay_before(n, unused);
        if (plain.intervals.empty() && (d == plain.max_delay || plain.backoff == backoff::constant)) // stays so
            return saturating_sum(sum, saturating_product(d, plain.max_attempts - n + 1));
        sum = saturating_sum(sum, d);
    }
    return sum;
}

} // namespace holdfast
