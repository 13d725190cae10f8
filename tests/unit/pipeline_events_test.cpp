#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include <holdfast/sleep.hpp>

#include "catch.hpp"
#include "support.hpp"

using namespace holdfast;
using namespace std::chrono_literals;
using test::bench;
using test::listen_to;

namespace {

constexpr policy twice({.name = "twice", .retry = {.max_attempts = 2, .delay = 1s, .jitter = false}});
constexpr policy guarded({.name = "guarded", .timeout = 1s, .breaker = {.consecutive_failures = 2, .break_for = 5s}});
constexpr policy limited({.name = "limited", .concurrency = {.limit = 1}, .rate = {.permits = 2}});

int fail_until(int& calls, int good) {
    if (++calls < good) throw std::runtime_error("not yet");
    return calls;
}
task<int> fail_until_later(int& calls, int good) {
    co_return fail_until(calls, good);
}

} // namespace

TEST_CASE("a listener hears attempts, retries and exactly one end, in order") {
    const std::string story = "attempt started 1, attempt ended 1 failed, retry scheduled 1 1s, attempt started 2, "
                              "attempt ended 2 failed, retry scheduled 2 2s, attempt started 3, "
                              "attempt ended 3 succeeded, completed 3 succeeded";
    bench on(twice);
    const auto heard = listen_to(on.made);
    int calls = 0;
    on.policies().execute(twice, [&] { return fail_until(calls, 3); });
    CHECK(heard->story() == story);
    heard->events.clear();
    calls = 0;
    sync_wait(on.on, on.policies().execute(twice, [&] { return fail_until_later(calls, 3); }));
    CHECK(heard->story() == story);
}

TEST_CASE("events carry policy, key, time and the number of their execution") {
    bench on(twice);
    const auto heard = listen_to(on.made);
    int calls = 0;
    on.policies().bind(twice, "host-a").execute([&] { return fail_until(calls, 2); });
    for (const auto& each : heard->events) {
        CHECK(each.policy == "twice");
        CHECK(each.key == "host-a");
        CHECK(each.execution == heard->events.front().execution);
        CHECK(each.execution != 0);
    }
    CHECK(heard->events.front().at == on.start);
    CHECK(heard->events.back().at == on.start + 1s);
    const auto first = heard->events.front().execution;
    heard->events.clear();
    on.policies().execute(twice, [] { return 1; });
    CHECK(heard->events.front().execution != first);
    CHECK(heard->events.front().key.empty());
}

TEST_CASE("a listener hears how the circuit moves, apart from any execution") {
    bench on(guarded);
    const auto heard = listen_to(on.made);
    const auto bound = on.policies().bind(guarded);
    bound.try_execute([]() -> int { throw 1; });
    bound.try_execute([]() -> int { throw 1; });
    bound.try_execute([] { return 1; });
    on.on.advance(5s);
    bound.try_execute([] { return 1; });
    bound.isolate_circuit();
    bound.close_circuit();
    CHECK(heard->story() ==
          "attempt started 1, attempt ended 1 failed, completed 1 exhausted, "
          "attempt started 1, circuit opened 5s, attempt ended 1 failed, completed 1 exhausted, "
          "completed circuit open, "
          "circuit half-opened, attempt started 1, circuit closed, attempt ended 1 succeeded, completed 1 succeeded, "
          "circuit isolated, circuit closed");
    for (const auto& each : heard->events)
        if (each.kind >= event_kind::circuit_opened && each.kind <= event_kind::circuit_isolated)
            CHECK(each.execution == 0);
}

TEST_CASE("a listener hears rejections, and by what") {
    bench on(limited);
    const auto heard = listen_to(on.made);
    const auto bound = on.policies().bind(limited);
    bound.try_execute([&] { bound.try_execute([] {}); });
    bound.try_execute([] {});
    std::vector<std::error_code> codes;
    for (const auto& each : heard->events)
        if (each.kind == event_kind::rejected) codes.push_back(each.code);
    CHECK(codes == std::vector{make_error_code(errc::concurrency_limited), make_error_code(errc::rate_limited)});
    CHECK(heard->story() == "attempt started 1, rejected, completed rejected, attempt ended 1 succeeded, "
                            "completed 1 succeeded, rejected, completed rejected");
}

