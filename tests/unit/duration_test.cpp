#include <cstdint>
#include <limits>
#include <string>

#include <holdfast/backoff.hpp>
#include <holdfast/duration.hpp>

#include "catch.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

static_assert(parse_duration("250ms") == 250ms);
static_assert(parse_duration("1h30m") == 90min);
static_assert(!parse_duration("1x"));
static_assert(saturating_add(never, 1ns) == never);

TEST_CASE("a duration is read from text with each of its units") {
    CHECK(parse_duration("0") == duration::zero());
    CHECK(parse_duration("7ns") == 7ns);
    CHECK(parse_duration("7us") == 7us);
    CHECK(parse_duration("250ms") == 250ms);
    CHECK(parse_duration("10s") == 10s);
    CHECK(parse_duration("5m") == 5min);
    CHECK(parse_duration("6h") == 6h);
    CHECK(parse_duration("1d") == 24h);
}

TEST_CASE("units of a duration add up, in any order, as often as they come") {
    CHECK(parse_duration("1h30m") == 90min);
    CHECK(parse_duration("1d2h3m4s5ms6us7ns") == 26h + 3min + 4s + 5ms + 6us + 7ns);
    CHECK(parse_duration("30m1h") == 90min);
    CHECK(parse_duration("1s1s") == 2s);
    CHECK(parse_duration("0s") == 0s);
    CHECK(parse_duration("007s") == 7s);
}

TEST_CASE("text that is not a duration gives nothing") {
    const auto text = GENERATE(as<std::string>{}, "", " ", "s", "1", "00", "-1s", "+1s", "1.5s", "1 s", " 1s", "1s ",
                               "1S", "1min", "1sec", "1s1", "1ss", "1sm", "ms", "1m 30s", "0x10s", "1e3s", "forever",
                               "\xc2\xb5s", "1\xc2\xb5s", "ten seconds", "1h-30m", "1d,2h");
    INFO('"' << text << '"');
    CHECK_FALSE(parse_duration(text).has_value());
    CHECK_FALSE(parse_duration(std::string_view("1s\0", 3)).has_value());
}

TEST_CASE("a duration that does not fit gives nothing, the largest that fits is read") {
    CHECK(parse_duration("9223372036854775807ns") == duration::max());
    CHECK_FALSE(parse_duration("9223372036854775808ns"));
    CHECK(parse_duration("9223372036s854775807ns") == duration::max());
    CHECK_FALSE(parse_duration("9223372036s854775808ns"));
    CHECK(parse_duration("106751d") == 24h * 106751);
    CHECK_FALSE(parse_duration("106752d"));
    CHECK_FALSE(parse_duration("99999999999999999999999999s"));
    CHECK_FALSE(parse_duration("18446744073709551617ns")); // 1 after a wrap of 64 bits
}

TEST_CASE("the text of a duration is exact") {
    CHECK(to_text(0s) == "0");
    CHECK(to_text(90s) == "1m30s");
    CHECK(to_text(250ms) == "250ms");
    CHECK(to_text(26h + 1ns) == "1d2h1ns");
    CHECK(to_text(-90s) == "-1m30s");
    CHECK(to_text(forever) == "forever");
    CHECK(to_text(duration::min()) == "-106751d23h47m16s854ms775us808ns");
}

TEST_CASE("a duration survives the way to text and back") {
    random_series random(7);
    for (int i = 0; i < 20'000; ++i) {
        const duration d{static_cast<std::int64_t>(random.next() >> (1 + random.next() % 62))};
        if (d == forever) continue;
        INFO(d.count());
        REQUIRE(parse_duration(to_text(d)) == d);
    }
}

TEST_CASE("the short text of a duration has one unit and at most three digits that matter") {
    CHECK(to_short_text(0s) == "0");
    CHECK(to_short_text(1ns) == "1ns");
    CHECK(to_short_text(999ns) == "999ns");
    CHECK(to_short_text(1500ns) == "1.5us");
    CHECK(to_short_text(12'345ns) == "12.3us");
    CHECK(to_short_text(250ms) == "250ms");
    CHECK(to_short_text(999'999us) == "999ms");
    CHECK(to_short_text(1s) == "1s");
    CHECK(to_short_text(1009ms) == "1s");
    CHECK(to_short_text(1010ms) == "1.01s");
    CHECK(to_short_text(1500ms) == "1.5s");
    CHECK(to_short_text(1750ms) == "1.75s");
    CHECK(to_short_text(10'050ms) == "10s");
    CHECK(to_short_text(90s) == "1.5m");
    CHECK(to_short_text(36h) == "1.5d");
    CHECK(to_short_text(24h * 400) == "400d");
    CHECK(to_short_text(-1500ms) == "-1.5s");
    CHECK(to_short_text(forever) == "forever");
    CHECK(to_short_text(duration::min()) == "-forever");
}

TEST_CASE("adding to a point in time stops at never") {
    const time_point t{5s};
    CHECK(saturating_add(t, 2s) == time_point{7s});
    CHECK(saturating_add(t, 0s) == t);
    CHECK(saturating_add(t, forever) == never);
    CHECK(saturating_add(t, forever - 5s) == never);
    CHECK(saturating_add(t, forever - 6s) == never - 1s);
    CHECK(saturating_add(never, 0s) == never);
}
