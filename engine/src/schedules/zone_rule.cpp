#include "zone_rule.hpp"

#include <algorithm>
#include <array>

#include <holdfast/timestamp.hpp>

namespace holdfast {

namespace {

using namespace std::chrono;

bool is_letter(char c) noexcept {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

} // namespace

bool zone_rule::take_name(std::string_view& text) noexcept {
    if (text.starts_with('<')) {
        const auto end = text.find('>');
        if (end == std::string_view::npos) return false;
        text.remove_prefix(end + 1);
        return true;
    }
    std::size_t letters = 0;
    while (letters < text.size() && is_letter(text[letters])) ++letters;
    text.remove_prefix(letters);
    return letters >= 3;
}

std::optional<int> zone_rule::take_number(std::string_view& text) noexcept {
    int value = -1;
    for (std::size_t digits = 0; digits < 3; ++digits) {
        const int digit = detail::take_digits(text, 1);
        if (digit < 0) break;
        value = std::max(value, 0) * 10 + digit;
    }
    if (value < 0) return std::nullopt;
    return value;
}

// [+-]hh[:mm[:ss]]
std::optional<seconds> zone_rule::take_time(std::string_view& text) noexcept {
    const bool minus = detail::take(text, '-');
    if (!minus) detail::take(text, '+');
    const auto whole = take_number(text);
    if (!whole || *whole > 167) return std::nullopt;
    seconds time = hours{*whole};
    for (const seconds unit : {seconds{60}, seconds{1}}) {
        if (!detail::take(text, ':')) break;
        const auto part = take_number(text);
        if (!part || *part > 59) return std::nullopt;
        time += *part * unit;
    }
    return minus ? -time : time;
}

// Mm.w.d, Jn or n, and optionally a time.
std::optional<zone_rule::change> zone_rule::take_change(std::string_view& text) noexcept {
    change made;
    if (!detail::take(text, ',')) return std::nullopt;
    if (detail::take(text, 'M')) {
        const auto month = take_number(text);
        if (!month || *month < 1 || *month > 12 || !detail::take(text, '.')) return std::nullopt;
        const auto week = take_number(text);
        if (!week || *week < 1 || *week > 5 || !detail::take(text, '.')) return std::nullopt;
        const auto day = take_number(text);
        if (!day || *day > 6) return std::nullopt;
        made.month = *month;
        made.week = *week;
        made.day = *day;
    } else {
        made.how = detail::take(text, 'J') ? change::kind::day_without_leap : change::kind::day_with_leap;
        const auto day = take_number(text);
        if (!day || *day > 365) return std::nullopt;
        made.day = *day;
    }
    if (detail::take(text, '/')) {
        const auto time = take_time(text);
        if (!time) return std::nullopt;
        made.time = *time;
    }
    return made;
}

std::optional<zone_rule> zone_rule::parse(std::string_view text) {
    zone_rule made;
    if (!take_name(text)) return std::nullopt;
    const auto west = take_time(text); // counted to the west
    if (!west) return std::nullopt;
    made.standard_ = -*west;
    if (text.empty()) return made;
    if (!take_name(text)) return std::nullopt;
    made.summer_ = made.standard_ + hours{1};
    if (!text.empty() && text.front() != ',') {
        const auto summer_west = take_time(text);
        if (!summer_west) return std::nullopt;
        made.summer_ = -*summer_west;
    }
    const auto begin = take_change(text);
    const auto end = begin ? take_change(text) : std::nullopt;
    if (!end || !text.empty()) return std::nullopt;
    made.summer_time_.emplace(*begin, *end);
    return made;
}

seconds zone_rule::change::in_year(year y) const noexcept {
    sys_days on = sys_days(y / January / 1);
    switch (how) {
    case kind::day_with_leap: on += days{day}; break;
    case kind::day_without_leap: on += days{day - 1 + (y.is_leap() && day >= 60 ? 1 : 0)}; break;
    case kind::nth_weekday: {
        const auto m = std::chrono::month{static_cast<unsigned>(month)};
        const weekday d{static_cast<unsigned>(day)};
        on = week == 5 ? sys_days(y / m / d[last]) : sys_days(y / m / d[static_cast<unsigned>(week)]);
        break;
    }
    }
    return on.time_since_epoch() + time;
}

zone_period zone_rule::period_at(sys_seconds at) const noexcept {
    if (!summer_time_) return {.offset = standard_};
    const year middle = year_month_day(floor<days>(at)).year();
    struct moment {
        sys_seconds at;
        seconds offset; // from then on
    };
    std::array<moment, 6> changes{};
    std::size_t count = 0;
    for (const int step : {-1, 0, 1}) {
        const year y = middle + years{step};
        changes[count++] = {sys_seconds(summer_time_->first.in_year(y) - standard_), summer_};
        changes[count++] = {sys_seconds(summer_time_->second.in_year(y) - summer_), standard_};
    }
    std::ranges::sort(changes, {}, &moment::at);
    zone_period found{.end = changes.front().at, .offset = changes[1].offset};
    for (std::size_t i = 0; i < changes.size() && changes[i].at <= at; ++i)
        found = {.begin = changes[i].at,
                 .end = i + 1 < changes.size() ? changes[i + 1].at : sys_seconds::max(),
                 .offset = changes[i].offset};
    return found;
}

} // namespace holdfast
