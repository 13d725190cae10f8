// Policies that change while they are in use.
#include <stdexcept>

#include <holdfast/sleep.hpp>
#include <holdfast/task_scope.hpp>

#include "catch.hpp"
#include "support.hpp"

using namespace holdfast;
using namespace std::chrono_literals;
using test::bench;

namespace {

constexpr policy p({.name = "p",
                    .retry = {.max_attempts = 2, .delay = 1s, .backoff = backoff::constant, .jitter = false},
                    .breaker = {.consecutive_failures = 5, .break_for = 10s}});

policy_options with_retries(int n) {
    policy_options changed = p.options();
    changed.retry.max_attempts = n;
    return changed;
}

int throw_always(int& calls) {
    ++calls;
    throw std::runtime_error("no");
}

} // namespace

TEST_CASE("calls under way finish on the policy they started with, new ones use the new one") {
    bench on(p);
    int calls = 0;
    on.policies().try_execute(p, [&]() -> int {
        if (calls == 0) {
            CHECK(on.made.catalog().replace({with_retries(0)}));
            CHECK(on.policies().bind(p).options().retry.max_attempts == 0);
        }
        return throw_always(calls);
    });
    CHECK(calls == 3);
    calls = 0;
    on.policies().try_execute(p, [&] { return throw_always(calls); });
    CHECK(calls == 1);
}

TEST_CASE("the state of the breaker survives a reload, also one that goes back") {
    bench on(p);
    int calls = 0;
    on.policies().try_execute(p, [&] { return throw_always(calls); }); // three failures
    CHECK(on.made.catalog().replace({with_retries(0)}));
    on.policies().try_execute(p, [&] { return throw_always(calls); });
    CHECK(on.policies().bind(p).circuit() == circuit_state::closed);
    CHECK(on.made.catalog().replace({p.options()}));
    on.policies().try_execute(p, [&] { return throw_always(calls); });
    CHECK(calls == 5);
    CHECK(on.policies().bind(p).circuit() == circuit_state::open);
}

TEST_CASE("a reload that is refused changes nothing, and the next one works") {
    bench on(p);
    policy_options bad = p.options();
    bad.timeout = -1s;
    CHECK_FALSE(on.made.catalog().replace({bad}));
    CHECK(on.policies().bind(p).options() == p.options());
    CHECK(on.made.catalog().replace({with_retries(7)}));
    CHECK(on.policies().bind(p).options().retry.max_attempts == 7);
}

TEST_CASE("a reload reaches every key of the policy") {
    bench on(p);
    const auto a = on.policies().bind(p, "a"), b = on.policies().bind(p, "b");
    CHECK(on.made.catalog().replace({with_retries(0)}));
    int calls = 0;
    a.try_execute([&] { return throw_always(calls); });
    b.try_execute([&] { return throw_always(calls); });
    CHECK(calls == 2);
}

TEST_CASE("what a rate limit has given out stays given out when something else is reloaded") {
    bench on;
    policy_options o{.name = "r", .rate = {.permits = 2, .per = 1h}};
    CHECK(on.made.catalog().add(o));
    CHECK(on.policies().try_execute("r", [] {}));
    o.timeout = 1s;
    CHECK(on.made.catalog().replace({o}));
    CHECK(on.policies().try_execute("r", [] {}));
    CHECK_FALSE(on.policies().try_execute("r", [] {}));
    o.rate.permits = 5; // another rate starts afresh
    CHECK(on.made.catalog().replace({o}));
    CHECK(on.policies().try_execute("r", [] {}));
}

TEST_CASE("a stage may be switched on and off while slots are held") {
    bench on;
    CHECK(on.made.catalog().add({.name = "c", .concurrency = {.limit = 1}}));
    const auto bound = on.policies().bind("c");
    bound.execute([&] {
        CHECK(on.made.catalog().replace({{.name = "c"}}));
        CHECK(bound.try_execute([] {}));
        CHECK(on.made.catalog().replace({{.name = "c", .concurrency = {.limit = 1}}}));
        CHECK_FALSE(bound.try_execute([] {}));
    });
    CHECK(bound.stats().running == 0);
    CHECK(bound.try_execute([] {}));
}

TEST_CASE("fewer probes after a reload do not leave the circuit half open for ever") {
    bench on;
    policy_options o{.name = "b", .breaker = {.consecutive_failures = 1, .break_for = 1s, .probes = 3}};
    CHECK(on.made.catalog().add(o));
    const auto bound = on.policies().bind("b");
    int calls = 0;
    bound.try_execute([&] { return throw_always(calls); });
    on.on.advance(1s);
    CHECK(bound.try_execute([] {}));
    CHECK(bound.circuit() == circuit_state::half_open);
    o.breaker.probes = 1;
    CHECK(on.made.catalog().replace({o}));
    CHECK(bound.try_execute([] {}));
    CHECK(bound.circuit() == circuit_state::closed);
}
