// Times of day as text, in UTC: "2026-11-16T06:01:07Z", with as many digits of a second as the value has.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <ratio>
#include <string>
#include <string_view>

namespace holdfast {

namespace detail {

inline std::string padded(std::int64_t value, std::size_t width) {
    std::string text = std::to_string(value);
    if (text.size() < width) text.insert(0, width - text.size(), '0');
    return text;
}

// Takes exactly `width` digits off the front; -1 when they are not there.
constexpr int take_digits(std::string_view& text, std::size_t width) noexcept {
    if (text.size() < width) return -1;
    int value = 0;
    for (std::size_t i = 0; i < width; ++i) {
        if (text[i] < '0' || text[i] > '9') return -1;
        value = value * 10 + (text[i] - '0');
    }
    text.remove_prefix(width);
    return value;
}
constexpr bool take(std::string_view& text, char expected) noexcept {
    if (text.empty() || text.front() != expected) return false;
    text.remove_prefix(1);
    return true;
}

// The digits after a point as nanoseconds; nothing when there are none, or more than nine that count.
constexpr std::optional<std::chrono::nanoseconds> take_fraction(std::string_view& text) noexcept {
    std::int64_t value = 0;
    std::int64_t unit = 1'000'000'000;
    std::size_t digits = 0;
    for (; digits < text.size() && text[digits] >= '0' && text[digits] <= '9'; ++digits) {
        const int digit = text[digits] - '0';
        unit /= 10;
        if (unit == 0 && digit != 0) return std::nullopt;
        value += digit * unit;
    }
    text.remove_prefix(digits);
    if (digits == 0) return std::nullopt;
    return std::chrono::nanoseconds{value};
}

} // namespace detail

// The years 0 to 9999 have a text that parse_timestamp reads back; others are written all the same.
template <class Duration>
std::string to_text(std::chrono::sys_time<Duration> time) {
    using namespace std::chrono;
    const auto day = floor<days>(time);
    const year_month_day date(day);
    const auto since_midnight = time - day;
    const auto whole = duration_cast<seconds>(since_midnight);
    const auto fraction = duration_cast<nanoseconds>(since_midnight - whole);
    const auto two = [](std::int64_t value) { return detail::padded(value, 2); };
    std::string text = detail::padded(static_cast<int>(date.year()), 4) + "-" +
                       two(static_cast<unsigned>(date.month())) + "-" + two(static_cast<unsigned>(date.day())) + "T" +
                       two(whole.count() / 3600) + ":" + two(whole.count() / 60 % 60) + ":" + two(whole.count() % 60);
    if (fraction != nanoseconds::zero()) {
        text += "." + detail::padded(fraction.count(), 9);
        text.erase(text.find_last_not_of('0') + 1);
    }
    return text + "Z";
}

// Nothing for a text that to_text would not write, for a day that does not exist, and for digits that Time cannot hold.
template <class Time>
constexpr std::optional<Time> parse_timestamp(std::string_view text) noexcept {
    using namespace std::chrono;
    using detail::take;
    using detail::take_digits;
    const int year_number = take_digits(text, 4);
    if (year_number < 0 || !take(text, '-')) return std::nullopt;
    const int month_number = take_digits(text, 2);
    if (month_number < 0 || !take(text, '-')) return std::nullopt;
    const int day_number = take_digits(text, 2);
    if (day_number < 0 || !take(text, 'T')) return std::nullopt;
    const int hour = take_digits(text, 2);
    if (hour < 0 || hour > 23 || !take(text, ':')) return std::nullopt;
    const int minute = take_digits(text, 2);
    if (minute < 0 || minute > 59 || !take(text, ':')) return std::nullopt;
    const int second = take_digits(text, 2);
    if (second < 0 || second > 59) return std::nullopt;
    nanoseconds fraction{};
    if (take(text, '.')) {
        const auto digits = detail::take_fraction(text);
        if (!digits) return std::nullopt;
        fraction = *digits;
    }
    if (text != "Z") return std::nullopt;

    const year_month_day date(year{year_number}, month{static_cast<unsigned>(month_number)},
                              day{static_cast<unsigned>(day_number)});
    if (!date.ok()) return std::nullopt;
    const auto whole = sys_days(date) + hours{hour} + minutes{minute} + seconds{second};
    using held = typename Time::duration;
    if constexpr (std::ratio_less_v<typename held::period, std::ratio<1>>) {
        const auto limit = duration_cast<seconds>(held::max());
        if (whole.time_since_epoch() >= limit || whole.time_since_epoch() <= -limit) return std::nullopt;
    }
    const auto part = duration_cast<held>(fraction);
    if (duration_cast<nanoseconds>(part) != fraction) return std::nullopt;
    const auto kept = time_point_cast<held>(whole);
    if (kept != whole) return std::nullopt;
    return kept + part;
}

} // namespace holdfast
