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

constexpr policy hedged({.name = "hedged", .hedge = {.max_hedges = 2, .after = 100ms}});

// One attempt of a script: how long it takes, and what it gives; a negative value is thrown.
struct step {
    duration takes;
    int gives;
};

struct script {
    std::vector<step> steps;
    std::vector<duration> started{};
    int stopped = 0;
};

task<int> play(script& s, time_point start, attempt& a) {
    s.started.push_back(a.runtime().now() - start);
    const step mine = s.steps.at(static_cast<std::size_t>(a.number() - 1));
    const sleep_end end = co_await sleep_for(a.runtime(), mine.takes, a.stop_token());
    if (end == sleep_end::cancelled) {
        ++s.stopped;
        throw operation_cancelled();
    }
    if (mine.gives < 0) throw std::runtime_error(std::to_string(a.number()));
    co_return mine.gives;
}

outcome<int> run(bench& on, std::string_view name, script& s, std::stop_token stop = {}) {
    return sync_wait(
        on.on, on.policies().try_execute(name, [&](attempt& a) { return play(s, on.start, a); }, std::move(stop)));
}

} // namespace

TEST_CASE("a quick answer starts no hedge") {
    bench on(hedged);
    script s{{{99ms, 1}}};
    const auto ended = run(on, "hedged", s);
    CHECK(*ended == 1);
    CHECK(ended.attempt_count() == 1);
    CHECK(on.elapsed() == 99ms);
    CHECK(on.on.timers() == 0);
}

TEST_CASE("hedges start at their time, never early, and the first good answer wins") {
    bench on(hedged);
    script s{{{1h, 1}, {1h, 2}, {50ms, 3}}};
    const auto ended = run(on, "hedged", s);
    CHECK(*ended == 3);
    CHECK(s.started == std::vector<duration>{0ms, 100ms, 200ms});
    CHECK(s.stopped == 2);
    CHECK(on.elapsed() == 250ms);
    CHECK(ended.attempt_count() == 3);
    REQUIRE(ended.attempts().size() == 3);
    CHECK(ended.attempts()[0].number == 3);
    CHECK(ended.attempts()[0].hedge);
    CHECK(ended.attempts()[0].end == attempt_end::succeeded);
    for (std::size_t i = 1; i < 3; ++i) CHECK(ended.attempts()[i].end == attempt_end::cancelled);
    CHECK(on.on.timers() == 0);
}

TEST_CASE("the primary still wins when it answers before its hedge") {
    bench on(hedged);
    script s{{{150ms, 1}, {100ms, 2}, {0ms, 3}}};
    const auto ended = run(on, "hedged", s);
    CHECK(*ended == 1);
    CHECK_FALSE(ended.attempts()[0].hedge);
    CHECK(on.elapsed() == 150ms);
}

TEST_CASE("a failure starts the next hedge at once") {
    bench on(hedged);
    script s{{{10ms, -1}, {10ms, -1}, {10ms, 3}}};
    CHECK(*run(on, "hedged", s) == 3);
    CHECK(s.started == std::vector<duration>{0ms, 10ms, 20ms});
}

TEST_CASE("when all fail the first attempt's error is the answer") {
    bench on(hedged);
    script s{{{300ms, -1}, {10ms, -1}, {10ms, -1}}};
    const auto ended = run(on, "hedged", s);
    CHECK(ended.stop_reason() == stop_reason::exhausted);
    CHECK(ended.error().message == "1");
    CHECK(ended.attempt_count() == 3);
}

TEST_CASE("a terminal failure ends the race") {
    bench on(hedged);
    CHECK(on.made.catalog().add(
        {.name = "p", .rules = {stop_on<std::runtime_error>()}, .hedge = {.max_hedges = 2, .after = 100ms}}));
    script s{{{1h, 1}, {10ms, -1}, {10ms, 3}}};
    const auto ended = run(on, "p", s);
    CHECK(ended.stop_reason() == stop_reason::rule);
    CHECK(ended.error().message == "2");
    CHECK(s.stopped == 1);
    CHECK(s.started.size() == 2);
}

TEST_CASE("a caller that stops, stops every attempt") {
    bench on(hedged);
    std::stop_source stop;
    script s{{{1h, 1}, {1h, 2}, {1h, 3}}};
    std::optional<outcome<int>> ended;
    task_scope scope;
    const auto whole = [](bench& b, script& play_it, std::stop_token token,
                          std::optional<outcome<int>>& to) -> task<void> {
        auto call =
            b.policies().try_execute("hedged", [&](attempt& a) { return play(play_it, b.start, a); }, std::move(token));
        to.emplace(co_await std::move(call));
    };
    scope.spawn(whole(on, s, stop.get_token(), ended));
    on.on.advance(150ms);
    CHECK_FALSE(ended);
    stop.request_stop();
    on.on.run_ready();
    REQUIRE(ended);
    CHECK(ended->stop_reason() == stop_reason::cancelled);
    CHECK(s.stopped == 2);
    CHECK(on.on.timers() == 0);
    sync_wait(on.on, scope.join());
}

TEST_CASE("a hedge is an attempt to the breaker, a loser is not a failure") {
    bench on;
    CHECK(on.made.catalog().add(
        {.name = "p", .breaker = {.consecutive_failures = 2}, .hedge = {.max_hedges = 1, .after = 100ms}}));
    for (int i = 0; i < 5; ++i) {
        script s{{{1h, 1}, {10ms, 2}}};
        CHECK(*run(on, "p", s) == 2);
    }
    CHECK(on.policies().bind("p").circuit() == circuit_state::closed);
    script s{{{10ms, -1}, {10ms, -1}}};
    run(on, "p", s);
    CHECK(on.policies().bind("p").circuit() == circuit_state::open);
    script never_played;
    const auto refused = run(on, "p", never_played);
    CHECK(refused.stop_reason() == stop_reason::circuit_open);
    CHECK(refused.refusal() == errc::circuit_open);
    CHECK(refused.attempt_count() == 0);
}

TEST_CASE("hedges spend the budget") {
    bench on;
    CHECK(on.made.catalog().add({.name = "p", .budget = {.reserve = 1}, .hedge = {.max_hedges = 3, .after = 100ms}}));
    script s{{{500ms, 1}, {1h, 2}, {1h, 3}, {1h, 4}}};
    CHECK(*run(on, "p", s) == 1);
    CHECK(s.started.size() == 2);
}

TEST_CASE("hedged attempts have a timeout each and one in total") {
    bench on;
    CHECK(on.made.catalog().add(
        {.name = "p", .timeout = 150ms, .total_timeout = 220ms, .hedge = {.max_hedges = 1, .after = 100ms}}));
    script s{{{1h, 1}, {1h, 2}}};
    const auto ended = run(on, "p", s);
    CHECK(ended.refusal() == errc::timed_out);
    CHECK(ended.stop_reason() == stop_reason::deadline);
    CHECK(on.elapsed() == 220ms);
}

TEST_CASE("blocking attempts are hedged on the blocking pool") {
    bench on(hedged);
    CHECK(on.policies().execute(hedged, [](attempt& a) { return a.number(); }) == 1);
    int calls = 0;
    const auto ended = on.policies().try_execute(hedged, [&](attempt& a) -> int {
        ++calls;
        if (a.number() < 3) throw std::runtime_error(std::to_string(a.number()));
        return a.number();
    });
    CHECK(*ended == 3);
    CHECK(calls == 3);
}
