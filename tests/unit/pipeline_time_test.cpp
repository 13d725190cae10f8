// Timeouts and deadlines, on virtual time.
#include <stdexcept>
#include <string>

#include <holdfast/sleep.hpp>
#include <holdfast/when_all.hpp>

#include "catch.hpp"
#include "support.hpp"

using namespace holdfast;
using namespace std::chrono_literals;
using test::bench;

namespace {

constexpr policy timed({.name = "timed", .timeout = 2s});
constexpr policy retried({.name = "retried",
                          .retry = {.max_attempts = 2, .delay = 1s, .backoff = backoff::constant, .jitter = false},
                          .timeout = 2s});
constexpr policy bounded({.name = "bounded",
                          .retry = {.max_attempts = 9, .delay = 1s, .backoff = backoff::constant, .jitter = false},
                          .total_timeout = 5s});

task<int> sleep_then(int value, duration d, attempt& a) {
    co_await a.sleep_for(d);
    co_return value;
}

} // namespace

TEST_CASE("an attempt is told its deadline and how much is left") {
    bench on(timed, bounded);
    on.policies().execute(timed, [&](attempt& a) {
        CHECK(a.deadline() == on.on.now() + 2s);
        on.on.advance(500ms);
        CHECK(a.remaining() == 1500ms);
        CHECK_FALSE(a.stop_requested());
        on.on.advance(1500ms);
        CHECK(a.remaining() == 0s);
        CHECK(a.stop_requested());
        on.on.advance(1s);
        CHECK(a.remaining() == 0s);
    });
    on.policies().execute(bounded, [&](attempt& a) { CHECK(a.remaining() == 5s); });
}

TEST_CASE("the token of an attempt fires at its deadline, not before") {
    bench on(timed);
    on.policies().execute(timed, [&](attempt& a) {
        const auto stop = a.stop_token();
        on.on.advance(2s - 1ns);
        CHECK_FALSE(stop.stop_requested());
        on.on.advance(1ns);
        CHECK(stop.stop_requested());
    });
}

TEST_CASE("an attempt that never asks for its token arms no timer, one that does leaves none behind") {
    bench on(timed);
    on.policies().execute(timed, [&](attempt&) { CHECK(on.on.timers() == 0); });
    on.policies().execute(timed, [&](attempt& a) {
        (void)a.stop_token();
        (void)a.stop_token();
        CHECK(on.on.timers() == 1);
    });
    CHECK(on.on.timers() == 0);
}

TEST_CASE("an attempt that ran out of time is tried again, and at last reported as timed out") {
    bench on(retried);
    int calls = 0;
    const auto ended = on.policies().try_execute(retried, [&](attempt& a) {
        ++calls;
        a.block_for(1h);
        return 1;
    });
    CHECK(calls == 3);
    CHECK(ended.stop_reason() == stop_reason::exhausted);
    CHECK(ended.refusal() == errc::timed_out);
    CHECK(ended.error().message == "policy \"retried\": the attempt timed out, after 3 attempts");
    CHECK(on.elapsed() == 8s); // 2 1 2 1 2
    for (const auto& each : ended.attempts()) {
        CHECK(each.end == attempt_end::timed_out);
        CHECK(each.took == 2s);
    }
    CHECK(on.policies().bind(retried).stats().late_attempts == 3);
    CHECK_THROWS_AS(on.policies().execute(retried, [](attempt& a) { a.block_for(1h); }), failed);
}

TEST_CASE("a coroutine runs out of time in the same way") {
    bench on(retried);
    const auto ended =
        sync_wait(on.on, on.policies().try_execute(retried, [](attempt& a) { return sleep_then(1, 1h, a); }));
    CHECK(ended.refusal() == errc::timed_out);
    CHECK(ended.attempt_count() == 3);
    CHECK(on.elapsed() == 8s);
    CHECK(sync_wait(on.on, on.policies().execute(retried, [](attempt& a) { return sleep_then(5, 1999ms, a); })) == 5);
}

