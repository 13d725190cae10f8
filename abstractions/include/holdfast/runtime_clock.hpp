// For plugin authors: the clock of a plugin that keeps its data in this process.
#pragma once

#include <chrono>

#include <holdfast/lease.hpp>
#include <holdfast/runtime.hpp>

namespace holdfast {

// The system's time when it was made, and from then on the runtime's clock, virtual or not: it never goes back.
class runtime_clock {
public:
    // Null: the system's steady clock. The runtime outlives it.
    explicit runtime_clock(const runtime* on)
        : on_(on), wall_(std::chrono::time_point_cast<std::chrono::microseconds>(std::chrono::system_clock::now())),
          began_(steady()) {}
    store_time now() const { return wall_ + std::chrono::duration_cast<std::chrono::microseconds>(steady() - began_); }

private:
    time_point steady() const { return on_ != nullptr ? on_->now() : std::chrono::steady_clock::now(); }

    const runtime* on_;
    store_time wall_;
    time_point began_;
};

// Never shorter than asked for.
inline std::chrono::microseconds in_store_time(duration d) {
    return std::chrono::ceil<std::chrono::microseconds>(d);
}

} // namespace holdfast
