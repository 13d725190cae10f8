// Cases 25 to 29: the caller asks to stop.
#include <atomic>

#include <holdfast/task_scope.hpp>

#include "lab.hpp"

namespace holdfast::conformance {

namespace {

// For callbacks that are plain functions.
std::atomic<std::stop_source*> to_stop = nullptr;

void before_the_start(lab& l) {
    const auto p = l.add(
        {.name = "plain", .retry = {.max_attempts = 3, .delay = 1s}, .timeout = 1min, .concurrency = {.limit = 1}});
    std::stop_source source;
    source.request_stop();
    int calls = 0;
    const auto count = [&](attempt&) { return ++calls; };
    const auto o = l.run(p, count, source.get_token());
    check_equal(calls, 0, "calls");
    check_equal(o.attempt_count(), 0, "attempt count");
    check_equal(o.stop_reason(), stop_reason::cancelled, "stop reason");
    check_equal(o.refusal(), errc::cancelled, "refusal");
    const auto thrown = thrown_by([&] { l.execute(p, count, source.get_token()); });
    check(detail::exception_as<operation_cancelled>(thrown) != nullptr, "execute throws operation_cancelled");
    check_equal(p.stats().running, 0, "slots held");
    check_equal(l.now(), duration::zero(), "virtual time that passed");
}

void during_attempt_and_backoff(lab& l) {
    const auto p = l.add({.name = "plain", .retry = {.max_attempts = 3, .delay = 10s, .jitter = false}});
    const auto timed = l.add({.name = "timed",
                              .retry = {.max_attempts = 3, .delay = 10s, .jitter = false},
                              .timeout = 1h,
                              .total_timeout = 2h});
    for (const auto& each : {p, timed}) {
        std::stop_source attempt_source, backoff_source;
        duration began = l.now();
        int calls = 0;
        {
            const alarm stop(l, 1s, [&] { attempt_source.request_stop(); });
            const auto o =
                l.run(each, [&](attempt& a) { return ++calls, give_after(a, 1min, 1); }, attempt_source.get_token());
            check_equal(o.stop_reason(), stop_reason::cancelled, "stop reason of a cancel during the attempt");
            check_equal(o.attempts()[0].end, attempt_end::cancelled, "how the attempt ended");
        }
        check_equal(calls, 1, "calls when cancelled during the attempt");
        check_equal(l.now() - began, duration(1s), "when a cancel during the attempt returned");
        began = l.now();
        {
            const alarm stop(l, 1s, [&] { backoff_source.request_stop(); });
            const auto o = l.run(
                each,
                [&](attempt&) -> int {
                    ++calls;
                    throw std::runtime_error("down");
                },
                backoff_source.get_token());
            check_equal(o.stop_reason(), stop_reason::cancelled, "stop reason of a cancel during backoff");
            check_equal(o.refusal(), errc::cancelled, "refusal of a cancel during backoff");
            check_equal(o.attempt_count(), 1, "attempts of a cancel during backoff");
        }
        check_equal(calls, 2, "calls when cancelled during backoff");
        check_equal(l.now() - began, duration(1s), "when a cancel during backoff returned");
        check_equal(l.timers(), 0U, "timers left");
    }
}

void inside_a_callback(lab& l) {
    std::stop_source from_listener, from_rule, from_body;
    auto& events = l.listen();
    events.then = [&](const execution_event& e) {
        if (e.kind == event_kind::attempt_ended && e.policy == "listened") from_listener.request_stop();
    };
    int calls = 0;
    const auto failing = [&](attempt&) -> int {
        ++calls;
        throw std::runtime_error("down");
    };
    const auto listened = l.add({.name = "listened", .retry = {.max_attempts = 3, .delay = 1s}});
    auto o = l.run(listened, failing, from_listener.get_token());
    check_equal(calls, 1, "calls when the listener cancels");
    check_equal(o.stop_reason(), stop_reason::cancelled, "stop reason when the listener cancels");

    const auto ruled =
        l.add({.name = "ruled",
               .retry = {.max_attempts = 3, .delay = 0ms},
               .rules = {retry_when([](const failure& f) { return to_stop.load()->request_stop(), !f.is_value(); })}});
    to_stop = &from_rule;
    o = l.run(ruled, failing, from_rule.get_token());
    to_stop = nullptr;
    check_equal(calls, 2, "calls when the rule cancels");
    check_equal(o.stop_reason(), stop_reason::cancelled, "stop reason when the rule cancels");

    const auto kept = l.run(listened, [&](attempt&) { return from_body.request_stop(), 7; }, from_body.get_token());
    check(kept.succeeded() && *kept == 7, "a success is kept when the cancel comes with it");
    check_equal(kept.stop_reason(), stop_reason::succeeded, "stop reason of a success");
    check_equal(l.now(), duration::zero(), "virtual time that passed");
}

task<int> sleep_deaf_then_fail(attempt& a, duration d) {
    const auto token = a.stop_token();
    auto late = fail_late(a.runtime(), d, "late");
    co_return co_await std::move(late);
}

void cancelled_or_timed_out(lab& l) {
    const auto p = l.add({.name = "timed", .timeout = 1s});
    const auto timed_out = l.run(p, [](attempt& a) { return give_after(a, 1h, 1); });
    check_equal(timed_out.refusal(), errc::timed_out, "refusal of a timeout");
    check_equal(timed_out.attempts()[0].end, attempt_end::timed_out, "how an attempt that timed out ended");

    for (const duration when : {duration(500ms), duration(1s), duration(2s)}) {
        std::stop_source source;
        const alarm stop(l, when, [&] { source.request_stop(); });
        const auto o = l.run(p, [](attempt& a) { return sleep_deaf_then_fail(a, 3s); }, source.get_token());
        check_equal(o.stop_reason(), stop_reason::cancelled, "stop reason when cancelled after " + to_text(when));
        check_equal(o.refusal(), errc::cancelled, "refusal when cancelled after " + to_text(when));
    }
    std::stop_source source;
    const alarm stop(l, 1s, [&] { source.request_stop(); });
    const auto same_tick = l.run(p, [](attempt& a) { return give_after(a, 1h, 1); }, source.get_token());
    check_equal(same_tick.stop_reason(), stop_reason::cancelled, "stop reason when both come in the same tick");
}

task<void> count_end(task<outcome<int>> what, std::atomic<int>& cancelled) {
    const auto o = co_await std::move(what);
    if (o.stop_reason() == stop_reason::cancelled) cancelled.fetch_add(1);
}

// Starts sleepers, then ends them by the function.
template <class End>
void end_sleepers(lab& l, bound_policy p, std::stop_token token, End end) {
    constexpr int sleepers = 10'000;
    std::atomic<int> calls = 0, cancelled = 0;
    task_scope scope;
    for (int i = 0; i < sleepers; ++i)
        scope.spawn(count_end(lab::start_async(
                                  p,
                                  [&](attempt&) -> int {
                                      ++calls;
                                      throw std::runtime_error("down");
                                  },
                                  token),
                              cancelled));
    const std::size_t sleeping = scope.running();
    const std::size_t armed = l.timers();
    end();
    l.await(scope.join());
    check_equal(sleeping, static_cast<std::size_t>(sleepers), "executions that sleep");
    check_equal(armed, static_cast<std::size_t>(sleepers), "timers armed");
    check_equal(cancelled.load(), sleepers, "executions that ended as cancelled");
    check_equal(calls.load(), sleepers, "calls in all");
    check_equal(l.timers(), 0U, "timers left");
}

void many_sleepers(lab& l) {
    const auto p = l.add({.name = "sleepy", .retry = {.max_attempts = 3, .delay = 1h}});
    std::stop_source source;
    end_sleepers(l, p, source.get_token(), [&] { source.request_stop(); });
    check_equal(l.now(), duration::zero(), "virtual time that passed");
    end_sleepers(l, p, {}, [&] { l.rt().stop(); });
    check(l.rt().stopped(), "the runtime has stopped");
}

} // namespace

test_group cancellation_group() {
    return {
        "cancellation",
        {
            {25, "cancelled before the start makes no attempt", before_the_start},
            {26, "a cancel during an attempt fires its token, and one during backoff returns at once",
             during_attempt_and_backoff},
            {27, "a cancel inside a callback suppresses the next attempt, and a success is kept", inside_a_callback},
            {28, "cancelled and timed out stay distinct, and of both the cancel wins", cancelled_or_timed_out},
            {29, "ten thousand sleepers all end when they are cancelled or the runtime stops", many_sleepers, false},
        }};
}

} // namespace holdfast::conformance
