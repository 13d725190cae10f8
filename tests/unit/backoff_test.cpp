#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include <holdfast/backoff.hpp>

#include "catch.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

static_assert(backoff_delay(backoff::exponential, 10s, 5min, 4) == 80s);

namespace {

std::vector<duration> table(backoff kind, duration base, duration cap, int retries) {
    std::vector<duration> delays;
    for (int n = 1; n <= retries; ++n) delays.push_back(backoff_delay(kind, base, cap, n));
    return delays;
}

} // namespace

TEST_CASE("each kind of backoff gives exactly its table, the first delay being the base") {
    CHECK(table(backoff::constant, 10s, 5min, 4) == std::vector<duration>{10s, 10s, 10s, 10s});
    CHECK(table(backoff::linear, 10s, 45s, 6) == std::vector<duration>{10s, 20s, 30s, 40s, 45s, 45s});
    CHECK(table(backoff::exponential, 10s, 5min, 7) == std::vector<duration>{10s, 20s, 40s, 80s, 160s, 300s, 300s});
    CHECK(table(backoff::exponential, 10s, 80s, 5) == std::vector<duration>{10s, 20s, 40s, 80s, 80s});
    CHECK(table(backoff::linear, 1ns, 3ns, 4) == std::vector<duration>{1ns, 2ns, 3ns, 3ns});
}

TEST_CASE("a delay saturates at its cap however high the retry number") {
    const std::int64_t n = GENERATE(as<std::int64_t>{}, 62, 63, 64, 65, 1024, std::numeric_limits<int>::max(),
                                    std::numeric_limits<std::int64_t>::max());
    INFO(n);
    CHECK(backoff_delay(backoff::exponential, 200ms, 30s, n) == 30s);
    CHECK(backoff_delay(backoff::linear, 1s, 30s, n) == 30s);
    CHECK(backoff_delay(backoff::constant, 1s, 30s, n) == 1s);
    CHECK(backoff_delay(backoff::exponential, 1s, forever, n) == forever);
    CHECK(backoff_delay(backoff::linear, forever / 2, forever, n) == forever);
}

TEST_CASE("with no cap a nanosecond doubles as long as it fits") {
    CHECK(backoff_delay(backoff::exponential, 1ns, forever, 62) == duration{std::int64_t{1} << 61});
    CHECK(backoff_delay(backoff::exponential, 1ns, forever, 63) == duration{std::int64_t{1} << 62});
    CHECK(backoff_delay(backoff::exponential, 1ns, forever, 64) == forever);
    CHECK(backoff_delay(backoff::exponential, 3ns, forever, 62) == duration{3 * (std::int64_t{1} << 61)});
    CHECK(backoff_delay(backoff::exponential, 3ns, forever, 63) == forever);
}

TEST_CASE("a delay never shrinks with the retry number, never goes below zero, never above the cap") {
    for (const backoff kind : {backoff::constant, backoff::linear, backoff::exponential})
        for (const duration base : {duration{1ns}, duration{3ns}, duration{200ms}, duration{7h}, forever})
            for (const duration cap : {duration{1ns}, duration{30s}, duration{24h}, forever}) {
                duration before{};
                for (std::int64_t n = 1; n < 200; ++n) {
                    const duration d = backoff_delay(kind, base, cap, n);
                    INFO(to_text(kind) << ' ' << to_text(base) << " cap " << to_text(cap) << " n " << n);
                    REQUIRE(d >= before);
                    REQUIRE(d <= cap);
                    before = d;
                }
            }
}

TEST_CASE("a base of zero stays zero, and there is no delay before the first call") {
    for (const backoff kind : {backoff::constant, backoff::linear, backoff::exponential}) {
        CHECK(backoff_delay(kind, 0s, 30s, 1) == 0s);
        CHECK(backoff_delay(kind, 0s, 30s, 100) == 0s);
        CHECK(backoff_delay(kind, -1s, 30s, 3) == 0s);
        CHECK(backoff_delay(kind, 1s, 30s, 0) == 0s);
        CHECK(backoff_delay(kind, 1s, 30s, -5) == 0s);
    }
}

TEST_CASE("jitter keeps half of the delay, never exceeds it, and reaches both ends") {
    const std::int64_t d = GENERATE(as<std::int64_t>{}, 2, 3, 7, 1000, 1001);
    INFO(d);
    random_series random(42);
    std::int64_t least = d, most = 0;
    for (int i = 0; i < 200'000; ++i) {
        const std::int64_t drawn = with_jitter(duration{d}, random).count();
        least = std::min(least, drawn);
        most = std::max(most, drawn);
    }
    CHECK(least == d - d / 2);
    CHECK(most == d);
}

TEST_CASE("a million draws of jitter stay within the interval and spread evenly over it") {
    random_series random(1);
    constexpr duration d = 30s;
    std::array<int, 10> bins{};
    bool within = true;
    for (int i = 0; i < 1'000'000; ++i) {
        const duration drawn = with_jitter(d, random);
        within = within && drawn >= d / 2 && drawn <= d;
        ++bins[static_cast<std::size_t>(std::min<std::int64_t>(9, (drawn - d / 2) * 10 / (d / 2)))];
    }
    CHECK(within);
    for (const int each : bins) CHECK(std::abs(each - 100'000) < 2'000);
}

TEST_CASE("jitter leaves the shortest and survives the longest delay") {
    random_series random(3);
    for (int i = 0; i < 1000; ++i) {
        REQUIRE(with_jitter(0s, random) == 0s);
        REQUIRE(with_jitter(1ns, random) == 1ns);
        REQUIRE(with_jitter(forever, random) >= forever / 2);
    }
}

TEST_CASE("the same seed gives the same series, another seed another one") {
    random_series a(99), b(99), c(100);
    int same_as_c = 0;
    for (int i = 0; i < 1000; ++i) {
        const auto drawn = a.next();
        REQUIRE(drawn == b.next());
        same_as_c += drawn == c.next();
    }
    CHECK(same_as_c == 0);
    static_assert(random_series(0).next() == 0xe220a8397b1dcdafULL); // splitmix64's published first value
}

TEST_CASE("every kind of backoff has a name") {
    CHECK(to_text(backoff::constant) == "constant");
    CHECK(to_text(backoff::linear) == "linear");
    CHECK(to_text(backoff::exponential) == "exponential");
    CHECK(to_text(static_cast<backoff>(9)) == "unknown");
}
