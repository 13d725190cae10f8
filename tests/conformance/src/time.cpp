// Cases 18 to 24: timeouts.
#include <atomic>

#include "lab.hpp"

namespace holdfast::conformance {

namespace {

task<int> run_inner(lab& l, bound_policy inner, attempt& a, std::optional<outcome<int>>& seen) {
    auto running = l.start(inner, [](attempt&) -> int { throw std::runtime_error("down"); }, a.stop_token());
    seen.emplace(co_await std::move(running));
    co_return seen->value();
}

void total_timeout_during_backoff(lab& l) {
    const auto outer = l.add({.name = "outer", .total_timeout = 1s});
    const auto inner = l.add({.name = "inner", .retry = {.max_attempts = 5, .delay = 10s, .jitter = false}});
    std::optional<outcome<int>> seen;
    const auto o = l.run(outer, [&](attempt& a) { return run_inner(l, inner, a, seen); });
    check_equal(l.now(), duration(1s), "when it ended");
    check_equal(o.stop_reason(), stop_reason::deadline, "stop reason");
    check_equal(o.refusal(), errc::timed_out, "refusal");
    check(seen.has_value(), "the inner execution ended");
    check_equal(seen->attempt_count(), 1, "inner attempts");
    check_equal(seen->stop_reason(), stop_reason::cancelled, "stop reason of the inner execution");
    check_equal(l.timers(), 0U, "timers left");
}

void no_time_for_the_delay(lab& l) {
    const auto equal =
        l.add({.name = "equal", .retry = {.max_attempts = 5, .delay = 1s, .jitter = false}, .total_timeout = 1s});
    const auto failing = [](attempt& a) -> int { throw std::runtime_error("attempt " + std::to_string(a.number())); };
    const auto o = l.run(equal, failing);
    check_equal(l.now(), duration::zero(), "virtual time that passed");
    check_equal(o.attempt_count(), 1, "attempts");
    check_equal(o.stop_reason(), stop_reason::deadline, "stop reason");
    check_exception<std::runtime_error>(o.exception(), "attempt 1", "the last real error");
    check(!o.refusal(), "the real error is not hidden by a refusal");

    const auto second =
        l.add({.name = "second",
               .retry = {.max_attempts = 5, .delay = 600ms, .backoff = backoff::constant, .jitter = false},
               .total_timeout = 1s});
    const auto later = l.run(second, failing);
    check_equal(l.now(), duration(600ms), "virtual time that passed");
    check_equal(later.attempt_count(), 2, "attempts");
    check_equal(later.stop_reason(), stop_reason::deadline, "stop reason");
    check_exception<std::runtime_error>(thrown_by([&] { l.execute(second, failing); }), "attempt 2",
                                        "what execute throws");
    const auto fits =
        l.add({.name = "fits", .retry = {.max_attempts = 1, .delay = 999ms, .jitter = false}, .total_timeout = 1s});
    check_equal(l.run(fits, failing).stop_reason(), stop_reason::exhausted, "stop reason when the delay just fits");
}

void attempt_limit(lab& l) {
    const auto p =
        l.add({.name = "both", .retry = {.max_attempts = 5, .delay = 0ms}, .timeout = 600ms, .total_timeout = 1s});
    std::vector<duration> remaining;
    const auto o = l.run(p, [&](attempt& a) {
        remaining.push_back(a.remaining());
        return give_after(a, 1h, 1);
    });
    check_equal(remaining, std::vector<duration>{600ms, 400ms}, "time that each attempt got");
    check_equal(l.now(), duration(1s), "when it ended");
    check_equal(o.stop_reason(), stop_reason::deadline, "stop reason");
    check_equal(o.refusal(), errc::timed_out, "refusal");
    for (const auto& each : o.attempts()) check_equal(each.end, attempt_end::timed_out, "how an attempt ended");

    int calls = 0;
    const auto expired = l.add({.name = "expired", .retry = {.max_attempts = 5, .delay = 0ms}, .total_timeout = 0s});
    const auto none = l.run(expired, [&](attempt&) { return ++calls; });
    check_equal(calls, 0, "calls when the time is over on entry");
    check_equal(none.stop_reason(), stop_reason::deadline, "stop reason when the time is over on entry");
    check_equal(none.refusal(), errc::timed_out, "refusal when the time is over on entry");
    check_equal(none.attempt_count(), 0, "attempt count when the time is over on entry");
}

void odd_timeouts(lab& l) {
    int calls = 0;
    const auto count = [&](attempt&) { return ++calls; };
    const auto zero = l.run(l.add({.name = "zero", .timeout = 0s}), count);
    check_equal(calls, 0, "calls with a timeout of zero");
    check_equal(zero.refusal(), errc::timed_out, "refusal with a timeout of zero");
    check(!zero.succeeded(), "a timeout of zero is no success");
    check_equal(zero.stop_reason(), stop_reason::exhausted, "stop reason with a timeout of zero");

    for (const policy_options& bad :
         {policy_options{.name = "negative", .timeout = -1s}, {.name = "negative", .total_timeout = -1ns}}) {
        const auto refused = l.engine().catalog().add(bad);
        check(!refused.has_value(), "a negative timeout is refused");
        check_equal(refused.error().code, errc::invalid_policy, "why a negative timeout is refused");
    }
    const auto infinite = l.add({.name = "infinite", .timeout = forever, .total_timeout = forever});
    const auto o = l.run(infinite, [](attempt& a) {
        check_equal(a.deadline(), never, "deadline with an infinite timeout");
        check_equal(a.remaining(), forever, "remaining time with an infinite timeout");
        return give_after(a, 10'000h, 5);
    });
    check_equal(*o, 5, "value after a very long time");
    check_equal(l.now(), duration(10'000h), "when it ended");
}

// Ends in the same tick in which its time is over, without looking at its token.
task<int> end_on_the_tick(attempt& a) {
    const auto token = a.stop_token();
    auto sleeping = sleep_until(a.runtime(), a.deadline());
    co_await sleeping;
    co_return a.number();
}

void completion_races_timer(lab& l) {
    auto& events = l.listen();
    const auto p = l.add({.name = "race", .retry = {.max_attempts = 3, .delay = 0ms}, .timeout = 1s});
    const auto o = l.run(p, end_on_the_tick);
    check(o.has_value() && *o == 1, "the value that was produced is kept");
    check_equal(o.stop_reason(), stop_reason::succeeded, "stop reason");
    check_equal(o.attempt_count(), 1, "attempts");
    check_equal(events.count(event_kind::completed), 1, "terminal events");

    // Here the token wins or the value does, but never both, and nothing else.
    const auto heeding = l.run(p, [](attempt& a) { return give_after(a, a.remaining(), a.number()); });
    if (heeding.has_value()) check_equal(heeding.stop_reason(), stop_reason::succeeded, "stop reason of a value");
    else check_equal(heeding.refusal(), errc::timed_out, "refusal without a value");
    check_equal(events.count(event_kind::completed), 2, "terminal events");

    constexpr int many = 200;
    std::vector<task<outcome<int>>> running;
    for (int i = 0; i < many; ++i) running.push_back(on_runtime(l.rt(), lab::start_async(p, end_on_the_tick)));
    for (const auto& each : l.await(when_all(std::move(running)))) {
        check(each.has_value() && *each == 1, "the value that was produced is kept, many at a time");
        check_equal(each.attempts().size(), 1U, "attempts in the ledger");
    }
    check_equal(events.count(event_kind::completed), 2 + many, "terminal events");
    check_equal(p.stats().overdue_attempts, 0, "attempts that still run over time");
}

task<int> nested_sleep(lab& l, bound_policy inner, attempt& a, std::optional<outcome<int>>& seen) {
    auto running = l.start(inner, [](attempt& b) { return give_after(b, 1h, 1); }, a.stop_token());
    seen.emplace(co_await std::move(running));
    co_return seen->value();
}

void timeouts_on_one_tick(lab& l) {
    auto& events = l.listen();
    const auto same =
        l.add({.name = "same", .retry = {.max_attempts = 3, .delay = 0ms}, .timeout = 1s, .total_timeout = 1s});
    const auto o = l.run(same, [](attempt& a) { return give_after(a, 1h, 1); });
    check_equal(o.attempt_count(), 1, "attempts");
    check_equal(o.stop_reason(), stop_reason::deadline, "stop reason");
    check_equal(o.refusal(), errc::timed_out, "refusal");
    check_equal(events.count(event_kind::attempt_ended), 1, "ends of attempts that were reported");
    check_equal(events.count(event_kind::completed), 1, "terminal events");
    check_equal(same.stats().late_attempts, 1U, "late attempts");

    const auto outer = l.add({.name = "outer", .total_timeout = 1s});
    const auto inner = l.add({.name = "inner", .timeout = 1s});
    std::optional<outcome<int>> seen;
    const auto nested = l.run(outer, [&](attempt& a) { return nested_sleep(l, inner, a, seen); });
    check_equal(l.now(), duration(2s), "when the nested ones ended");
    check_equal(nested.stop_reason(), stop_reason::deadline, "stop reason of the outer");
    check_equal(nested.refusal(), errc::timed_out, "refusal of the outer");
    check(seen->refusal() == errc::cancelled || seen->refusal() == errc::timed_out, "the inner reports one of the two");
    check_equal(events.count(event_kind::completed), 3, "terminal events of all three executions");
}

task<int> ignore_token(attempt& a, bool fails) {
    const auto token = a.stop_token(); // asked for, and not heeded
    auto late = fails ? fail_late(a.runtime(), 5s, "too late anyway") : give_late(a.runtime(), 5s, a.number());
    co_return co_await std::move(late);
}

void ignored_token(lab& l) {
    const auto p =
        l.add({.name = "deaf", .retry = {.max_attempts = 1, .delay = 0ms}, .timeout = 1s, .concurrency = {.limit = 1}});
    std::optional<pipeline_stats> early, midway;
    {
        const alarm before(l, 900ms, [&] { early = p.stats(); });
        const alarm during(l, 2s, [&] { midway = p.stats(); });
        const auto o = l.run(p, [](attempt& a) { return ignore_token(a, false); });
        check(o.has_value() && *o == 1, "a late value is kept");
        check_equal(o.stop_reason(), stop_reason::succeeded, "stop reason");
        check_equal(o.attempts()[0].end, attempt_end::timed_out, "how the attempt ended");
    }
    check_equal(l.now(), duration(5s), "when it ended");
    check_equal(early->overdue_attempts, 0, "overdue attempts before the deadline");
    check_equal(midway->overdue_attempts, 1, "overdue attempts after the deadline");
    check_equal(midway->running, 1, "slots held after the deadline");
    check_equal(p.stats().overdue_attempts, 0, "overdue attempts at the end");
    check_equal(p.stats().late_attempts, 1U, "late attempts");
    check_equal(p.stats().running, 0, "slots held at the end");

    const auto o = l.run(p, [](attempt& a) { return ignore_token(a, a.number() == 1); });
    check_equal(o.attempt_count(), 2, "attempts when the first throws too late");
    check_equal(o.attempts()[0].end, attempt_end::timed_out, "how the first ended");
    check_equal(p.stats().late_attempts, 3U, "late attempts");
    const auto lost = l.run(p, [](attempt& a) { return ignore_token(a, true); });
    check_equal(lost.refusal(), errc::timed_out, "refusal when all throw too late");
    check_equal(lost.stop_reason(), stop_reason::exhausted, "stop reason when all throw too late");
    check_equal(l.timers(), 0U, "timers left");
}

} // namespace

test_group time_group() {
    return {
        "time",
        {
            {18, "a total timeout during backoff ends at the deadline without another attempt",
             total_timeout_during_backoff},
            {19, "a delay that does not fit is not slept, and the last real error comes back", no_time_for_the_delay},
            {20, "an attempt gets the smaller of its timeout and what remains, and none when nothing remains",
             attempt_limit},
            {21, "zero, negative and infinite timeouts are each defined", odd_timeouts},
            {22, "when completion races the timer there is one outcome and a produced value is not lost",
             completion_races_timer},
            {23, "of nested timeouts on the same tick one reports", timeouts_on_one_tick},
            {24, "an attempt that ignores its token is counted and its late end harms nothing", ignored_token},
        }};
}

} // namespace holdfast::conformance
