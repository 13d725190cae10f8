#include "catch.hpp"

#include <functional>
#include <vector>

#include <holdfast/cron.hpp>

using namespace holdfast;
using namespace std::chrono;
using namespace std::chrono_literals;

namespace {

constexpr wall_time at(year_month_day day, seconds time = 0s) {
    return local_days(day) + time;
}

// Read by the compiler.
static_assert(cron_expression("0 3 * * *").next(at(2026y / 3 / 1)) == at(2026y / 3 / 1, 3h));
static_assert(cron_expression("0 0 29 2 *").next(at(2097y / 1 / 1)) == at(2104y / 2 / 29)); // 2100 has none

std::string refusal(std::string_view text) {
    const auto parsed = cron_expression::parse(text);
    return parsed ? "taken" : parsed.error().message;
}

} // namespace

TEST_CASE("the next time of a cron expression is the one that a walk over all minutes of four years finds") {
    struct expectation {
        std::string_view text;
        std::function<bool(year_month_day, weekday, int, int)> matches;
    };
    const std::vector<expectation> table = {
        {"*/15 * * * *", [](auto, auto, int, int m) { return m % 15 == 0; }},
        {"7 3 * * *", [](auto, auto, int h, int m) { return h == 3 && m == 7; }},
        {"0 9-17/4 * * MON-FRI",
         [](auto, weekday d, int h, int m) {
             return m == 0 && (h == 9 || h == 13 || h == 17) && d.iso_encoding() <= 5;
         }},
        {"30 6 1,15 * *", [](year_month_day day, auto, int h,
                             int m) { return h == 6 && m == 30 && (day.day() == 1d || day.day() == 15d); }},
        {"0 0 13 * FRI", // either day
         [](year_month_day day, weekday d, int h, int m) {
             return h == 0 && m == 0 && (day.day() == 13d || d == Friday);
         }},
        {"0 0 */2 * FRI", // a star is no choice: both
         [](year_month_day day, weekday d, int h, int m) {
             return h == 0 && m == 0 && static_cast<unsigned>(day.day()) % 2 == 1 && d == Friday;
         }},
        {"59 23 L * *",
         [](year_month_day day, auto, int h, int m) {
             return h == 23 && m == 59 && day == year_month_day(day.year() / day.month() / last);
         }},
        {"0 12 29 feb ?", [](year_month_day day, auto, int h,
                             int m) { return h == 12 && m == 0 && day.month() == February && day.day() == 29d; }},
        {"5/20 22-23 * JAN,JUN-AUG 5-7",
         [](year_month_day day, weekday d, int h, int m) {
             const auto month = static_cast<unsigned>(day.month());
             return (m == 5 || m == 25 || m == 45) && h >= 22 && (month == 1 || (month >= 6 && month <= 8)) &&
                    d.iso_encoding() >= 5;
         }},
    };
    const local_days begin(2023y / 1 / 1);
    const local_days end(2027y / 1 / 1);
    for (const expectation& each : table) {
        CAPTURE(each.text);
        const cron_expression cron(each.text);
        auto next = cron.next(begin - 1s);
        std::vector<wall_time> wrong;
        for (auto day = begin; day < end; day += days{1}) {
            const year_month_day date(day);
            const weekday in_week(day);
            for (int minute = 0; minute < 24 * 60; ++minute) {
                if (!each.matches(date, in_week, minute / 60, minute % 60)) continue;
                const wall_time expected = day + minutes{minute};
                if (next != expected) wrong.push_back(expected);
                next = cron.next(expected);
            }
        }
        CHECK(wrong.size() == 0);
        CHECK(next.value_or(end) >= end);
    }
}

TEST_CASE("a cron expression of six fields counts seconds") {
    const cron_expression cron("*/20 59 23 31 12 *");
    CHECK(cron.next(at(2025y / 12 / 31, 23h + 59min)) == at(2025y / 12 / 31, 23h + 59min + 20s));
    CHECK(cron.next(at(2025y / 12 / 31, 23h + 59min + 40s)) == at(2026y / 12 / 31, 23h + 59min));
    CHECK(cron.matches(at(2026y / 12 / 31, 23h + 59min + 20s)));
    CHECK_FALSE(cron.matches(at(2026y / 12 / 31, 23h + 59min + 21s)));
}

