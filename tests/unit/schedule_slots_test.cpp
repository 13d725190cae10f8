// Which moments a schedule names: clock changes, missed slots, derived ids.
#include "catch.hpp"

#include <fstream>
#include <string>
#include <vector>

#include <holdfast/system_time_zones.hpp>
#include <holdfast/timestamp.hpp>

#include "schedules/schedule_ids.hpp"
#include "schedules/slot_plan.hpp"
#include "schedules/zone_file.hpp"
#include "schedules/zone_rule.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

namespace {

store_time utc(std::string_view text) {
    return parse_timestamp<store_time>(text).value();
}

class ruled_zone final : public time_zone {
public:
    explicit ruled_zone(std::string_view rule) : rule_(zone_rule::parse(rule).value()) {}
    zone_period period_at(std::chrono::sys_seconds at) const noexcept override { return rule_.period_at(at); }

private:
    zone_rule rule_;
};

// The rules in force, so that the tests need nothing from the machine.
class ruled_zones final : public time_zones {
public:
    result<const time_zone*> find(std::string_view name) override {
        if (name == "Europe/Berlin") return &berlin_;
        if (name == "America/New_York") return &new_york_;
        if (name == "Australia/Lord_Howe") return &lord_howe_;
        return &utc_;
    }

private:
    ruled_zone berlin_{"CET-1CEST,M3.5.0,M10.5.0/3"};
    ruled_zone new_york_{"EST5EDT,M3.2.0,M11.1.0"};
    ruled_zone lord_howe_{"<+1030>-10:30<+11>-11,M10.1.0,M4.1.0"}; // by half an hour
    fixed_zone utc_{0s};
};

std::vector<std::string> slots(std::string_view cron, std::string_view zone, std::string_view after, int count,
                               time_zones& zones) {
    const auto plan = slot_plan::make({.name = "x", .cron = cron, .time_zone = zone}, zones).value();
    std::vector<std::string> found;
    for (auto at = plan.next(utc(after)); at && count > 0; at = plan.next(*at), --count) found.push_back(to_text(*at));
    return found;
}
std::vector<std::string> slots(std::string_view cron, std::string_view zone, std::string_view after, int count) {
    ruled_zones zones;
    return slots(cron, zone, after, count, zones);
}
using texts = std::vector<std::string>;

slot_decision decided(schedule_options rules, std::string_view slot, std::string_view now) {
    ruled_zones zones;
    rules.name = "x";
    return decide(rules, slot_plan::make(rules, zones).value(), utc(slot), utc(now));
}

} // namespace

TEST_CASE("a slot in the hour that spring leaves out fires once, right after it") {
    // Berlin, 29 March 2026: 02:00 becomes 03:00 at 01:00 UTC.
    CHECK(slots("30 2 * * *", "Europe/Berlin", "2026-03-27T12:00:00Z", 3) ==
          texts{"2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"});
    CHECK(slots("0,20,40 2 * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", 2) ==
          texts{"2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z"});
    CHECK(slots("0 2,3 * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", 2) ==
          texts{"2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z"});
    // New York, 8 March 2026: at 07:00 UTC.
    CHECK(slots("30 2 * * *", "America/New_York", "2026-03-07T12:00:00Z", 2) ==
          texts{"2026-03-08T07:00:00Z", "2026-03-09T06:30:00Z"});
}

TEST_CASE("a slot in the hour that autumn repeats fires once, the first time") {
    // Berlin, 25 October 2026: 03:00 becomes 02:00 at 01:00 UTC.
    CHECK(slots("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", 2) ==
          texts{"2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"});
    CHECK(slots("30 2 * * *", "Europe/Berlin", "2026-10-25T01:10:00Z", 1) == texts{"2026-10-26T01:30:00Z"});
    CHECK(slots("0 3 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", 1) == texts{"2026-10-25T02:00:00Z"});
    // New York, 1 November 2026: 02:00 becomes 01:00 at 06:00 UTC.
    CHECK(slots("15 1 * * *", "America/New_York", "2026-10-31T12:00:00Z", 2) ==
          texts{"2026-11-01T05:15:00Z", "2026-11-02T06:15:00Z"});
}

