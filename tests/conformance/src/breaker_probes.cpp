// Cases 34 to 37 and 39: half open, probes, isolation.
#include <atomic>

#include <holdfast/task_scope.hpp>

#include "breaker.hpp"

namespace holdfast::conformance {

namespace {

std::atomic<bool> predicate_throws = false;

// A circuit that has just become half open.
void bring_to_half_open(lab& l, bound_policy p) {
    fail_times(l, p, 1);
    l.sleep(5s);
    check_equal(p.circuit(), circuit_state::half_open, "circuit after the break");
}

void probes_are_limited(lab& l) {
    constexpr int probes = 3, callers = 1000;
    const auto p = l.add({.name = "probed", .breaker = {.consecutive_failures = 1, .break_for = 5s, .probes = probes}});
    bring_to_half_open(l, p);
    std::atomic<int> calls = 0;
    std::vector<task<outcome<int>>> running;
    for (int i = 0; i < callers; ++i)
        running.push_back(
            on_runtime(l.rt(), lab::start_async(p, [&](attempt& a) { return ++calls, give_after(a, 1s, 1); })));
    int refused = 0, told = 0, good = 0;
    for (const auto& each : l.await(when_all(std::move(running)))) {
        refused += each.refusal() == errc::circuit_open ? 1 : 0;
        told += each.retry_after() && *each.retry_after() > duration::zero() ? 1 : 0;
        good += each.succeeded() ? 1 : 0;
    }
    check_equal(calls.load(), probes, "calls that ran");
    check_equal(good, probes, "calls that succeeded");
    check_equal(refused, callers - probes, "calls that were refused");
    check_equal(told, callers - probes, "calls that were told when to come back");
    check_equal(p.circuit(), circuit_state::closed, "circuit after all probes succeeded");
}

void permits_come_back(lab& l) {
    const auto p = l.add({.name = "probed",
                          .rules = {stop_on<ignorable>(), retry_when([](const failure& f) {
                                        if (predicate_throws) throw std::logic_error("predicate");
                                        return !f.is_value();
                                    })},
                          .breaker = {.consecutive_failures = 1, .break_for = 5s}});
    bring_to_half_open(l, p);
    std::stop_source source;
    {
        const alarm stop(l, 1s, [&] { source.request_stop(); });
        l.run(p, [](attempt& a) { return give_after(a, 1min, 1); }, source.get_token());
    }
    check_equal(p.circuit(), circuit_state::half_open, "circuit after a probe was cancelled");
    check_equal(l.run(p, fail_ignored).attempt_count(), 1, "attempts after a probe was cancelled");
    check_equal(p.circuit(), circuit_state::half_open, "circuit after a probe was ignored");
    predicate_throws = true;
    const auto thrown = l.run(p, break_down);
    predicate_throws = false;
    check_exception<std::logic_error>(thrown.exception(), "predicate", "the error of the predicate");
    check_equal(p.circuit(), circuit_state::half_open, "circuit after the predicate threw");
    check(l.run(p, succeed).succeeded(), "the permit is free for the next probe");
    check_equal(p.circuit(), circuit_state::closed, "circuit after the probe");
}

void endless_probe(lab& l) {
    const auto p =
        l.add({.name = "probed", .breaker = {.consecutive_failures = 1, .break_for = 5s, .probe_timeout = 30s}});
    bring_to_half_open(l, p);
    task_scope scope;
    std::optional<outcome<int>> late;
    const auto keep = [](task<outcome<int>> what, std::optional<outcome<int>>& to) -> task<void> {
        to.emplace(co_await std::move(what));
    };
    scope.spawn(keep(lab::start_async(p, [](attempt& a) { return give_late(a.runtime(), 10min, 1); }), late));
    const auto waiting = thrown_by([&] {
        check_refused(l, p, duration(30s), "while the probe runs");
        l.sleep(30s - 1ns);
        check_refused(l, p, duration(1ns), "just before its permit expires");
        l.sleep(1ns);
        fail_times(l, p, 1);
        check_equal(p.circuit(), circuit_state::open, "circuit after a second probe failed");
    });
    l.await(scope.join());
    if (waiting) std::rethrow_exception(waiting);
    check(late->succeeded(), "the late probe has its value");
    check_equal(p.circuit(), circuit_state::half_open, "circuit after the late success: it closed nothing");
}

task<void> ended(task<outcome<int>> what) {
    co_await std::move(what);
}

void older_generations(lab& l) {
    l.add({.name = "aged", .breaker = {.consecutive_failures = 1, .break_for = 5s}});
    for (const bool fails : {false, true}) {
        const auto p = l.bind("aged", fails ? "fails" : "succeeds");
        task_scope scope;
        scope.spawn(ended(lab::start_async(p, [fails](attempt& a) {
            return fails ? fail_late(a.runtime(), 6s, "late") : give_late(a.runtime(), 6s, 1);
        })));
        const auto failed_check = thrown_by([&] {
            fail_times(l, p, 1);
            l.sleep(5s);
            check_equal(p.circuit(), circuit_state::half_open, "circuit before the late result");
            l.sleep(1s);
            l.sleep(1ns);
            check_equal(p.circuit(), circuit_state::half_open, "circuit after a late result of an older time");
            check(l.run(p, succeed).succeeded(), "a probe still goes through");
            check_equal(p.circuit(), circuit_state::closed, "circuit after the probe");
        });
        l.await(scope.join());
        if (failed_check) std::rethrow_exception(failed_check);
    }
    // A call of a closed time that ends in a later closed time counts there as nothing.
    const auto p = l.bind("aged", "closed-again");
    task_scope scope;
    scope.spawn(ended(lab::start_async(p, [](attempt& a) { return fail_late(a.runtime(), 1min, "late"); })));
    fail_times(l, p, 1);
    l.sleep(5s);
    l.run(p, succeed);
    const auto before = p.circuit();
    l.await(scope.join());
    check_equal(before, circuit_state::closed, "circuit before the late failure");
    check_equal(p.circuit(), circuit_state::closed, "circuit after a late failure of an older time");
}

void isolation(lab& l) {
    auto& events = l.listen();
    std::optional<bound_policy> bound;
    std::vector<circuit_state> seen;
    events.then = [&](const execution_event& e) {
        if (e.execution != 0 || e.key != "re-entrant") return;
        seen.push_back(bound->circuit()); // calls back while the circuit tells
        if (e.kind == event_kind::circuit_opened) bound->isolate_circuit();
        if (e.kind == event_kind::circuit_isolated) bound->close_circuit();
    };
    const auto p = l.add({.name = "isolated", .breaker = {.consecutive_failures = 1, .break_for = 5s}});
    bring_to_half_open(l, p);
    task_scope scope;
    scope.spawn(ended(lab::start_async(p, [](attempt& a) { return give_after(a, 1s, 1); })));
    p.isolate_circuit();
    const auto during = p.circuit();
    l.await(scope.join());
    check_equal(during, circuit_state::isolated, "circuit while the probe runs");
    check_equal(p.circuit(), circuit_state::isolated, "circuit after the probe succeeded");
    l.sleep(1h);
    check_equal(p.circuit(), circuit_state::isolated, "circuit long after the break");
    check_refused(l, p, std::nullopt, "an isolated circuit");
    p.isolate_circuit();
    p.close_circuit();
    p.close_circuit();
    check(l.run(p, succeed).succeeded(), "a circuit that was closed by hand lets calls through");

    std::vector<event_kind> kinds;
    for (const auto& each : events.entries())
        if (each.execution == 0) kinds.push_back(each.kind);
    using enum event_kind;
    check_equal(kinds, std::vector{circuit_opened, circuit_half_opened, circuit_isolated, circuit_closed},
                "events of the circuit");

    bound.emplace(l.bind("isolated", "re-entrant"));
    const std::size_t before = events.entries().size();
    fail_times(l, *bound, 1);
    check_equal(bound->circuit(), circuit_state::closed, "circuit after the listener has had its way");
    kinds.clear();
    for (const auto& each : events.entries())
        if (each.execution == 0) kinds.push_back(each.kind);
    check(events.entries().size() > before, "the listener was told");
    check_equal(kinds,
                std::vector{circuit_opened, circuit_half_opened, circuit_isolated, circuit_closed, circuit_opened,
                            circuit_isolated, circuit_closed},
                "events of both circuits");
    check_equal(seen.size(), 3U, "callbacks that looked at the circuit");
    const auto none = l.add({.name = "no-breaker"});
    none.isolate_circuit();
    check(l.run(none, succeed).succeeded(), "isolating means nothing without a breaker");
}

} // namespace

std::vector<test_case> circuit_probe_cases() {
    return {
        {34, "of a thousand callers only as many run as there are probes, the rest are told when to come back",
         probes_are_limited, false},
        {35, "a probe that is cancelled, ignored, or whose predicate throws gives its permit back", permits_come_back},
        {36, "the permit of a probe that never ends expires", endless_probe},
        {37, "a late result of an older generation neither closes nor opens", older_generations},
        {39, "isolation beats timers and a running probe, and callbacks may call back", isolation},
    };
}

} // namespace holdfast::conformance