TEST_CASE("a cancelled and a timed out execution each end with one event that says so") {
    bench on(guarded);
    const auto heard = listen_to(on.made);
    std::stop_source stop;
    stop.request_stop();
    on.policies().try_execute(guarded, [] {}, stop.get_token());
    CHECK(heard->story() == "completed cancelled");
    heard->events.clear();
    on.policies().try_execute(guarded, [](attempt& a) { a.block_for(1h); });
    CHECK(heard->story() == "attempt started 1, attempt ended 1 timed out, completed 1 exhausted");
    CHECK(heard->events.back().code == make_error_code(errc::timed_out));
}

TEST_CASE("the end of an execution with a fallback comes after the fallback") {
    bench on(twice);
    const auto heard = listen_to(on.made);
    on.policies().execute(twice, []() -> int { throw non_retryable_error("x"); }, fallback([] { return 1; }));
    CHECK(heard->story() == "attempt started 1, attempt ended 1 failed, fallback used 1, completed 1 rule");
    heard->events.clear();
    on.policies().execute(twice, [] { return 1; }, fallback([] { return 2; }));
    CHECK(heard->story() == "attempt started 1, attempt ended 1 succeeded, completed 1 succeeded");
}

TEST_CASE("hedges are heard as what they are") {
    bench on;
    CHECK(on.made.catalog().add({.name = "h", .hedge = {.max_hedges = 1, .after = 100ms}}));
    const auto heard = listen_to(on.made);
    sync_wait(on.on, on.policies().execute("h", [](attempt& a) { return a.sleep_for(a.number() == 1 ? 1h : 10ms); }));
    CHECK(heard->story() == "attempt started 1, hedge started 2, attempt started 2, attempt ended 2 succeeded, "
                            "attempt ended 1 cancelled, completed 2 succeeded");
}

namespace {

class thrower final : public execution_listener {
public:
    void on_event(const execution_event&) override {
        ++heard;
        throw std::runtime_error("from a listener");
    }
    int heard = 0;
};

// Calls back into the pipeline that it hears of.
class caller_back final : public execution_listener {
public:
    explicit caller_back(bound_policy p) : policy(p) {}
    void on_event(const execution_event& e) override {
        if (e.kind == event_kind::circuit_opened) policy.close_circuit();
        if (e.kind != event_kind::completed || nested++ > 3) return;
        ended += policy.try_execute([] { return 1; }).succeeded();
    }
    bound_policy policy;
    int nested = 0;
    int ended = 0;
};

} // namespace

TEST_CASE("a listener that throws changes nothing, for others neither") {
    bench on(twice);
    const auto bad = std::make_shared<thrower>();
    on.made.runner().listen(bad);
    const auto heard = listen_to(on.made);
    int calls = 0;
    CHECK(on.policies().execute(twice, [&] { return fail_until(calls, 2); }) == 2);
    CHECK(bad->heard == 6);
    CHECK(heard->events.size() == 6);
}

TEST_CASE("a listener may call back into the pipeline") {
    bench on(guarded);
    const auto bound = on.policies().bind(guarded);
    const auto back = std::make_shared<caller_back>(bound);
    on.made.runner().listen(back);
    for (int i = 0; i < 2; ++i) bound.try_execute([]() -> int { throw 1; });
    CHECK(back->ended == 4);
    CHECK(bound.circuit() == circuit_state::closed);
}

TEST_CASE("listening does not change what happens") {
    const auto run = [](bool listened) {
        bench on(twice, guarded);
        if (listened) listen_to(on.made);
        std::string text;
        for (int i = 0; i < 4; ++i) {
            int calls = 0;
            const auto a = on.policies().try_execute(twice, [&] { return fail_until(calls, i + 1); });
            const auto b = on.policies().try_execute(guarded, [&] { return fail_until(calls, 100); });
            text += std::string(to_text(a.stop_reason())) + " " + std::to_string(a.attempt_count()) + " " +
                    std::string(to_text(b.stop_reason())) + " " + std::to_string(b.attempt_count()) + "\n";
        }
        return text + to_text(on.elapsed());
    };
    CHECK(run(true) == run(false));
}

TEST_CASE("every kind of event has a name of its own") {
    std::set<std::string_view> names;
    for (int kind = 0; kind <= static_cast<int>(event_kind::completed); ++kind)
        names.insert(to_text(static_cast<event_kind>(kind)));
    CHECK(names.size() == static_cast<std::size_t>(event_kind::completed) + 1);
    CHECK_FALSE(names.contains("unknown"));
}