TEST_CASE("a value that comes too late is kept, and the lateness is written down") {
    bench on(retried);
    const auto ended = on.policies().try_execute(retried, [&] { return on.on.advance(3s), 7; });
    CHECK(ended.succeeded());
    CHECK(*ended == 7);
    REQUIRE(ended.attempts().size() == 1);
    CHECK(ended.attempts()[0].end == attempt_end::timed_out);
    CHECK(ended.attempts()[0].took == 3s);
    CHECK(on.policies().bind(retried).stats().late_attempts == 1);
}

TEST_CASE("a value at the very deadline is late, one just before is not") {
    bench on(timed);
    CHECK(on.policies().try_execute(timed, [&] { on.on.advance(2s); }).attempts()[0].end == attempt_end::timed_out);
    CHECK(on.policies().try_execute(timed, [&] { on.on.advance(2s - 1ns); }).attempts()[0].end ==
          attempt_end::succeeded);
}

TEST_CASE("a late success is a failure to the breaker") {
    bench on;
    CHECK(on.made.catalog().add({.name = "p", .timeout = 1s, .breaker = {.consecutive_failures = 1}}));
    CHECK(on.policies().execute("p", [&] { return on.on.advance(1s), 7; }) == 7);
    CHECK(on.policies().bind("p").circuit() == circuit_state::open);
}

TEST_CASE("a late exception counts as a timeout, unless it says never to retry") {
    bench on(retried);
    int calls = 0;
    const auto late = on.policies().try_execute(retried, [&]() -> int {
        on.on.advance(3s);
        if (++calls == 1) throw std::runtime_error("late");
        throw non_retryable_error("never");
    });
    CHECK(calls == 2);
    CHECK(late.attempts()[0].end == attempt_end::timed_out);
    CHECK(late.stop_reason() == stop_reason::rule);
    CHECK(late.error().message == "never");
}

TEST_CASE("an attempt that is overdue and still runs can be seen") {
    bench on(timed);
    const auto bound = on.policies().bind(timed);
    bound.execute([&](attempt& a) {
        (void)a.stop_token();
        CHECK(bound.stats().overdue_attempts == 0);
        on.on.advance(3s);
        CHECK(bound.stats().overdue_attempts == 1);
    });
    CHECK(bound.stats().overdue_attempts == 0);
    CHECK(bound.stats().late_attempts == 1);
}

TEST_CASE("retries stop when the next would begin past the deadline, without a wait, with the last real error") {
    bench on(bounded);
    int calls = 0;
    const auto ended =
        on.policies().try_execute(bounded, [&]() -> int { throw std::runtime_error(std::to_string(++calls)); });
    CHECK(calls == 5); // at 0 1 2 3 4 seconds; the sixth would begin at the deadline
    CHECK(on.elapsed() == 4s);
    CHECK(ended.stop_reason() == stop_reason::deadline);
    CHECK(ended.error().message == "5");
}

TEST_CASE("an attempt may not run longer than what is left in total") {
    bench on;
    CHECK(
        on.made.catalog().add({.name = "p",
                               .retry = {.max_attempts = 9, .delay = 1s, .backoff = backoff::constant, .jitter = false},
                               .timeout = 3s,
                               .total_timeout = 5s}));
    std::string remaining;
    const auto ended = on.policies().try_execute("p", [&](attempt& a) {
        remaining += to_text(a.remaining()) + " ";
        a.block_for(1h);
    });
    CHECK(remaining == "3s 1s ");
    CHECK(on.elapsed() == 5s);
    CHECK(ended.stop_reason() == stop_reason::deadline);
    CHECK(ended.refusal() == errc::timed_out);
    CHECK(ended.error().message == "policy \"p\": out of time, after 2 attempts");
}

TEST_CASE("a timeout of zero is expired on entry, one of forever is none") {
    bench on;
    CHECK(on.made.catalog().add({.name = "total", .total_timeout = 0s}));
    CHECK(on.made.catalog().add(
        {.name = "each", .retry = {.max_attempts = 1, .delay = 1s, .jitter = false}, .timeout = 0s}));
    CHECK(on.made.catalog().add({.name = "never", .timeout = forever, .total_timeout = forever}));
    int calls = 0;
    const auto total = on.policies().try_execute("total", [&] { return ++calls; });
    CHECK(total.stop_reason() == stop_reason::deadline);
    CHECK(total.refusal() == errc::timed_out);
    CHECK(total.attempt_count() == 0);
    const auto each = on.policies().try_execute("each", [&] { return ++calls; });
    CHECK(each.stop_reason() == stop_reason::exhausted);
    CHECK(each.refusal() == errc::timed_out);
    CHECK(each.attempt_count() == 2);
    CHECK(calls == 0);
    CHECK(on.policies().execute("never", [&](attempt& a) {
        on.on.advance(24h);
        CHECK(a.deadline() == never);
        return 1;
    }) == 1);
}

