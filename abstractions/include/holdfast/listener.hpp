// Watching executions. With no listener attached, nothing is measured or allocated for this.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <string_view>
#include <system_error>

#include <holdfast/duration.hpp>
#include <holdfast/outcome.hpp>

namespace holdfast {

enum class event_kind : unsigned char {
    attempt_started,
    attempt_ended,   // end, took, exception or code
    retry_scheduled, // delay
    hedge_started,
    rejected,       // by the rate limit or the concurrency limit; code tells which
    circuit_opened, // delay = how long
    circuit_half_opened,
    circuit_closed,
    circuit_isolated,
    fallback_used,
    completed, // exactly one per execution, the last: reason, attempt = how many there were
};

constexpr std::string_view to_text(event_kind k) noexcept {
    switch (k) {
    case event_kind::attempt_started: return "attempt started";
    case event_kind::attempt_ended: return "attempt ended";
    case event_kind::retry_scheduled: return "retry scheduled";
    case event_kind::hedge_started: return "hedge started";
    case event_kind::rejected: return "rejected";
    case event_kind::circuit_opened: return "circuit opened";
    case event_kind::circuit_half_opened: return "circuit half-opened";
    case event_kind::circuit_closed: return "circuit closed";
    case event_kind::circuit_isolated: return "circuit isolated";
    case event_kind::fallback_used: return "fallback used";
    case event_kind::completed: return "completed";
    }
    return "unknown";
}

// Borrowed views: copy what you keep.
struct execution_event {
    event_kind kind;
    std::string_view policy;
    std::string_view key{};      // of a keyed pipeline
    std::uint64_t execution = 0; // the same for all events of one call; 0 for circuit events
    time_point at{};
    int attempt = 0;
    std::optional<attempt_end> end{};
    std::optional<stop_reason> reason{};
    std::optional<duration> delay{};
    std::optional<duration> took{};
    std::error_code code{};
    std::exception_ptr exception{};
};

// Called on the thread where the thing happens, with no lock held, so it may call back into the pipeline. Must be
// quick. What it throws is dropped.
class execution_listener {
public:
    virtual ~execution_listener() = default;
    virtual void on_event(const execution_event& e) = 0;
};

} // namespace holdfast
