// Time as Holdfast sees it: nanosecond durations, points on a runtime's steady clock, and both as text.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast {

using duration = std::chrono::nanoseconds;

// A point on the clock of one runtime. Points of different runtimes, or of different processes, do not compare.
using time_point = std::chrono::time_point<std::chrono::steady_clock, duration>;

// "Never": an infinite timeout, a deadline that does not exist.
inline constexpr duration forever = duration::max();
inline constexpr time_point never = time_point::max();

// t + d, saturating at `never` instead of wrapping. d must not be negative.
constexpr time_point saturating_add(time_point t, duration d) noexcept {
    return d >= never - t ? never : t + d;
}

namespace detail {

struct duration_unit {
    std::string_view suffix;
    std::int64_t nanoseconds;
};

inline constexpr duration_unit duration_units[] = {
    {"d", 86'400'000'000'000},
    {"h", 3'600'000'000'000},
    {"m", 60'000'000'000},
    {"s", 1'000'000'000},
    {"ms", 1'000'000},
    {"us", 1'000},
    {"ns", 1},
};

constexpr const duration_unit* find_unit(std::string_view suffix) noexcept {
    for (const auto& unit : duration_units)
        if (unit.suffix == suffix) return &unit;
    return nullptr;
}

} // namespace detail

// Reads "250ms", "10s", "5m", "6h", "1d", "1h30m" and "0". Units: d h m s ms us ns, whole numbers, no spaces, no sign.
// Gives nothing for any other text, and for a value that does not fit.
constexpr std::optional<duration> parse_duration(std::string_view text) noexcept {
    constexpr auto limit = std::numeric_limits<std::int64_t>::max();
    if (text == "0") return duration::zero();
    if (text.empty()) return std::nullopt;
    std::int64_t total = 0;
    while (!text.empty()) {
        std::size_t digits = 0;
        std::int64_t number = 0;
        for (; digits < text.size() && text[digits] >= '0' && text[digits] <= '9'; ++digits) {
            const int digit = text[digits] - '0';
            if (number > (limit - digit) / 10) return std::nullopt;
            number = number * 10 + digit;
        }
        if (digits == 0) return std::nullopt;
        text.remove_prefix(digits);
        std::size_t letters = 0;
        while (letters < text.size() && text[letters] >= 'a' && text[letters] <= 'z') ++letters;
        const auto* unit = detail::find_unit(text.substr(0, letters));
        if (unit == nullptr || number > (limit - total) / unit->nanoseconds) return std::nullopt;
        total += number * unit->nanoseconds;
        text.remove_prefix(letters);
    }
    return duration{total};
}

// The text that parse_duration would read back: "1m30s", "250ms", "0". A negative value gets a leading '-'.
inline std::string to_text(duration d) {
    if (d == forever) return "forever";
    if (d == duration::zero()) return "0";
    std::string text;
    auto rest = static_cast<std::uint64_t>(d.count());
    if (d < duration::zero()) {
        text = "-";
        rest = 0 - rest;
    }
    for (const auto& unit : detail::duration_units) {
        const auto size = static_cast<std::uint64_t>(unit.nanoseconds);
        if (const auto count = rest / size; count != 0) text += std::to_string(count) + std::string(unit.suffix);
        rest %= size;
    }
    return text;
}

// For people: at most three significant digits, one unit. "1.5s", "250ms", "12.3us".
inline std::string to_short_text(duration d) {
    if (d == forever) return "forever";
    if (d < duration::zero()) return "-" + to_short_text(d == duration::min() ? duration::max() : -d);
    if (d == duration::zero()) return "0";
    for (const auto& unit : detail::duration_units) {
        if (d.count() < unit.nanoseconds) continue;
        const auto whole = d.count() / unit.nanoseconds;
        std::string text = std::to_string(whole);
        if (whole < 100 && unit.nanoseconds >= 1000) {
            const auto per_mille = d.count() % unit.nanoseconds / (unit.nanoseconds / 1000);
            const auto fraction = whole < 10 ? per_mille / 10 : per_mille / 100;
            if (fraction != 0) {
                std::string digits = std::to_string(fraction);
                if (whole < 10 && digits.size() < 2) digits.insert(0, 1, '0');
                while (digits.back() == '0') digits.pop_back();
                text += "." + digits;
            }
        }
        return text + std::string(unit.suffix);
    }
    return "0";
}

} // namespace holdfast
