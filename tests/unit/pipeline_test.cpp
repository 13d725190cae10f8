// Attempts, stages and what is left of an execution: the blocking form and the coroutine form side by side.
#include <climits>
#include <stdexcept>
#include <string>
#include <vector>

#include <holdfast/sleep.hpp>
#include <holdfast/task_scope.hpp>

#include "catch.hpp"
#include "support.hpp"

using namespace holdfast;
using namespace std::chrono_literals;
using test::bench;

namespace {

constexpr policy bare({.name = "bare"});
constexpr policy twice({.name = "twice", .retry = {.max_attempts = 2, .delay = 1s, .jitter = false}});
constexpr policy guarded({.name = "guarded",
                          .retry = {.max_attempts = 5, .delay = 1s, .backoff = backoff::constant, .jitter = false},
                          .breaker = {.consecutive_failures = 3, .break_for = 10s}});

struct flaky {
    int failures;
    int calls = 0;
    int operator()() {
        if (++calls <= failures) throw std::runtime_error("call " + std::to_string(calls));
        return calls;
    }
};

// The same as a coroutine that takes its time.
task<int> run_flaky(flaky& f, runtime& on) {
    co_await sleep_for(on, 1ms);
    co_return f();
}

} // namespace

TEST_CASE("without retry a call is made once, and its exception comes out as it was") {
    bench on(bare);
    flaky f{1};
    CHECK_THROWS_WITH(on.policies().execute(bare, f), "call 1");
    CHECK(f.calls == 1);
    CHECK(on.elapsed() == 0s);
    CHECK(on.policies().execute(bare, f) == 2);
}

TEST_CASE("two retries are three calls with the policy's delays between them") {
    bench on(twice);
    flaky f{2};
    CHECK(on.policies().execute(twice, std::ref(f)) == 3);
    CHECK(on.elapsed() == 3s);
    flaky worse{3};
    CHECK_THROWS_WITH(on.policies().execute(twice, std::ref(worse)), "call 3");
    CHECK(worse.calls == 3);
}

TEST_CASE("a coroutine is retried in the same way") {
    bench on(twice);
    flaky f{2};
    CHECK(sync_wait(on.on, on.policies().execute(twice, [&] { return run_flaky(f, on.on); })) == 3);
    CHECK(on.elapsed() == 3s + 3ms);
    flaky worse{3};
    CHECK_THROWS_WITH(sync_wait(on.on, on.policies().execute(twice, [&] { return run_flaky(worse, on.on); })),
                      "call 3");
}

TEST_CASE("the ledger has a line for every attempt") {
    bench on(twice);
    flaky f{2};
    const auto ended = on.policies().try_execute(twice, std::ref(f));
    CHECK(ended.succeeded());
    CHECK(*ended == 3);
    CHECK(ended.stop_reason() == stop_reason::succeeded);
    CHECK(ended.attempt_count() == 3);
    CHECK(ended.policy_name() == "twice");
    REQUIRE(ended.attempts().size() == 3);
    for (int n = 1; n <= 3; ++n) {
        const attempt_record& each = ended.attempts()[static_cast<std::size_t>(n - 1)];
        CHECK(each.number == n);
        CHECK(each.end == (n < 3 ? attempt_end::failed : attempt_end::succeeded));
        CHECK_FALSE(each.hedge);
        CHECK_FALSE(each.code);
        CHECK(detail::exception_message(each.exception) == (n < 3 ? "call " + std::to_string(n) : ""));
        CHECK(each.delay_after == (n < 3 ? std::optional<duration>(1s * n) : std::nullopt));
    }
}

TEST_CASE("the last exception of an exhausted execution is kept, with its code in the ledger") {
    bench on(twice);
    const auto ended = on.policies().try_execute(
        twice, []() -> int { throw std::system_error(std::make_error_code(std::errc::connection_reset)); });
    CHECK(ended.stop_reason() == stop_reason::exhausted);
    CHECK_FALSE(ended.has_value());
    CHECK_FALSE(ended.refusal());
    CHECK(detail::exception_as<std::system_error>(ended.exception()) != nullptr);
    CHECK(ended.attempts()[2].code == std::make_error_code(std::errc::connection_reset));
    CHECK_FALSE(ended.attempts()[2].delay_after);
}

