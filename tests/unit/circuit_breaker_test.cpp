#include "breaker_lab.hpp"
#include "catch.hpp"

using namespace holdfast;
using namespace std::chrono_literals;
using test::consecutive;
using verdict = circuit_breaker::verdict;
using permit = circuit_breaker::permit;
using lab = test::breaker_lab;

TEST_CASE("breaker options take the documented defaults") {
    const auto s = breaker_settings::from({.consecutive_failures = 3});
    CHECK(s.consecutive_failures == 3);
    CHECK(s.window == 30s);
    CHECK(s.min_throughput == 10);
    CHECK(s.break_for == 5s);
    CHECK(s.max_break_for == 5s);
    CHECK(s.probes == 1);
    CHECK(s.probe_timeout == 30s);
    CHECK(breaker_settings::from({.failure_ratio = .5, .break_for = 7s}).max_break_for == 7s);
    CHECK(breaker_settings::from({.failure_ratio = .5}).consecutive_failures == 0);
}

TEST_CASE("the circuit opens at the given number of failures in a row, not one before") {
    lab x(consecutive(3));
    x.fail(2);
    CHECK(x.state() == circuit_state::closed);
    CHECK(x.breaker.closed());
    x.fail(1);
    CHECK(x.state() == circuit_state::open);
    CHECK_FALSE(x.breaker.closed());
    CHECK_FALSE(x.call(verdict::success));
    CHECK(x.retry_after == 5s);
    CHECK(x.story() == "open 5s");
}

TEST_CASE("a success starts the count again, an ignored call leaves it alone") {
    lab x(consecutive(3));
    x.fail(2);
    CHECK(x.call(verdict::success));
    x.fail(2);
    CHECK(x.state() == circuit_state::closed);
    for (int i = 0; i < 10; ++i) CHECK(x.call(verdict::ignored));
    CHECK(x.state() == circuit_state::closed);
    x.fail(1);
    CHECK(x.state() == circuit_state::open);
}

TEST_CASE("an open circuit becomes half-open exactly at the end of its break, by call and by query alike") {
    lab x(consecutive(1));
    x.fail(1);
    x.now += 5s - 1ns;
    CHECK(x.state() == circuit_state::open);
    CHECK(x.breaker.refuses(x.now, x.retry_after));
    CHECK_FALSE(x.call(verdict::success));
    CHECK(x.retry_after == 1ns);
    x.now += 1ns;
    CHECK(x.state() == circuit_state::half_open);
    CHECK_FALSE(x.breaker.refuses(x.now, x.retry_after));
    CHECK(x.story() == "open 5s"); // nobody has called yet
    permit p;
    CHECK(x.enter(p));
    CHECK(p.probe != 0);
    CHECK(x.story() == "open 5s, half-open");
}

TEST_CASE("a probe that succeeds closes the circuit, one that fails opens it again") {
    lab x(consecutive(1));
    x.fail(1);
    x.now += 5s;
    CHECK(x.call(verdict::failure));
    CHECK(x.state() == circuit_state::open);
    CHECK_FALSE(x.call(verdict::success));
    x.now += 5s;
    CHECK(x.call(verdict::success));
    CHECK(x.state() == circuit_state::closed);
    CHECK(x.story() == "open 5s, half-open, open 5s, half-open, closed");
}

TEST_CASE("all probes must succeed to close the circuit") {
    lab x(consecutive(1, 3));
    x.fail(1);
    x.now += 5s;
    CHECK(x.call(verdict::success));
    CHECK(x.call(verdict::success));
    CHECK(x.state() == circuit_state::half_open);
    CHECK(x.call(verdict::success));
    CHECK(x.state() == circuit_state::closed);
}

TEST_CASE("no more than the given probes are let through at the same time") {
    lab x(consecutive(1, 3));
    x.fail(1);
    x.now += 5s;
    permit p[4];
    CHECK(x.enter(p[0]));
    x.now += 1s;
    CHECK(x.enter(p[1]));
    CHECK(x.enter(p[2]));
    CHECK_FALSE(x.enter(p[3]));
    CHECK(x.retry_after == 29s); // when the oldest probe gives up its permit
    x.record(p[0], verdict::success);
    CHECK_FALSE(x.enter(p[3])); // one has succeeded, two run: three in all
    x.record(p[1], verdict::success);
    x.record(p[2], verdict::success);
    CHECK(x.state() == circuit_state::closed);
}

