// Cases 42 to 44, 46 and 47: limits, budget, fallback, and the breaker's place among them. Hedging has its own file.
#include <mutex>

#include <holdfast/task_scope.hpp>

#include "breaker.hpp"
#include "limits.hpp"

namespace holdfast::conformance {

namespace {

class journal {
public:
    void add(int who) {
        const std::lock_guard lock(mutex_);
        entries_.push_back(who);
    }
    std::vector<int> entries() const {
        const std::lock_guard lock(mutex_);
        return entries_;
    }

private:
    mutable std::mutex mutex_;
    std::vector<int> entries_;
};

task<void> keep_reason(task<outcome<int>> what, std::optional<outcome<int>>& to) {
    to.emplace(co_await std::move(what));
}

void fair_queue(lab& l) {
    const auto p = l.add({.name = "narrow", .concurrency = {.limit = 1, .queue = 4}});
    journal order;
    std::stop_source leaves;
    std::vector<std::optional<outcome<int>>> ended(6);
    const auto body = [&](int who) { return [&, who](attempt& a) { return order.add(who), give_after(a, 10s, who); }; };
    std::optional<pipeline_stats> full;
    pipeline_stats after_leaving;
    {
        task_scope scope;
        for (int i = 0; i < 6; ++i)
            scope.spawn(keep_reason(lab::start_async(p, body(i), i == 2 ? leaves.get_token() : std::stop_token()),
                                    ended[static_cast<std::size_t>(i)]));
        full = p.stats();
        const alarm leave(l, 1s, [&] { leaves.request_stop(); });
        l.sleep(2s);
        after_leaving = p.stats();
        l.await(scope.join());
    }
    check_equal(full->running, 1, "calls that run");
    check_equal(full->queued, 4, "calls that wait");
    check_equal(after_leaving.queued, 3, "calls that wait after one has left");
    check_equal(after_leaving.running, 1, "calls that run after one has left");
    check_equal(order.entries(), std::vector<int>{0, 1, 3, 4}, "the order in which they ran");
    check_equal(ended[2]->stop_reason(), stop_reason::cancelled, "stop reason of the waiter that left");
    check_equal(ended[2]->attempt_count(), 0, "attempts of the waiter that left");
    check_equal(ended[5]->stop_reason(), stop_reason::rejected, "stop reason when the queue is full");
    check_equal(ended[5]->refusal(), errc::concurrency_limited, "refusal when the queue is full");
    check_equal(l.now(), duration(40s), "when the last one ended");
    check_equal(p.stats().running + p.stats().queued, 0, "slots and places still taken");

    // The form under test waits in line behind a coroutine, and is cancelled there.
    {
        task_scope scope;
        std::optional<outcome<int>> holder;
        scope.spawn(keep_reason(lab::start_async(p, body(10)), holder));
        std::stop_source source;
        const alarm stop(l, 1s, [&] { source.request_stop(); });
        const auto cancelled = l.run(p, body(11), source.get_token());
        const auto waited = l.run(p, body(12));
        l.await(scope.join());
        check_equal(cancelled.stop_reason(), stop_reason::cancelled, "stop reason of a cancelled waiter");
        check(waited.succeeded(), "a waiter gets its turn");
    }
    check_equal(order.entries(), std::vector<int>{0, 1, 3, 4, 10, 12}, "the order in which they ran");
    check_equal(l.now(), duration(60s), "when the last one ended");
}

void exact_rate(lab& l) {
    const auto p = l.add({.name = "burst", .rate = {.permits = 10, .per = 1s, .burst = 5}});
    const auto admitted = [&](bound_policy q, int tries) {
        int n = 0;
        for (int i = 0; i < tries; ++i) n += l.run(q, succeed).succeeded() ? 1 : 0;
        return n;
    };
    check_equal(admitted(p, 20), 5, "calls in the first burst");
    const auto refused = l.run(p, succeed);
    check_equal(refused.stop_reason(), stop_reason::rejected, "stop reason over the limit");
    check_equal(refused.refusal(), errc::rate_limited, "refusal over the limit");
    check_equal(refused.retry_after(), duration(100ms), "when to come back");
    l.sleep(100ms - 1ns);
    check_equal(admitted(p, 3), 0, "calls just before the next permit");
    l.sleep(1ns);
    check_equal(admitted(p, 3), 1, "calls at the next permit");
    l.sleep(1h);
    check_equal(admitted(p, 20), 5, "calls after a long pause");

    if (l.which() == form::blocking) return; // the long count is the same in both forms

    // Seven a second does not divide a second; a million permits later the count is still exact.
    const auto q = l.bind(l.add({.name = "uneven", .rate = {.permits = 7, .per = 1s, .burst = 4000}}).name());
    const duration start = l.now();
    std::int64_t total = admitted(q, 4001);
    check_equal(total, 4000, "calls in the first burst");
    for (int round = 1; total < 1'004'000; ++round) {
        l.sleep(499'999'999'873ns + duration(round)); // about 3,500 permits
        std::int64_t n = 0;
        while (l.run(q, succeed).succeeded()) ++n;
        total += n;
        const std::int64_t earned = static_cast<std::int64_t>((l.now() - start).count() / 1'000'000'000) * 7 +
                                    (l.now() - start).count() % 1'000'000'000 * 7 / 1'000'000'000;
        check_equal(total, 4000 + earned, "calls in all after " + to_text(l.now() - start));
    }
}

void budget_first(lab& l) {
    const auto failing = [](attempt& a) -> int { throw std::runtime_error("attempt " + std::to_string(a.number())); };
    const auto p = l.add(
        {.name = "thrifty", .retry = {.max_attempts = 5, .delay = 10s, .jitter = false}, .budget = {.ratio = 0.5}});
    const auto none = l.run(p, failing);
    check_equal(none.attempt_count(), 1, "attempts with an empty budget");
    check_equal(none.stop_reason(), stop_reason::budget, "stop reason with an empty budget");
    check_exception<std::runtime_error>(none.exception(), "attempt 1", "the last real error");
    check_equal(l.now(), duration::zero(), "time slept with an empty budget");
    for (int i = 0; i < 3; ++i) l.run(p, succeed);
    const auto two = l.run(p, failing);
    check_equal(two.attempt_count(), 3, "attempts when two and a half retries were earned");
    check_equal(two.stop_reason(), stop_reason::budget, "stop reason when the budget ran out");
    check_exception<std::runtime_error>(two.exception(), "attempt 3", "the last real error");
    check_exception<std::runtime_error>(thrown_by([&] { l.execute(p, failing); }), "attempt 2", "what execute throws");

    const auto q = l.add(
        {.name = "reserve", .retry = {.max_attempts = 5, .delay = 0ms}, .budget = {.ratio = 0.001, .reserve = 1}});
    check_equal(l.run(q, failing).attempt_count(), 2, "attempts with the reserve of low traffic");
    check_equal(l.run(q, failing).attempt_count(), 1, "attempts when the reserve is spent");
    l.sleep(1s);
    check_equal(l.run(q, failing).attempt_count(), 2, "attempts a second later");
    check_equal(l.run(q, failing).stop_reason(), stop_reason::budget, "stop reason when the reserve is spent");
}

void fallbacks(lab& l) {
    auto& events = l.listen();
    const auto p =
        l.add({.name = "backed", .retry = {.max_attempts = 1, .delay = 1ms}, .rate = {.permits = 1000, .per = 1h}});
    int used = 0;
    const auto cached = fallback([&](const execution_report& why) {
        ++used;
        check_equal(why.stop_reason(), stop_reason::exhausted, "stop reason that the fallback sees");
        return 42;
    });
    auto o = l.run_or(p, break_down, cached);
    check(o.succeeded() && o.fell_back() && *o == 42, "the fallback answers");
    check_equal(o.stop_reason(), stop_reason::exhausted, "why the attempts stopped");
    check_equal(events.count(event_kind::fallback_used), 1, "events of the fallback");
    o = l.run_or(p, succeed, cached);
    check(!o.fell_back() && *o == 1, "a success needs no fallback");

    std::stop_source source;
    source.request_stop();
    o = l.run_or(p, break_down, cached, source.get_token());
    check_equal(o.stop_reason(), stop_reason::cancelled, "stop reason of a cancelled call");
    check(!o.has_value() && !o.succeeded(), "a cancelled call has no value");
    check_equal(used, 1, "calls of the fallback");
    check_equal(events.count(event_kind::completed), 3, "terminal events");

    o = l.run_or(p, break_down, fallback([](const execution_report&) -> int { throw std::logic_error("no cache"); }));
    check(!o.succeeded(), "a fallback that fails is no success");
    check_exception<std::logic_error>(o.exception(), "no cache", "the error of the fallback");
    check_exception<std::runtime_error>(o.cause(), "down", "the error that it stood in for");
    const auto thrown = o.to_exception();
    const auto* both = detail::exception_as<fallback_failed>(thrown);
    check(both != nullptr, "the throwing forms throw fallback_failed");
    check_exception<std::runtime_error>(both->cause(), "down", "the cause that is thrown along");

    const auto refused_only = l.add(
        {.name = "refused-only", .breaker = {.consecutive_failures = 1}, .fallback = fallback_when::rejected_only});
    o = l.run_or(refused_only, break_down, fallback([] { return 42; }));
    check(!o.fell_back(), "a failure does not fall back where only a rejection may");
    o = l.run_or(refused_only, break_down, fallback([] { return 42; }));
    check(o.fell_back() && *o == 42, "an open circuit does");
    const auto off = l.add({.name = "off", .fallback = fallback_when::never});
    check(!l.run_or(off, break_down, fallback([] { return 42; })).fell_back(), "a policy may switch fallbacks off");
}

void breaker_sees_attempts(lab& l) {
    const auto p = l.add({.name = "seen",
                          .retry = {.max_attempts = 5, .delay = 10ms, .backoff = backoff::constant, .jitter = false},
                          .breaker = {.consecutive_failures = 3, .break_for = 5s}});
    int calls = 0;
    const auto o = l.run(p, [&](attempt&) -> int {
        ++calls;
        throw std::runtime_error("down");
    });
    check_equal(calls, 3, "calls until the circuit opened");
    check_equal(o.attempt_count(), 3, "attempt count");
    check_equal(o.stop_reason(), stop_reason::circuit_open, "stop reason");
    check_equal(l.now(), duration(30ms), "when it ended");
    check_equal(p.circuit(), circuit_state::open, "circuit");

    const auto timed = l.add({.name = "timed",
                              .retry = {.max_attempts = 5, .delay = 0ms},
                              .timeout = 1s,
                              .breaker = {.consecutive_failures = 2}});
    calls = 0;
    l.run(timed, [&](attempt& a) { return ++calls, give_after(a, 1h, 1); });
    check_equal(calls, 2, "calls that timed out until the circuit opened");
}

} // namespace

test_group limits_group() {
    return {
        "limits",
        {
            {42, "the concurrency queue is first come first served, and a cancelled waiter leaves it", fair_queue},
            {43, "the rate limiter gives its burst exactly and does not drift", exact_rate},
            {44, "the retry budget is checked before sleeping and keeps a reserve for low traffic", budget_first},
            {45, "a hedge is never early, a failure starts the next at once, the winner cancels the losers", hedging},
            {46, "a fallback does not run on cancel, and its own failure keeps the original as cause", fallbacks},
            {47, "the breaker sees every attempt", breaker_sees_attempts},
        }};
}

} // namespace holdfast::conformance