TEST_CASE("a long series is counted in full and listed in part") {
    bench on;
    CHECK(on.made.catalog().add({.name = "many", .retry = {.max_attempts = 999, .delay = 0s}}));
    const auto ended = on.policies().try_execute("many", []() -> int { throw 1; });
    CHECK(ended.attempt_count() == 1000);
    CHECK(ended.attempts().size() == 67);
    CHECK(ended.attempts().omitted() == 933);
    CHECK(ended.attempts()[66].number == 1000);
}

TEST_CASE("an attempt knows its number, its policy and whether it is the last") {
    bench on(twice, bare);
    std::string seen;
    on.policies().try_execute(twice, [&](attempt& a) -> int {
        seen += std::to_string(a.number()) + "/" + std::to_string(a.max_number()) + (a.last() ? " last " : " ");
        CHECK(a.policy_name() == "twice");
        CHECK(&a.runtime() == &on.on);
        CHECK(a.deadline() == never);
        CHECK(a.remaining() == forever);
        throw 1;
    });
    CHECK(seen == "1/3 2/3 3/3 last ");
    on.policies().execute(bare, [](attempt& a) { CHECK(a.last()); });
}

TEST_CASE("as many retries as a number can hold are as many attempts, not a negative number") {
    bench on;
    CHECK(on.made.catalog().add({.name = "most", .retry = {.max_attempts = INT_MAX, .delay = 0s}}));
    CHECK(on.made.catalog().add({.name = "endless", .retry = {.max_attempts = unlimited, .delay = 0s}}));
    CHECK(on.policies().execute("most", [](attempt& a) { return a.max_number(); }) == INT_MAX);
    CHECK(on.policies().execute("endless", [](attempt& a) { return a.max_number(); }) == unlimited);
}

TEST_CASE("a caller that has already stopped gets no attempt") {
    bench on(bare, twice, guarded);
    std::stop_source stop;
    stop.request_stop();
    for (const char* name : {"bare", "twice", "guarded"}) {
        int calls = 0;
        const auto ended = on.policies().try_execute(name, [&] { return ++calls; }, stop.get_token());
        CHECK(calls == 0);
        CHECK(ended.stop_reason() == stop_reason::cancelled);
        CHECK(ended.refusal() == errc::cancelled);
        CHECK(ended.attempt_count() == 0);
        CHECK(ended.attempts().empty());
    }
    CHECK_THROWS_AS(on.policies().execute(bare, [] {}, stop.get_token()), operation_cancelled);
}

TEST_CASE("a stop during an attempt ends the execution, and a value that came all the same is kept") {
    bench on(twice);
    std::stop_source stop;
    const auto failed_then = on.policies().try_execute(
        twice,
        [&](std::stop_token seen) -> int {
            stop.request_stop();
            CHECK(seen.stop_requested());
            throw std::runtime_error("gave up");
        },
        stop.get_token());
    CHECK(failed_then.stop_reason() == stop_reason::cancelled);
    CHECK(failed_then.attempts().size() == 1);
    CHECK(failed_then.attempts()[0].end == attempt_end::cancelled);

    std::stop_source other;
    const auto good = on.policies().try_execute(twice, [&] { return other.request_stop(), 7; }, other.get_token());
    CHECK(good.succeeded());
    CHECK(*good == 7);
}

namespace {

task<int> count_and_throw(int& calls) {
    ++calls;
    throw std::runtime_error("no");
    co_return 0;
}

task<void> run_and_note(policies& p, std::stop_token stop, int& calls, stop_reason& reason) {
    auto call = p.try_execute(twice, [&calls] { return count_and_throw(calls); }, std::move(stop));
    const auto ended = co_await std::move(call);
    reason = ended.stop_reason();
}

} // namespace

TEST_CASE("a stop during the wait between attempts returns at once and leaves no timer") {
    bench on(twice);
    std::stop_source stop;
    int calls = 0;
    stop_reason reason = stop_reason::succeeded;
    task_scope scope;
    scope.spawn(run_and_note(on.policies(), stop.get_token(), calls, reason));
    on.on.advance(500ms);
    CHECK(calls == 1);
    CHECK(on.on.timers() == 1);
    stop.request_stop();
    CHECK(on.on.timers() == 0);
    on.on.run_ready();
    CHECK(reason == stop_reason::cancelled);
    CHECK(calls == 1);
    sync_wait(on.on, scope.join());
}

