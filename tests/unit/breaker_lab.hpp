// A breaker with its clock in the test's hand.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "circuit_breaker.hpp"

#include "catch.hpp"

namespace holdfast::test {

using namespace std::chrono_literals;

// Keeps a note of every transition.
struct breaker_lab {
    using verdict = circuit_breaker::verdict;
    using permit = circuit_breaker::permit;

    explicit breaker_lab(breaker_settings with) : s(with) {}

    bool enter(permit& p) {
        return breaker.enter(s, [&] { return now; }, p, retry_after);
    }
    void record(permit p, verdict v) {
        breaker.record(s, [&] { return now; }, p, v);
    }
    // One whole call. False: refused.
    bool call(verdict v) {
        permit p;
        if (!enter(p)) return false;
        record(p, v);
        return true;
    }
    void fail(int times) {
        for (int i = 0; i < times; ++i) REQUIRE(call(verdict::failure));
    }
    circuit_state state() const { return breaker.state(now); }
    std::string story() const {
        std::string text;
        for (const auto& each : told) {
            if (!text.empty()) text += ", ";
            text += to_text(each.to);
            if (each.to == circuit_state::open) text += " " + to_text(each.break_for);
        }
        return text;
    }

    breaker_settings s;
    time_point now{1h};
    duration retry_after{};
    std::vector<circuit_breaker::transition> told;
    std::function<void(const circuit_breaker::transition&)> also;
    circuit_breaker breaker{[this](const circuit_breaker::transition& t) {
        told.push_back(t);
        if (also) also(t);
    }};
};

inline breaker_settings consecutive(int failures, int probes = 1) {
    return breaker_settings::from({.consecutive_failures = failures, .break_for = 5s, .probes = probes});
}
inline breaker_settings by_ratio(double ratio, int min_throughput, duration window = 10s) {
    return breaker_settings::from(
        {.failure_ratio = ratio, .window = window, .min_throughput = min_throughput, .break_for = 5s});
}

} // namespace holdfast::test
