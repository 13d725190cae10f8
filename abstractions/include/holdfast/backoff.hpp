// Delay arithmetic: pure, exact, saturating. Shared by inline retries and by everything that schedules one.
#pragma once

#include <cstdint>
#include <string_view>

#include <holdfast/duration.hpp>

namespace holdfast {

enum class backoff : unsigned char {
    constant,    // delay
    linear,      // delay * n
    exponential, // delay * 2^(n-1)
};

constexpr std::string_view to_text(backoff b) noexcept {
    switch (b) {
    case backoff::constant: return "constant";
    case backoff::linear: return "linear";
    case backoff::exponential: return "exponential";
    }
    return "unknown";
}

// A small seeded generator (splitmix64). One per execution, so that executions do not disturb each other's series.
class random_series {
public:
    constexpr explicit random_series(std::uint64_t seed) noexcept : state_(seed) {}
    constexpr std::uint64_t next() noexcept {
        std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
        return z ^ (z >> 31);
    }

private:
    std::uint64_t state_;
};

// The delay before retry n (n >= 1), without jitter: never negative, never above max_delay, for every n.
constexpr duration backoff_delay(backoff kind, duration base, duration max_delay, std::int64_t n) noexcept {
    const std::int64_t step = base.count();
    if (step <= 0 || n < 1) return duration::zero();
    if (base >= max_delay) return max_delay;
    const std::int64_t most = max_delay.count() / step; // the largest factor that stays within the cap
    switch (kind) {
    case backoff::constant: return base;
    case backoff::linear: return n > most ? max_delay : base * n;
    case backoff::exponential:
        if (n - 1 >= 63 || (std::int64_t{1} << (n - 1)) > most) return max_delay;
        return base * (std::int64_t{1} << (n - 1));
    }
    return base;
}

// Keeps half of the delay and draws the rest: uniform in [d - d/2, d]. It never exceeds d, so a cap still holds, and
// it does not pile up at the cap.
constexpr duration with_jitter(duration d, random_series& random) noexcept {
    const auto half = static_cast<std::uint64_t>(d.count() / 2);
    if (half == 0) return d;
    return d - duration{static_cast<std::int64_t>(random.next() % (half + 1))};
}

} // namespace holdfast
