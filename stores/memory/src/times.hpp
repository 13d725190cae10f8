#pragma once

#include <chrono>

#include <holdfast/lease.hpp>

namespace holdfast::memory {

// Never shorter than asked for.
inline std::chrono::microseconds in_store_time(duration d) {
    return std::chrono::ceil<std::chrono::microseconds>(d);
}

} // namespace holdfast::memory
