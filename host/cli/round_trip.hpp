// Whether a runtime runs what it is given, and how soon. Gives nothing when it refuses, or does not within the limit.
#pragma once

#include <optional>

#include <holdfast/runtime.hpp>

namespace holdfast::cli {

inline constexpr duration round_trip_limit = std::chrono::seconds{5};

std::optional<duration> post_round_trip(runtime& on);
std::optional<duration> blocking_round_trip(runtime& on);
std::optional<duration> timer_round_trip(runtime& on, duration after);

} // namespace holdfast::cli
