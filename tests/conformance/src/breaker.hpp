// What the cases about the circuit breaker share.
#pragma once

#include "lab.hpp"

namespace holdfast::conformance {

struct ignorable : std::runtime_error {
    ignorable() : runtime_error("no fault of theirs") {}
};

inline int succeed(attempt&) {
    return 1;
}
inline int break_down(attempt&) {
    throw std::runtime_error("down");
}
inline int fail_ignored(attempt&) {
    throw ignorable();
}

// Fails so often in a row.
inline void fail_times(lab& l, bound_policy p, int times) {
    for (int i = 0; i < times; ++i) l.run(p, break_down);
}

// Refused by the breaker, without a call.
inline void check_refused(lab& l, bound_policy p, std::optional<duration> retry_after, std::string_view what,
                          std::source_location where = std::source_location::current()) {
    int calls = 0;
    const auto o = l.run(p, [&](attempt&) { return ++calls; });
    check_equal(calls, 0, std::string(what) + ": calls", where);
    check_equal(o.stop_reason(), stop_reason::circuit_open, std::string(what) + ": stop reason", where);
    check_equal(o.refusal(), errc::circuit_open, std::string(what) + ": refusal", where);
    check(o.retry_after().has_value(), std::string(what) + ": told when to come back", where);
    if (retry_after) check_equal(o.retry_after(), retry_after, std::string(what) + ": when to come back", where);
}

std::vector<test_case> circuit_trip_cases();
std::vector<test_case> circuit_probe_cases();

} // namespace holdfast::conformance