TEST_CASE("the time in the queue of the concurrency limit is not part of the total") {
    bench on;
    CHECK(on.made.catalog().add({.name = "p", .total_timeout = 5s, .concurrency = {.limit = 1, .queue = 1}}));
    const auto run = [&] {
        return on.policies().try_execute("p", [](attempt& a) { return sleep_then(1, 4s, a); }).as_task();
    };
    auto both = [](task<outcome<int>> a, task<outcome<int>> b) -> task<bool> {
        auto [x, y] = co_await when_all(std::move(a), std::move(b));
        co_return x.succeeded() && y.succeeded();
    };
    CHECK(sync_wait(on.on, both(run(), run())));
    CHECK(on.elapsed() == 8s);
}

TEST_CASE("the other side says when to come back, within the cap and the deadline") {
    bench on;
    CHECK(on.made.catalog().add({.name = "p",
                                 .retry = {.max_attempts = 1, .delay = 1s, .max_delay = 10s, .jitter = false},
                                 .total_timeout = 8s}));
    const auto elapsed_with = [&](duration hint) {
        const time_point before = on.on.now();
        on.policies().try_execute("p", [&](attempt& a) -> int {
            a.retry_after(hint);
            throw 1;
        });
        return on.on.now() - before;
    };
    CHECK(elapsed_with(3s) == 3s);
    CHECK(elapsed_with(-3s) == 0s);
    CHECK(elapsed_with(1h) == 0s); // cut to 10s, which is past the deadline: no wait
    const auto hinted = on.policies().try_execute("p", []() -> int { throw failed({errc::unavailable, "busy", 2s}); });
    CHECK(hinted.attempts()[0].delay_after == 2s);
}

TEST_CASE("a delay generator has its say, and what it throws ends the execution") {
    bench on;
    CHECK(on.made.catalog().add({.name = "p",
                                 .retry = {.max_attempts = 4,
                                           .delay = 1s,
                                           .max_delay = 30s,
                                           .jitter = false,
                                           .delay_for = [](const failure&, int n) -> std::optional<duration> {
                                               if (n == 1) return 7s;
                                               if (n == 2) return std::nullopt;
                                               if (n == 3) return -1s;
                                               return 24h;
                                           }}}));
    const auto ended = on.policies().try_execute("p", []() -> int { throw 1; });
    REQUIRE(ended.attempts().size() == 5);
    CHECK(ended.attempts()[0].delay_after == 7s);
    CHECK(ended.attempts()[1].delay_after == 2s); // the policy's own
    CHECK(ended.attempts()[2].delay_after == 0s);
    CHECK(ended.attempts()[3].delay_after == 30s);

    CHECK(
        on.made.catalog().add({.name = "q", .retry = {.delay_for = [](const failure&, int) -> std::optional<duration> {
                                                throw std::logic_error("no idea");
                                            }}}));
    int calls = 0;
    const auto thrown = on.policies().try_execute("q", [&]() -> int { throw ++calls; });
    CHECK(calls == 1);
    CHECK(thrown.error().message == "no idea");
    CHECK(thrown.stop_reason() == stop_reason::rule);
}

TEST_CASE("the delays of an execution with jitter repeat with the seed, and differ between executions") {
    const auto delays = [](int which) {
        bench on;
        CHECK(on.made.catalog().add({.name = "p", .retry = {.max_attempts = 5, .delay = 1s}}));
        for (int i = 0; i < which; ++i) on.policies().try_execute("p", []() -> int { throw 1; });
        const auto ended = on.policies().try_execute("p", []() -> int { throw 1; });
        std::string text;
        for (const auto& each : ended.attempts()) text += to_text(each.delay_after.value_or(0s)) + " ";
        return text;
    };
    CHECK(delays(0) == delays(0));
    CHECK(delays(0) != delays(1));
}
