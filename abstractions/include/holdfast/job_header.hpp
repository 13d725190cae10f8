// Headers of jobs that mean something to the library; all others are the application's own.
#pragma once

#include <charconv>
#include <string_view>
#include <system_error>

#include <holdfast/payload.hpp>

namespace holdfast {

namespace job_header {
inline constexpr std::string_view correlation_id = "correlation-id";
inline constexpr std::string_view trace_parent = "traceparent";
inline constexpr std::string_view idempotency_key = "idempotency-key";
inline constexpr std::string_view attempts_before = "attempts-before"; // made in process, before it became a job
inline constexpr std::string_view ask_no_probe = "ask-no-probe"; // restart::allowed said for one job of a probed type
} // namespace job_header

// The attempts that count besides those that the store knows: of run_or_enqueue, made before there was a job. A new
// generation begins to count anew.
inline int attempts_before(const headers& extra, int generation) noexcept {
    if (extra.empty() || generation > 1) return 0;
    const auto found = extra.find(job_header::attempts_before);
    if (found == extra.end()) return 0;
    int number = 0;
    const std::string_view text = found->second;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
    return read.ec == std::errc() && read.ptr == text.data() + text.size() && number > 0 ? number : 0;
}

} // namespace holdfast