namespace {

bool any_value(const failure& f) {
    return f.is_value();
}
task<int> seven() {
    co_return 7;
}
task<void> run_and_keep(policies& p, std::stop_token stop, std::optional<outcome<int>>& to) {
    auto call = p.try_execute("p", seven, std::move(stop));
    to.emplace(co_await std::move(call));
}

} // namespace

TEST_CASE("a value that was to be tried again is not the answer of a call that was cancelled meanwhile") {
    bench on;
    CHECK(on.made.catalog().add({.name = "p", .retry = {.delay = 1s}, .rules = {retry_when(any_value)}}));
    std::stop_source stop;
    std::optional<outcome<int>> ended;
    task_scope scope;
    scope.spawn(run_and_keep(on.policies(), stop.get_token(), ended));
    stop.request_stop();
    on.on.run_ready();
    REQUIRE(ended);
    CHECK(ended->stop_reason() == stop_reason::cancelled);
    CHECK_FALSE(ended->has_value());
    sync_wait(on.on, scope.join());
}

TEST_CASE("a stopping runtime ends the waits between attempts") {
    bench on(twice);
    int calls = 0;
    stop_reason reason = stop_reason::succeeded;
    task_scope scope;
    scope.spawn(run_and_note(on.policies(), {}, calls, reason));
    on.on.stop();
    CHECK(reason == stop_reason::cancelled);
    CHECK(calls == 1);
    sync_wait(scope.join());
}

TEST_CASE("the breaker sees every attempt, and its refusal ends the execution") {
    bench on(guarded);
    flaky f{100};
    const auto ended = on.policies().try_execute(guarded, std::ref(f));
    CHECK(f.calls == 3);
    CHECK(ended.stop_reason() == stop_reason::circuit_open);
    CHECK(ended.refusal() == errc::circuit_open);
    CHECK(ended.retry_after() == 9s); // a second of the ten went by before the fourth attempt
    CHECK(ended.attempt_count() == 3);
    CHECK(ended.attempts().size() == 3);
    CHECK(on.policies().bind(guarded).circuit() == circuit_state::open);

    const auto refused = on.policies().try_execute(guarded, std::ref(f));
    CHECK(f.calls == 3);
    CHECK(refused.attempt_count() == 0);
    CHECK(refused.attempts().empty());
    CHECK(refused.error().message == "policy \"guarded\": the circuit is open; try again in 9s");
    on.on.advance(9s);
    f.failures = 0;
    CHECK(on.policies().execute(guarded, std::ref(f)) == 4);
    CHECK(on.policies().bind(guarded).circuit() == circuit_state::closed);
}

TEST_CASE("a policy may ask for an open circuit to be waited for") {
    bench on;
    CHECK(on.made.catalog().add(
        {.name = "p",
         .retry =
             {.max_attempts = 5, .delay = 1s, .backoff = backoff::constant, .jitter = false, .on_circuit_open = true},
         .breaker = {.consecutive_failures = 2, .break_for = 10s}}));
    flaky f{2};
    const auto ended = on.policies().try_execute("p", std::ref(f));
    CHECK(ended.succeeded());
    CHECK(f.calls == 3);
    REQUIRE(ended.attempts().size() == 4);
    CHECK(ended.attempts()[2].end == attempt_end::refused);
    CHECK(ended.attempts()[2].code == make_error_code(errc::circuit_open));
    CHECK(ended.attempts()[2].delay_after == 9s); // what was left of the break
    CHECK(on.elapsed() == 11s);
}

TEST_CASE("rules decide what the breaker counts: what is not retried is not its business") {
    bench on;
    CHECK(on.made.catalog().add(
        {.name = "p", .rules = {stop_on<std::logic_error>()}, .breaker = {.consecutive_failures = 1}}));
    on.policies().try_execute("p", []() -> int { throw std::logic_error("mine"); });
    on.policies().try_execute("p", []() -> int { throw operation_cancelled(); });
    CHECK(on.policies().bind("p").circuit() == circuit_state::closed);
    on.policies().try_execute("p", []() -> int { throw std::runtime_error("theirs"); });
    CHECK(on.policies().bind("p").circuit() == circuit_state::open);
}

