// The breaker that opens at a share of failures, and the sliding window under it.
#include "breaker_lab.hpp"
#include "catch.hpp"

using namespace holdfast;
using namespace std::chrono_literals;
using test::by_ratio;
using verdict = circuit_breaker::verdict;
using lab = test::breaker_lab;

TEST_CASE("a ratio opens the circuit only at the minimum throughput") {
    lab x(by_ratio(.5, 10));
    x.fail(9);
    CHECK(x.state() == circuit_state::closed);
    x.fail(1);
    CHECK(x.state() == circuit_state::open);
}

TEST_CASE("a ratio opens the circuit exactly at the ratio") {
    lab x(by_ratio(.5, 10));
    for (int i = 0; i < 6; ++i) CHECK(x.call(verdict::success));
    x.fail(5);
    CHECK(x.state() == circuit_state::closed); // 5 of 11
    x.fail(1);
    CHECK(x.state() == circuit_state::open); // 6 of 12
}

TEST_CASE("ignored calls are not part of the throughput") {
    lab x(by_ratio(.5, 4));
    x.fail(3);
    for (int i = 0; i < 50; ++i) CHECK(x.call(verdict::ignored));
    CHECK(x.state() == circuit_state::closed);
    x.fail(1);
    CHECK(x.state() == circuit_state::open);
}

TEST_CASE("failures that have left the window no longer count") {
    lab x(by_ratio(.5, 4));
    x.fail(3);
    x.now += 10s; // as long as the window
    x.fail(3);
    CHECK(x.state() == circuit_state::closed);
    x.now += 9s;
    x.fail(1);
    CHECK(x.state() == circuit_state::open);
}

TEST_CASE("a circuit that has closed starts with an empty window") {
    lab x(by_ratio(.5, 4, 10min));
    x.fail(4);
    x.now += 5s;
    CHECK(x.call(verdict::success));
    CHECK(x.state() == circuit_state::closed);
    x.fail(3);
    CHECK(x.state() == circuit_state::closed);
    x.fail(1);
    CHECK(x.state() == circuit_state::open);
}

TEST_CASE("the window counts by its ten buckets, and rolls one bucket at a time") {
    failure_window w;
    const time_point t{1h};
    for (int i = 0; i < 10; ++i) w.record(i % 2 == 0, t + 1s * i, 10s);
    CHECK(w.sum(t + 9s, 10s).total == 10);
    CHECK(w.sum(t + 9s, 10s).failures == 5);
    for (int i = 0; i <= 10; ++i) {
        INFO(i);
        CHECK(w.sum(t + 9s + 1s * i, 10s).total == static_cast<std::uint64_t>(10 - i));
    }
    CHECK(w.sum(t + 10s - 1ns, 10s).total == 10); // the last instant of the bucket
    CHECK(w.sum(t + 24h, 10s).total == 0);
}

TEST_CASE("a bucket that is used again forgets what it held") {
    failure_window w;
    w.record(true, time_point{1h}, 10s);
    w.record(true, time_point{1h} + 10s, 10s); // the same bucket, a window later
    CHECK(w.sum(time_point{1h} + 10s, 10s).failures == 1);
    w.clear();
    CHECK(w.sum(time_point{1h} + 10s, 10s).total == 0);
}

TEST_CASE("a bucket that is full keeps its ratio") {
    failure_window w;
    for (int i = 0; i < 1'000'000; ++i) w.record(i % 4 == 0, time_point{1h}, 10s);
    const auto seen = w.sum(time_point{1h}, 10s);
    CHECK(seen.total >= 100'000); // the largest minimum throughput is still reached
    const double ratio = static_cast<double>(seen.failures) / static_cast<double>(seen.total);
    CHECK(ratio > .248);
    CHECK(ratio < .252);
}
