// Cases 30 to 33, 38, 40 and 41: when a circuit opens, and what follows.
#include "breaker.hpp"

#include <algorithm>

namespace holdfast::conformance {

namespace {

void trips_at_threshold(lab& l) {
    const auto row = l.add({.name = "row", .breaker = {.consecutive_failures = 3}});
    fail_times(l, row, 2);
    check_equal(row.circuit(), circuit_state::closed, "circuit one failure short");
    fail_times(l, row, 1);
    check_equal(row.circuit(), circuit_state::open, "circuit at the threshold");
    check_refused(l, row, duration(5s), "an open circuit");

    const auto ratio = l.add({.name = "ratio", .breaker = {.failure_ratio = 0.5, .min_throughput = 10}});
    fail_times(l, ratio, 9);
    check_equal(ratio.circuit(), circuit_state::closed, "circuit one call short of the minimum throughput");
    fail_times(l, ratio, 1);
    check_equal(ratio.circuit(), circuit_state::open, "circuit at the minimum throughput");

    const auto mixed = l.bind("ratio", "mixed");
    for (int i = 0; i < 6; ++i) l.run(mixed, succeed);
    fail_times(l, mixed, 5);
    check_equal(mixed.circuit(), circuit_state::closed, "circuit at 5 failures of 11");
    fail_times(l, mixed, 1);
    check_equal(mixed.circuit(), circuit_state::open, "circuit at 6 failures of 12");
}

void what_counts(lab& l) {
    const auto p = l.add({.name = "row", .rules = {stop_on<ignorable>()}, .breaker = {.consecutive_failures = 3}});
    fail_times(l, p, 2);
    l.run(p, succeed);
    fail_times(l, p, 2);
    check_equal(p.circuit(), circuit_state::closed, "circuit when a success came between");
    l.run(p, fail_ignored);
    std::stop_source source;
    l.run(
        p,
        [&](attempt&) -> int {
            source.request_stop();
            throw std::runtime_error("gave up");
        },
        source.get_token());
    l.run(p, [](attempt&) -> int { throw operation_cancelled(); });
    check_equal(p.circuit(), circuit_state::closed, "circuit after ignored and cancelled calls");
    fail_times(l, p, 1);
    check_equal(p.circuit(), circuit_state::open, "circuit at the third failure, ignored calls between");
    const auto only = l.bind("row", "ignored");
    for (int i = 0; i < 10; ++i) l.run(only, fail_ignored);
    check_equal(only.circuit(), circuit_state::closed, "circuit after ignored failures only");
}

void window_rolls(lab& l) {
    l.add({.name = "window", .breaker = {.failure_ratio = 1, .window = 10s, .min_throughput = 4}});
    // Three failures, then one more after a while: it opens only when all four are in the window. The window moves on
    // by tenths, so between nine and ten tenths both are right.
    const auto opens_after = [&](std::string key, duration pause) {
        const auto p = l.bind("window", key);
        fail_times(l, p, 3);
        l.sleep(pause);
        fail_times(l, p, 1);
        return p.circuit() == circuit_state::open;
    };
    check(opens_after("soon", 1ns), "failures right after each other are in one window");
    check(opens_after("inside", 9s - 1ns), "failures nine tenths apart are in one window");
    check(!opens_after("outside", 10s), "failures a whole window apart are not");
    check(!opens_after("beyond", 10s + 1ns), "failures more than a window apart are not");
    check(!opens_after("idle", 1000h), "a long pause empties the window");
    check(!opens_after("cycles", 10s * 1000), "a pause of many whole windows empties it too");

    // Failures that have left the window are gone for good; the later ones still count.
    const auto p = l.bind("window", "rolling");
    fail_times(l, p, 1);
    l.sleep(6s);
    fail_times(l, p, 2);
    l.sleep(6s);
    fail_times(l, p, 1);
    check_equal(p.circuit(), circuit_state::closed, "circuit when the first failure has left the window");
    fail_times(l, p, 1);
    check_equal(p.circuit(), circuit_state::open, "circuit with four failures in the window");
}

void half_opens_exactly(lab& l) {
    l.add({.name = "row", .breaker = {.consecutive_failures = 1, .break_for = 5s}});
    const auto by_query = l.bind("row", "query"), by_call = l.bind("row", "call");
    fail_times(l, by_query, 1);
    fail_times(l, by_call, 1);
    l.sleep_until(5s - 1ns);
    check_equal(by_query.circuit(), circuit_state::open, "circuit just before the end of the break");
    check_refused(l, by_call, duration(1ns), "a call just before the end of the break");
    l.sleep_until(5s);
    check_equal(by_query.circuit(), circuit_state::half_open, "circuit at the end of the break, by query");
    check(l.run(by_call, succeed).succeeded(), "a call at the end of the break goes through");
    check_equal(by_call.circuit(), circuit_state::closed, "circuit after the probe");
    check_equal(by_query.circuit(), circuit_state::half_open, "a query alone does not end it");
    check(l.run(by_query, succeed).succeeded(), "a call after a query goes through");
    check_equal(by_query.circuit(), circuit_state::closed, "circuit after the probe");
}

void rejection_is_no_failure(lab& l) {
    const auto p = l.add({.name = "patient",
                          .retry = {.max_attempts = 3, .delay = 1s, .jitter = false},
                          .rules = {stop_on<ignorable>()},
                          .breaker = {.consecutive_failures = 1, .break_for = 5s},
                          .budget = {.ratio = 0, .reserve = 0.001}});
    // The first failure opens the circuit and spends the one retry there is; the retry itself is refused.
    const auto first = l.run(p, break_down);
    check_equal(first.stop_reason(), stop_reason::circuit_open, "stop reason of the execution that opened it");
    check_equal(first.attempt_count(), 1, "attempts that were made");
    const duration before = l.now();
    for (int i = 0; i < 10; ++i) check_refused(l, p, duration(4s), "an open circuit");
    check_equal(l.now(), before, "time spent on refusals");
    l.sleep(4s);
    check_equal(p.circuit(), circuit_state::half_open, "circuit after the break, refusals did not prolong it");

    const auto asked =
        l.add({.name = "asked",
               .retry = {.max_attempts = 3, .delay = 1s, .max_delay = 30s, .jitter = false, .on_circuit_open = true},
               .breaker = {.consecutive_failures = 1, .break_for = 5s}});
    const duration began = l.now();
    int calls = 0;
    const auto o = l.run(asked, [&](attempt&) -> int {
        if (++calls == 1) throw std::runtime_error("down");
        return calls;
    });
    check(o.succeeded(), "a policy that asks for it waits for the circuit");
    check_equal(calls, 2, "calls");
    check_equal(l.now() - began, duration(5s), "when the circuit let it through");

    const auto spender = l.add({.name = "spender",
                                .retry = {.max_attempts = 1, .delay = 0ms},
                                .breaker = {.consecutive_failures = 100},
                                .budget = {.ratio = 0.5}});
    spender.isolate_circuit();
    for (int i = 0; i < 20; ++i) l.run(spender, succeed);
    spender.close_circuit();
    int retried = 0;
    for (int i = 0; i < 40; ++i) retried += l.run(spender, break_down).attempt_count() - 1;
    check_between(retried, 20, 30, "retries that the budget still pays for");
}

void growing_breaks(lab& l) {
    auto& events = l.listen();
    const auto p =
        l.add({.name = "growing", .breaker = {.consecutive_failures = 1, .break_for = 1s, .max_break_for = 5s}});
    const auto open_for = [&](duration expected) {
        fail_times(l, p, 1);
        check_refused(l, p, expected, "an open circuit");
        l.sleep(expected - 1ns);
        check_equal(p.circuit(), circuit_state::open, "circuit before the end of the break");
        l.sleep(1ns);
        check_equal(p.circuit(), circuit_state::half_open, "circuit at the end of the break");
    };
    for (const duration expected : {1s, 2s, 4s, 5s, 5s, 5s}) open_for(expected);
    l.run(p, succeed);
    check_equal(p.circuit(), circuit_state::closed, "circuit after a probe that succeeded");
    for (const duration expected : {1s, 2s}) open_for(expected);
    p.close_circuit();
    open_for(1s);
    std::vector<duration> told;
    for (const auto& each : events.entries())
        if (each.kind == event_kind::circuit_opened) told.push_back(each.delay.value_or(-1s));
    check_equal(told, std::vector<duration>{1s, 2s, 4s, 5s, 5s, 5s, 1s, 2s, 1s}, "breaks as told to the listener");
}

void shared_state(lab& l) {
    const auto p = l.add({.name = "shared", .breaker = {.consecutive_failures = 4}});
    const auto other = l.bind("shared", "other");
    p.try_execute([](attempt&) -> int { throw std::runtime_error("down"); });
    p.try_execute([](attempt&) -> std::string { throw std::runtime_error("down"); });
    l.await(lab::start_async(p, [](attempt&) -> std::unique_ptr<int> { throw std::runtime_error("down"); }));
    check_equal(p.circuit(), circuit_state::closed, "circuit one failure short");
    l.await(lab::start_async(l.bind("shared"), [](attempt&) { throw std::runtime_error("down"); }));
    check_equal(p.circuit(), circuit_state::open, "circuit after failures of every kind");
    check_refused(l, l.bind("shared"), duration(5s), "the same name");
    check_equal(other.circuit(), circuit_state::closed, "circuit of another key");
    check(l.run(other, succeed).succeeded(), "another key goes through");
    fail_times(l, other, 3);
    check_equal(l.bind("shared", "third").circuit(), circuit_state::closed, "circuit of a third key");
    fail_times(l, l.bind("shared", "other"), 1);
    check_equal(other.circuit(), circuit_state::open, "circuit of the same key, bound twice");
}

} // namespace

std::vector<test_case> circuit_trip_cases() {
    return {
        {30, "the circuit opens at the threshold, and only at the minimum throughput", trips_at_threshold},
        {31, "a success resets the row, ignored and cancelled calls count as neither", what_counts},
        {32, "window edges and long pauses roll correctly", window_rolls},
        {33, "an open circuit is half open exactly at the end of the break, by call and by query", half_opens_exactly},
        {38, "a rejection is no failure, spends no budget and is not retried unless asked", rejection_is_no_failure},
        {40, "growing breaks saturate, and start over once the circuit has closed", growing_breaks},
        {41, "one name shares one state across result types and call forms, different keys never do", shared_state},
    };
}

test_group breaker_group() {
    std::vector<test_case> all = circuit_trip_cases();
    for (auto& each : circuit_probe_cases()) all.push_back(std::move(each));
    std::ranges::sort(all, {}, &test_case::number);
    return {"breaker", std::move(all)};
}

} // namespace holdfast::conformance
