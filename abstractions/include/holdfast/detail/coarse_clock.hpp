// steady_clock as of the kernel's last tick where that can be had: a fifth of the price.
#pragma once

#include <chrono>
#include <ctime>

#include <holdfast/duration.hpp>

namespace holdfast::detail {

inline time_point coarse_steady_now() noexcept {
#if defined(__linux__) && defined(CLOCK_MONOTONIC_COARSE)
    timespec read{};
    if (::clock_gettime(CLOCK_MONOTONIC_COARSE, &read) == 0)
        return time_point(std::chrono::seconds(read.tv_sec) + std::chrono::nanoseconds(read.tv_nsec));
#endif
    return std::chrono::steady_clock::now();
}

} // namespace holdfast::detail
