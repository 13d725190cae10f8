// Case 45: hedged attempts.
#include <array>
#include <atomic>

#include "limits.hpp"

namespace holdfast::conformance {

namespace {

struct starts {
    std::array<std::atomic<std::int64_t>, 4> at{};
    std::atomic<int> calls = 0;

    void note(lab& l, const attempt& a, duration began) {
        at[static_cast<std::size_t>(a.number())] = (l.now() - began).count();
        ++calls;
    }
    duration of(int number) const { return duration(at[static_cast<std::size_t>(number)].load()); }
};

void never_early(lab& l, bound_policy p) {
    starts seen;
    duration began = l.now();
    auto o = l.run(p, [&](attempt& a) { return seen.note(l, a, began), give_after(a, 99ms, a.number()); });
    check_equal(seen.calls.load(), 1, "calls when the first answers in time");
    check_equal(*o, 1, "the answer in time");
    check_equal(l.now() - began, duration(99ms), "when it answered in time");

    began = l.now();
    starts late;
    o = l.run(
        p, [&](attempt& a) { return late.note(l, a, began), give_after(a, a.number() == 1 ? 1h : 10ms, a.number()); });
    check_equal(late.calls.load(), 2, "calls when the first is slow");
    check_equal(late.of(2), duration(100ms), "when the hedge started");
    check_equal(*o, 2, "the quicker answer");
    check_equal(l.now() - began, duration(110ms), "when the quicker answer came, the loser did not hold it up");
    check_equal(o.stop_reason(), stop_reason::succeeded, "stop reason");
    check_equal(o.attempts().size(), 2U, "attempts in the ledger");
    for (const auto& each : o.attempts()) {
        check_equal(each.end, each.number == 2 ? attempt_end::succeeded : attempt_end::cancelled,
                    "how an attempt ended");
        check_equal(each.hedge, each.number == 2, "which attempt was the hedge");
    }

    if (!l.overlaps()) return;
    began = l.now();
    o = l.run(p, [&](attempt& a) { return give_after(a, a.number() == 1 ? 150ms : 1h, a.number()); });
    check_equal(*o, 1, "the answer of a slow first that still wins");
    check_equal(l.now() - began, duration(150ms), "when the slow first answered");
}

void failures(lab& l, bound_policy p) {
    starts seen;
    const duration began = l.now();
    auto o = l.run(p, [&](attempt& a) {
        seen.note(l, a, began);
        return a.number() == 1 ? fail_after(a, 10ms, "attempt 1") : give_after(a, 20ms, a.number());
    });
    check_equal(seen.of(2), duration(10ms), "when the next started after a failure");
    check_equal(*o, 2, "the answer after a failure");
    check_equal(l.now() - began, duration(30ms), "when it came");

    o = l.run(p, [&](attempt& a) {
        return fail_after(a, a.number() == 1 ? 500ms : 10ms, "attempt " + std::to_string(a.number()));
    });
    check_equal(o.attempt_count(), 2, "attempts when all fail");
    check_exception<std::runtime_error>(o.exception(), "attempt 1", "the error when all fail");
    check_equal(o.stop_reason(), stop_reason::exhausted, "stop reason when all fail");
}

} // namespace

void hedging(lab& l) {
    const auto p = l.add({.name = "hedged", .hedge = {.max_hedges = 1, .after = 100ms}});
    never_early(l, p);
    failures(l, p);

    std::stop_source source;
    const alarm stop(l, 150ms, [&] { source.request_stop(); });
    const duration began = l.now();
    const auto o = l.run(p, [](attempt& a) { return give_after(a, 1h, 1); }, source.get_token());
    check_equal(o.stop_reason(), stop_reason::cancelled, "stop reason when the caller cancels");
    check_equal(l.now() - began, duration(150ms), "when the cancel returned");
    check_equal(l.timers(), 0U, "timers left");
}

} // namespace holdfast::conformance