TEST_CASE("a circuit is isolated and closed by hand") {
    bench on(guarded, bare);
    const auto bound = on.policies().bind(guarded);
    bound.isolate_circuit();
    CHECK(bound.circuit() == circuit_state::isolated);
    const auto refused = bound.try_execute([] { return 1; });
    CHECK(refused.stop_reason() == stop_reason::circuit_open);
    CHECK(refused.error().message == "policy \"guarded\": the circuit is open");
    bound.close_circuit();
    CHECK(bound.execute([] { return 1; }) == 1);
    on.policies().bind(bare).isolate_circuit(); // has none
    CHECK(on.policies().execute(bare, [] { return 1; }) == 1);
}

TEST_CASE("the rate limit is outermost: what it refuses reaches nothing else") {
    bench on;
    CHECK(on.made.catalog().add({.name = "p", .concurrency = {.limit = 1}, .rate = {.permits = 2}}));
    int calls = 0;
    const auto call = [&] { return on.policies().try_execute("p", [&] { return ++calls; }); };
    CHECK(call());
    CHECK(call());
    const auto refused = call();
    CHECK(refused.stop_reason() == stop_reason::rejected);
    CHECK(refused.refusal() == errc::rate_limited);
    CHECK(refused.retry_after() == 500ms);
    CHECK(refused.attempt_count() == 0);
    CHECK(calls == 2);
    on.on.advance(500ms);
    CHECK(call());
}

TEST_CASE("a retry needs no further permit of the rate limit and keeps its slot") {
    bench on;
    CHECK(on.made.catalog().add({.name = "p",
                                 .retry = {.max_attempts = 3, .delay = 1ms},
                                 .concurrency = {.limit = 1},
                                 .rate = {.permits = 1, .per = 1h}}));
    const auto bound = on.policies().bind("p");
    flaky f{3};
    CHECK(bound.execute([&] {
        CHECK(bound.stats().running == 1);
        return f();
    }) == 4);
    CHECK(bound.stats().running == 0);
}

TEST_CASE("a call over the concurrency limit is refused, and the slot comes back however the call ends") {
    bench on;
    CHECK(on.made.catalog().add({.name = "p", .concurrency = {.limit = 1}}));
    const auto bound = on.policies().bind("p");
    for (int i = 0; i < 3; ++i) {
        bound.try_execute([&]() -> int {
            const auto inner = bound.try_execute([] { return 1; });
            CHECK(inner.stop_reason() == stop_reason::rejected);
            CHECK(inner.refusal() == errc::concurrency_limited);
            throw 1;
        });
        CHECK(bound.stats().running == 0);
    }
}

TEST_CASE("a spent budget ends the retries with the last real error, before any wait") {
    bench on;
    CHECK(on.made.catalog().add(
        {.name = "p",
         .retry = {.max_attempts = 9, .delay = 100ms, .backoff = backoff::constant, .jitter = false},
         .budget = {.reserve = 2}}));
    flaky f{100};
    const auto ended = on.policies().try_execute("p", std::ref(f));
    CHECK(ended.stop_reason() == stop_reason::budget);
    CHECK(f.calls == 3);
    CHECK(on.elapsed() == 200ms);
    CHECK(detail::exception_message(ended.exception()) == "call 3");
    CHECK_FALSE(ended.attempts()[2].delay_after);
}

TEST_CASE("pipelines of different keys share the policy and nothing else") {
    bench on(guarded);
    const auto a = on.policies().bind(guarded, "host-a"), b = on.policies().bind(guarded, "host-b");
    a.try_execute([]() -> int { throw 1; });
    CHECK(a.circuit() == circuit_state::open);
    CHECK(b.circuit() == circuit_state::closed);
    CHECK(on.policies().bind(guarded).circuit() == circuit_state::closed);
    CHECK(on.policies().bind("guarded", "host-a").circuit() == circuit_state::open);
}

TEST_CASE("one name is one state, whatever is called and however") {
    bench on(guarded);
    on.policies().try_execute(guarded, []() -> int { throw non_retryable_error("x"); });
    for (int i = 0; i < 2; ++i)
        on.policies().bind("guarded").try_execute([]() -> std::string { throw 1; }, std::stop_token());
    const auto refused = sync_wait(on.on, on.policies().try_execute(guarded, []() -> task<void> { co_return; }));
    CHECK(refused.refusal() == errc::circuit_open);
}