TEST_CASE("the first probe that fails opens the circuit, the others no longer matter") {
    lab x(consecutive(1, 3));
    x.fail(1);
    x.now += 5s;
    permit a, b, c;
    CHECK(x.enter(a));
    CHECK(x.enter(b));
    CHECK(x.enter(c));
    x.record(a, verdict::failure);
    CHECK(x.state() == circuit_state::open);
    x.record(b, verdict::failure);
    x.record(c, verdict::success);
    CHECK(x.state() == circuit_state::open);
    CHECK(x.story() == "open 5s, half-open, open 5s");
}

TEST_CASE("successes of an earlier round of probes do not count") {
    lab x(consecutive(1, 3));
    x.fail(1);
    x.now += 5s;
    CHECK(x.call(verdict::success));
    CHECK(x.call(verdict::success));
    CHECK(x.call(verdict::failure));
    x.now += 5s;
    CHECK(x.call(verdict::success));
    CHECK(x.state() == circuit_state::half_open);
}

TEST_CASE("a probe whose outcome is ignored gives its permit back") {
    lab x(consecutive(1));
    x.fail(1);
    x.now += 5s;
    permit p;
    for (int i = 0; i < 100; ++i) {
        REQUIRE(x.enter(p));
        REQUIRE(x.state() == circuit_state::half_open);
        x.record(p, verdict::ignored);
    }
    CHECK(x.call(verdict::success));
    CHECK(x.state() == circuit_state::closed);
}

TEST_CASE("a probe that never ends loses its permit, and its late result changes nothing") {
    lab x(consecutive(1));
    x.fail(1);
    x.now += 5s;
    permit lost, other;
    CHECK(x.enter(lost));
    x.now += 30s - 1ns;
    CHECK_FALSE(x.enter(other));
    CHECK(x.retry_after == 1ns);
    x.now += 1ns;
    CHECK(x.enter(other));
    x.record(lost, verdict::failure);
    CHECK(x.state() == circuit_state::half_open);
    x.record(lost, verdict::success);
    CHECK(x.state() == circuit_state::half_open);
    x.record(other, verdict::success);
    CHECK(x.state() == circuit_state::closed);
}

TEST_CASE("a result of an older time neither opens nor closes nor counts") {
    lab x(consecutive(2));
    permit old;
    CHECK(x.enter(old));
    x.fail(2);
    x.record(old, verdict::success);
    CHECK(x.state() == circuit_state::open);
    x.record(old, verdict::failure);
    x.now += 5s;
    CHECK(x.call(verdict::success));
    CHECK(x.state() == circuit_state::closed);
    x.record(old, verdict::failure);
    x.record(old, verdict::failure);
    CHECK(x.state() == circuit_state::closed);
    x.fail(1);
    x.record(old, verdict::success); // does not start the count again either
    x.fail(1);
    CHECK(x.state() == circuit_state::open);
}

TEST_CASE("an old probe does not speak for a later round") {
    lab x(consecutive(1, 2));
    x.fail(1);
    x.now += 5s;
    permit a, b;
    CHECK(x.enter(a));
    CHECK(x.enter(b));
    x.record(a, verdict::failure);
    x.now += 5s;
    permit c;
    CHECK(x.enter(c));
    x.record(b, verdict::success);
    x.record(c, verdict::success);
    CHECK(x.state() == circuit_state::half_open);
}

TEST_CASE("breaks in a row double up to their cap, and start again after a close") {
    lab x(breaker_settings::from({.consecutive_failures = 1, .break_for = 5s, .max_break_for = 33s}));
    x.fail(1);
    for (const duration expected : {10s, 20s, 33s, 33s}) {
        x.now += 1h;
        CHECK(x.call(verdict::failure));
        CHECK(x.told.back().break_for == expected);
    }
    x.now += 33s;
    CHECK(x.call(verdict::success));
    x.fail(1);
    CHECK(x.told.back().break_for == 5s);
}

