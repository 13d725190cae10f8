#include <chrono>

#include <holdfast/lease.hpp>
#include <holdfast/timestamp.hpp>

#include "catch.hpp"

using namespace std::chrono_literals;
using namespace holdfast;

TEST_CASE("a time is written in UTC with no more digits than it has, and read back") {
    const store_time t{1'763'272'867s};
    CHECK(to_text(t) == "2025-11-16T06:01:07Z");
    CHECK(to_text(t + 120ms) == "2025-11-16T06:01:07.12Z");
    CHECK(to_text(t + 1us) == "2025-11-16T06:01:07.000001Z");
    CHECK(to_text(store_time{}) == "1970-01-01T00:00:00Z");
    CHECK(to_text(store_time{-1us}) == "1969-12-31T23:59:59.999999Z");
    for (const auto each : {t, t + 120ms, t + 1us, store_time{}, store_time{-1us}})
        CHECK(parse_timestamp<store_time>(to_text(each)) == each);
    CHECK(to_text(std::chrono::sys_time<std::chrono::nanoseconds>{5ns}) == "1970-01-01T00:00:00.000000005Z");
}

TEST_CASE("a text that is no time is not taken for one") {
    for (const char* bad :
         {"", "Z", "2026-11-16", "2026-11-16T06:01:07", "2026-11-16 06:01:07Z", "2026-02-30T00:00:00Z",
          "2026-13-01T00:00:00Z", "2026-11-16T24:00:00Z", "2026-11-16T06:60:07Z", "2026-11-16T06:01:60Z",
          "2026-11-16T06:01:07.Z", "2026-11-16T06:01:07.1234567Z", "2026-11-16T06:01:07Zx", "2026-11-16T06:01:07+01:00",
          "12026-11-16T06:01:07Z", "-026-11-16T06:01:07Z"})
        CHECK_FALSE(parse_timestamp<store_time>(bad));
    CHECK(parse_timestamp<store_time>("2026-11-16T06:01:07.1234560000Z"));
    using precise = std::chrono::sys_time<std::chrono::nanoseconds>;
    CHECK_FALSE(parse_timestamp<precise>("9999-01-01T00:00:00Z"));
    CHECK(parse_timestamp<store_time>("9999-12-31T23:59:59.999999Z"));
    CHECK_FALSE(parse_timestamp<std::chrono::sys_days>("2026-11-16T06:01:07Z"));
}