TEST_CASE("a schedule of every hour goes on evenly through both changes") {
    CHECK(slots("*/30 * * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", 4) ==
          texts{"2026-03-29T00:30:00Z", "2026-03-29T01:00:00Z", "2026-03-29T01:30:00Z", "2026-03-29T02:00:00Z"});
    CHECK(slots("*/30 * * * *", "Europe/Berlin", "2026-10-24T23:30:00Z", 6) ==
          texts{"2026-10-25T00:00:00Z", "2026-10-25T00:30:00Z", "2026-10-25T01:00:00Z", "2026-10-25T01:30:00Z",
                "2026-10-25T02:00:00Z", "2026-10-25T02:30:00Z"});
    CHECK(slots("30 * * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", 3) ==
          texts{"2026-03-29T00:30:00Z", "2026-03-29T01:30:00Z", "2026-03-29T02:30:00Z"});
    CHECK(slots("30 * * * *", "Europe/Berlin", "2026-10-24T23:45:00Z", 3) ==
          texts{"2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-10-25T02:30:00Z"});
    CHECK(
        slots("10 * * * *", "Australia/Lord_Howe", "2026-10-03T14:00:00Z", 3) == // it would be left out for 90 minutes
        texts{"2026-10-03T14:40:00Z", "2026-10-03T15:30:00Z", "2026-10-03T16:10:00Z"});
    CHECK(slots("45 * * * *", "Australia/Lord_Howe", "2026-10-03T14:00:00Z", 3) == // 02:00 becomes 02:30 at 15:30 UTC
          texts{"2026-10-03T14:15:00Z", "2026-10-03T15:15:00Z", "2026-10-03T15:45:00Z"});
}

TEST_CASE("every day of ten years has its slot, whatever the clocks do") {
    ruled_zones zones;
    for (const auto* zone : {"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", ""}) {
        const auto plan = slot_plan::make({.name = "x", .cron = "30 2 * * *", .time_zone = zone}, zones).value();
        int count = 0;
        auto before = utc("2020-01-01T12:00:00Z");
        for (auto at = plan.next(before); *at < utc("2030-01-01T12:00:00Z"); at = plan.next(*at), ++count) {
            if (count > 0 && (*at - before < 23h || *at - before > 25h)) FAIL("a day of " << to_text(*at));
            before = *at;
        }
        CHECK(count == 3653);
    }
}

TEST_CASE("the zones of this machine say what their rules say") {
    if (!std::ifstream("/usr/share/zoneinfo/Europe/Berlin")) SKIP("this machine has no zoneinfo files");
    system_time_zones real;
    ruled_zones ruled;
    for (const auto* zone : {"Europe/Berlin", "America/New_York", "Australia/Lord_Howe"})
        for (const auto* cron : {"30 2 * * *", "*/30 * * * *", "0 0 1 * *"})
            for (const auto* from : {"2026-03-01T00:00:00Z", "2026-10-20T00:00:00Z", "2050-03-20T00:00:00Z"})
                CHECK(slots(cron, zone, from, 400, real) == slots(cron, zone, from, 400, ruled));
    // What only the file knows: until 1996 summer ended in September.
    const auto berlin = real.find("Europe/Berlin").value();
    CHECK(berlin->period_at(std::chrono::sys_days(std::chrono::year{1990} / 10 / 10)).offset == 1h);
    CHECK(berlin->period_at(std::chrono::sys_days(std::chrono::year{1890} / 1 / 1)).offset == 53min + 28s);
    CHECK(real.find("Europe/Berlin").value() == berlin);
}

TEST_CASE("a zone that cannot be had is refused with what was looked for") {
    using Catch::Matchers::ContainsSubstring;
    system_time_zones none({"/nonexistent"});
    CHECK_THAT(none.find("Europe/Berlin").error().message, ContainsSubstring("/nonexistent/Europe/Berlin"));
    CHECK(none.find("Europe/Berlin").error().code == errc::not_found);
    for (const auto* name : {"../../etc/passwd", "/etc/passwd", "Europe/Ber lin", "+25:00", "+2", "-01:60"})
        CHECK_FALSE(none.find(name).has_value());
    CHECK(none.find("+05:30").value()->period_at({}).offset == 5h + 30min);
    CHECK(none.find("-0330").value()->period_at({}).offset == -(3h + 30min));
    CHECK(none.find("UTC").value()->period_at({}).offset == 0s);
    CHECK(none.find("").has_value());
}