TEST_CASE("the words of cron stand for what they say") {
    const wall_time from = at(2026y / 11 / 18, 10h + 30min); // a Wednesday
    CHECK(cron_expression("@hourly").next(from) == at(2026y / 11 / 18, 11h));
    CHECK(cron_expression("@daily").next(from) == at(2026y / 11 / 19));
    CHECK(cron_expression("@midnight").next(from) == at(2026y / 11 / 19));
    CHECK(cron_expression("@weekly").next(from) == at(2026y / 11 / 22));
    CHECK(cron_expression("@monthly").next(from) == at(2026y / 12 / 1));
    CHECK(cron_expression("@yearly").next(from) == at(2027y / 1 / 1));
    CHECK(cron_expression("@annually").next(from) == at(2027y / 1 / 1));
}

TEST_CASE("Sunday is 0, 7 and SUN, and a range may end with it") {
    const wall_time monday = at(2026y / 11 / 16, 12h);
    for (const auto* text : {"0 0 * * 0", "0 0 * * 7", "0 0 * * sun"})
        CHECK(cron_expression(text).next(monday) == at(2026y / 11 / 22));
    const cron_expression weekend("0 0 * * SAT-SUN");
    CHECK(weekend.next(monday) == at(2026y / 11 / 21));
    CHECK(weekend.next(at(2026y / 11 / 21)) == at(2026y / 11 / 22));
    CHECK(weekend.next(at(2026y / 11 / 22)) == at(2026y / 11 / 28));
}

TEST_CASE("the 29th of February waits for a leap year, and for the day of the week if both must hold") {
    CHECK(cron_expression("0 0 29 2 *").next(at(2026y / 1 / 1)) == at(2028y / 2 / 29));   // a Tuesday
    CHECK(cron_expression("0 0 29 2 */3").next(at(2026y / 1 / 1)) == at(2032y / 2 / 29)); // a Sunday
}

TEST_CASE("a wrong cron expression is refused with a sentence that says what is wrong") {
    using Catch::Matchers::ContainsSubstring;
    CHECK_THAT(refusal("* * * *"), ContainsSubstring("five fields"));
    CHECK_THAT(refusal("* * * * * * *"), ContainsSubstring("five fields"));
    CHECK_THAT(refusal(""), ContainsSubstring("five fields"));
    CHECK_THAT(refusal("60 * * * *"), ContainsSubstring("minute is 0 to 59"));
    CHECK_THAT(refusal("* 24 * * *"), ContainsSubstring("hour is 0 to 23"));
    CHECK_THAT(refusal("* * 0 * *"), ContainsSubstring("day of the month is 1 to 31"));
    CHECK_THAT(refusal("* * * 13 *"), ContainsSubstring("month is 1 to 12"));
    CHECK_THAT(refusal("* * * * 8"), ContainsSubstring("day of the week is 0 to 7"));
    CHECK_THAT(refusal("61 * * * * *"), ContainsSubstring("second is 0 to 59"));
    CHECK_THAT(refusal("* * * MON *"), ContainsSubstring("neither a number nor a known name"));
    CHECK_THAT(refusal("-1 * * * *"), ContainsSubstring("number is missing"));
    CHECK_THAT(refusal("1, * * * *"), ContainsSubstring("number is missing"));
    CHECK_THAT(refusal("*/0 * * * *"), ContainsSubstring("step"));
    CHECK_THAT(refusal("*5 * * * *"), ContainsSubstring("stands alone"));
    CHECK_THAT(refusal("30-10 * * * *"), ContainsSubstring("from low to high"));
    CHECK_THAT(refusal("99999999999 * * * *"), ContainsSubstring("neither a number"));
    CHECK_THAT(refusal("0 0 30 2 *"), ContainsSubstring("no month"));
    CHECK_THAT(refusal("0 0 31 4,6,9,11 *"), ContainsSubstring("no month"));
    CHECK_THAT(refusal("@never"), ContainsSubstring("cron words are"));
    CHECK_THAT(refusal("@never"), ContainsSubstring("\"@never\""));
}