TEST_CASE("growing breaks saturate, also where the cap is forever") {
    lab x(breaker_settings::from({.consecutive_failures = 1, .break_for = 1h, .max_break_for = forever}));
    x.fail(1);
    for (int i = 0; i < 100; ++i) {
        duration longest = x.told.back().break_for;
        if (longest == forever) break;
        x.now = saturating_add(x.now, longest);
        if (x.now == never) break;
        REQUIRE(x.call(verdict::failure));
        REQUIRE(x.told.back().break_for > longest);
    }
    CHECK(x.told.size() > 20);
}

TEST_CASE("an isolated circuit refuses until it is closed by hand") {
    lab x(consecutive(3));
    x.breaker.isolate(x.now);
    x.breaker.isolate(x.now);
    CHECK(x.state() == circuit_state::isolated);
    CHECK_FALSE(x.call(verdict::success));
    CHECK(x.retry_after == forever);
    x.now += 24h * 365;
    CHECK_FALSE(x.call(verdict::success));
    x.breaker.close(x.now);
    x.breaker.close(x.now);
    CHECK(x.state() == circuit_state::closed);
    CHECK(x.call(verdict::success));
    CHECK(x.story() == "isolated, closed");
}

TEST_CASE("isolation beats a running probe and the end of the break") {
    lab x(consecutive(1));
    x.fail(1);
    x.now += 5s;
    permit p;
    CHECK(x.enter(p));
    x.breaker.isolate(x.now);
    x.record(p, verdict::success);
    CHECK(x.state() == circuit_state::isolated);
    x.breaker.close(x.now);
    x.record(p, verdict::failure);
    CHECK(x.state() == circuit_state::closed);
}

TEST_CASE("closing an open circuit by hand also forgets how often it broke") {
    lab x(breaker_settings::from({.consecutive_failures = 1, .break_for = 5s, .max_break_for = 1min}));
    x.fail(1);
    x.now += 5s;
    CHECK(x.call(verdict::failure));
    CHECK(x.told.back().break_for == 10s);
    x.breaker.close(x.now);
    x.fail(1);
    CHECK(x.told.back().break_for == 5s);
}

TEST_CASE("fewer probes than have already succeeded, after a change of settings, do not leave it stuck") {
    lab x(consecutive(1, 3));
    x.fail(1);
    x.now += 5s;
    CHECK(x.call(verdict::success));
    CHECK(x.call(verdict::success));
    x.s.probes = 1;
    CHECK(x.call(verdict::success));
    CHECK(x.state() == circuit_state::closed);
}

TEST_CASE("a lower threshold, after a change of settings, holds from the next failure on") {
    lab x(consecutive(10));
    x.fail(5);
    x.s.consecutive_failures = 3;
    CHECK(x.state() == circuit_state::closed);
    x.fail(1);
    CHECK(x.state() == circuit_state::open);
}

TEST_CASE("an observer may call back into the breaker, and still sees each transition once and in order") {
    lab x(consecutive(1));
    int depth = 0;
    x.also = [&](const circuit_breaker::transition& t) {
        CHECK(++depth == 1); // never told of one inside the telling of another
        if (t.to == circuit_state::open) x.breaker.isolate(x.now);
        if (t.to == circuit_state::isolated) {
            CHECK_FALSE(x.call(verdict::success));
            x.breaker.close(x.now);
        }
        --depth;
    };
    x.fail(1);
    CHECK(x.state() == circuit_state::closed);
    CHECK(x.story() == "open 5s, isolated, closed");
}

TEST_CASE("a transition carries the time at which it happened") {
    lab x(consecutive(1));
    x.now += 123ms;
    x.fail(1);
    CHECK(x.told.at(0).at == time_point{1h} + 123ms);
}

TEST_CASE("a closed circuit does not read the clock for a success") {
    circuit_breaker b({});
    const breaker_settings s = consecutive(3);
    int reads = 0;
    const auto clock = [&] {
        ++reads;
        return time_point{1h};
    };
    permit p;
    duration retry_after{};
    CHECK(b.enter(s, clock, p, retry_after));
    b.record(s, clock, p, verdict::success);
    b.record(s, clock, p, verdict::ignored);
    CHECK(reads == 0);
    b.record(s, clock, p, verdict::failure);
    CHECK(reads == 1);
}