TEST_CASE("bytes that are no zone are refused, wherever they break off") {
    CHECK_FALSE(read_zone_file("").has_value());
    CHECK_FALSE(read_zone_file("a text").has_value());
    std::ifstream file("/usr/share/zoneinfo/Europe/Berlin", std::ios::binary);
    const std::string whole{std::istreambuf_iterator<char>(file), {}};
    const auto footer = whole.rfind('\n', whole.size() - 2);
    for (std::size_t size = 0; size < whole.size() && size < footer; size += 7)
        if (read_zone_file(std::string_view(whole).substr(0, size))) FAIL("taken at " << size);
    for (const auto* text : {"CET", "CET-1CEST", "CET-1CEST,M3.5.0", "CET-1CEST,M13.5.0,M10.5.0/3", "C-1", "<+1-1",
                             "CET-1CEST,M3.5.0,M10.5.0/3x"})
        CHECK_FALSE(zone_rule::parse(text).has_value());
    CHECK(zone_rule::parse("UTC0").has_value());
    CHECK(zone_rule::parse("EST5EDT,J60,300/-1:30").has_value());
}

TEST_CASE("a fixed rate has its slots at whole multiples since 1970") {
    ruled_zones zones;
    const auto plan = slot_plan::make({.name = "x", .every = 7min}, zones).value();
    const auto first = plan.next(utc("2026-11-16T10:00:00.5Z")).value();
    CHECK(first.time_since_epoch() % 7min == 0us);
    CHECK(first - utc("2026-11-16T10:00:00.5Z") <= 7min);
    CHECK(*plan.next(first) - first == 7min);
    CHECK(*plan.next(first - 1us) == first);
    CHECK(plan.text() == "every 7m");
}

TEST_CASE("the latest slots of a long time are found without walking through it") {
    ruled_zones zones;
    const auto plan = slot_plan::make({.name = "x", .cron = "* * * * * *"}, zones).value();
    const auto now = utc("2026-11-16T10:00:00Z");
    const auto found = plan.latest(now - 24h * 365, now, 3);
    CHECK(found == std::vector<store_time>{now - 2s, now - 1s, now});
    CHECK(plan.latest(now, now, 3) == std::vector<store_time>{now});
    CHECK(plan.latest(now + 1s, now, 3).empty());
    const auto yearly = slot_plan::make({.name = "x", .cron = "@yearly"}, zones).value();
    CHECK(yearly.latest(utc("2020-01-01T00:00:00Z"), now, 100).size() == 7);
}

TEST_CASE("slots that nobody fired in time are judged by the misfire rule") {
    using enum misfire;
    schedule_options hourly{.cron = "0 * * * *"};
    const auto fired = [&](misfire how, std::string_view now) {
        schedule_options with = hourly;
        with.misfire = how;
        return decided(with, "2026-11-16T01:00:00Z", now);
    };
    // In time: itself.
    for (const misfire each : {fire_once, skip, catch_up})
        CHECK(fired(each, "2026-11-16T01:00:59Z").fire == std::vector{utc("2026-11-16T01:00:00Z")});
    // 01:00 to 04:00 were missed.
    CHECK(fired(fire_once, "2026-11-16T04:10:00Z").fire == std::vector{utc("2026-11-16T04:00:00Z")});
    CHECK(fired(fire_once, "2026-11-16T04:10:00Z").missed == 3);
    CHECK(fired(skip, "2026-11-16T04:10:00Z").fire.empty());
    CHECK(fired(skip, "2026-11-16T04:10:00Z").missed == 4);
    CHECK(fired(catch_up, "2026-11-16T04:10:00Z").fire ==
          std::vector{utc("2026-11-16T01:00:00Z"), utc("2026-11-16T02:00:00Z"), utc("2026-11-16T03:00:00Z"),
                      utc("2026-11-16T04:00:00Z")});
    // 04:00 is in time: it stands for the others, too.
    CHECK(fired(fire_once, "2026-11-16T04:00:30Z").fire == std::vector{utc("2026-11-16T04:00:00Z")});
    CHECK(fired(skip, "2026-11-16T04:00:30Z").fire == std::vector{utc("2026-11-16T04:00:00Z")});
    hourly.max_catch_up = 2;
    CHECK(fired(catch_up, "2026-11-16T04:10:00Z").fire ==
          std::vector{utc("2026-11-16T03:00:00Z"), utc("2026-11-16T04:00:00Z")});
}

TEST_CASE("a derived id follows from its parts and its time, and never changes") {
    const auto at = utc("2026-11-16T03:00:00Z");
    CHECK(derived_id({"a", "bc"}, at) == derived_id({"a", "bc"}, at));
    CHECK(derived_id({"a", "bc"}, at) != derived_id({"ab", "c"}, at));
    CHECK(derived_id({"a"}, at) != derived_id({"a"}, at + 1us));
    CHECK(derived_id({"a"}, at) < derived_id({"a"}, at + 1s));
    CHECK(to_text(derived_id({"nightly", "run"}, at)) == "01M7H4R5W0B407XKGTRBP5E4V3");
}
