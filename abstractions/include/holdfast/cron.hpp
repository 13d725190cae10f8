// Cron expressions, read by the compiler or at run time: "minute hour day-of-month month day-of-week", or six fields with
// the second in front. Lists, ranges, steps, JAN to DEC, SUN to SAT (0 and 7 are Sunday), "?" for "*", "L" for the last
// day of the month, and @yearly @monthly @weekly @daily @hourly. Pure wall-clock arithmetic: zones are elsewhere.
#pragma once

#include <array>
#include <bit>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <holdfast/error.hpp>

namespace holdfast {

// A moment on a clock on the wall, wherever that hangs.
using wall_time = std::chrono::local_seconds;

class invalid_schedule : public failed {
public:
    explicit invalid_schedule(const char* why) : failed({errc::invalid_argument, why, std::nullopt}) {}
};

class cron_expression {
public:
    // Throws invalid_schedule; in a constant expression that is a compile error which quotes the sentence.
    constexpr explicit cron_expression(std::string_view text) { read(nickname(text)); }

    // The same as a value, with the text in the message.
    static result<cron_expression> parse(std::string_view text) {
        try {
            return cron_expression(text);
        } catch (const invalid_schedule& e) {
            return fail(errc::invalid_argument, "\"" + std::string(text) + "\": " + e.what());
        }
    }

    constexpr bool matches(wall_time t) const noexcept {
        const auto day = std::chrono::floor<std::chrono::days>(t);
        return on_day(day) && time_from(t - day) == t - day;
    }
    // The first after `t`; nothing when there is none within fifty years.
    constexpr std::optional<wall_time> next(wall_time t) const noexcept {
        using namespace std::chrono;
        const wall_time from = t + seconds{1};
        auto day = floor<days>(from);
        if (on_day(day))
            if (const auto time = time_from(from - day)) return day + *time;
        for (const auto last = day + days{50 * 366}; day <= last;) {
            const year_month_day date(day);
            if (!has(months_, static_cast<unsigned>(date.month()))) {
                day = local_days(date.year() / date.month() / 1 + months{1});
                if (on_day(day)) return day + *time_from(seconds{0});
                continue;
            }
            day += days{1};
            if (on_day(day)) return day + *time_from(seconds{0});
        }
        return std::nullopt;
    }
    // Whether it names every hour: such a one goes on through an hour that a clock change repeats.
    constexpr bool every_hour() const noexcept { return hours_ == (1u << 24) - 1; }

private:
    enum class field : unsigned char { second, minute, hour, day, month, weekday };

    static constexpr std::array<std::string_view, 12> month_names = {"JAN", "FEB", "MAR", "APR", "MAY", "JUN",
                                                                     "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"};
    static constexpr std::array<std::string_view, 7> weekday_names = {"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"};

    static constexpr std::string_view nickname(std::string_view text) {
        if (!text.starts_with('@')) return text;
        if (text == "@hourly") return "0 * * * *";
        if (text == "@daily" || text == "@midnight") return "0 0 * * *";
        if (text == "@weekly") return "0 0 * * 0";
        if (text == "@monthly") return "0 0 1 * *";
        if (text == "@yearly" || text == "@annually") return "0 0 1 1 *";
        throw invalid_schedule("the cron words are @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually");
    }

    constexpr void read(std::string_view text) {
        std::array<std::string_view, 6> parts{};
        std::size_t count = 0;
        while (true) {
            while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
            if (text.empty()) break;
            if (count == parts.size()) throw invalid_schedule("a cron expression has five fields, or six with seconds");
            std::size_t end = 0;
            while (end < text.size() && !is_blank(text[end])) ++end;
            parts[count++] = text.substr(0, end);
            text.remove_prefix(end);
        }
        if (count < 5) throw invalid_schedule("a cron expression has five fields, or six with seconds");
        const std::span<const std::string_view> from(parts.begin() + (count == 6 ? 1 : 0), 5);
        seconds_ = count == 6 ? read_field(field::second, parts[0]) : 1;
        minutes_ = read_field(field::minute, from[0]);
        hours_ = read_field(field::hour, from[1]);
        days_ = read_field(field::day, from[2]);
        months_ = read_field(field::month, from[3]);
        weekdays_ = read_field(field::weekday, from[4]);
        if (has(weekdays_, 7)) weekdays_ |= 1;
        either_day_ = !is_star(from[2]) && !is_star(from[4]);
        check_days(is_star(from[4]));
    }

    constexpr std::uint64_t read_field(field f, std::string_view text) {
        std::uint64_t all = 0;
        while (true) {
            const auto comma = text.find(',');
            all |= read_item(f, text.substr(0, comma));
            if (comma == std::string_view::npos) return all;
            text.remove_prefix(comma + 1);
        }
    }
    constexpr std::uint64_t read_item(field f, std::string_view text) {
        if (f == field::day && is_last(text)) {
            last_day_ = true;
            return 0;
        }
        unsigned step = 1;
        const auto slash = text.find('/');
        if (slash != std::string_view::npos) {
            step = read_number(text.substr(slash + 1));
            if (step == 0) throw invalid_schedule("a step in a cron expression is 1 or more");
            text = text.substr(0, slash);
        }
        unsigned low = lowest(f);
        unsigned high = highest(f);
        if (!is_star(text)) {
            const auto dash = text.find('-');
            low = read_value(f, text.substr(0, dash));
            if (dash != std::string_view::npos) {
                high = read_value(f, text.substr(dash + 1));
                if (f == field::weekday && high == 0 && low > 0) high = 7; // FRI-SUN
            } else if (slash == std::string_view::npos) {
                high = low;
            }
        } else if (text.size() != 1) {
            throw invalid_schedule("\"*\" in a cron expression stands alone or before a step: */5");
        }
        if (low > high) throw invalid_schedule("a range in a cron expression goes from low to high");
        std::uint64_t bits = 0;
        for (unsigned value = low; value <= high; value += step) bits |= std::uint64_t{1} << value;
        return bits;
    }
    static constexpr unsigned read_value(field f, std::string_view text) {
        unsigned value = 0;
        if (const auto named = find_name(f, text)) value = *named;
        else value = read_number(text);
        if (value >= lowest(f) && value <= highest(f)) return value;
        switch (f) {
        case field::second: throw invalid_schedule("a cron second is 0 to 59");
        case field::minute: throw invalid_schedule("a cron minute is 0 to 59");
        case field::hour: throw invalid_schedule("a cron hour is 0 to 23");
        case field::day: throw invalid_schedule("a cron day of the month is 1 to 31, or L for the last");
        case field::month: throw invalid_schedule("a cron month is 1 to 12 or JAN to DEC");
        case field::weekday: break;
        }
        throw invalid_schedule("a cron day of the week is 0 to 7 or SUN to SAT");
    }
    static constexpr unsigned read_number(std::string_view text) {
        unsigned value = 0;
        for (const char c : text) {
            if (c < '0' || c > '9' || value > 999)
                throw invalid_schedule("a cron expression has something that is neither a number nor a known name");
            value = value * 10 + static_cast<unsigned>(c - '0');
        }
        if (text.empty()) throw invalid_schedule("a number is missing in a cron expression");
        return value;
    }
    static constexpr std::optional<unsigned> find_name(field f, std::string_view text) noexcept {
        const auto find = [&](auto& names, unsigned first) -> std::optional<unsigned> {
            for (unsigned i = 0; i < names.size(); ++i)
                if (same_letters(names[i], text)) return first + i;
            return std::nullopt;
        };
        if (f == field::month) return find(month_names, 1);
        if (f == field::weekday) return find(weekday_names, 0);
        return std::nullopt;
    }
    static constexpr bool same_letters(std::string_view upper, std::string_view text) noexcept {
        if (upper.size() != text.size()) return false;
        for (std::size_t i = 0; i < text.size(); ++i) {
            const char c = text[i] >= 'a' && text[i] <= 'z' ? static_cast<char>(text[i] - 'a' + 'A') : text[i];
            if (c != upper[i]) return false;
        }
        return true;
    }
    // 30 February would wait for ever.
    constexpr void check_days(bool any_weekday) const {
        if (!any_weekday || last_day_) return;
        constexpr std::array<unsigned, 13> longest = {0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
        const auto first = static_cast<unsigned>(std::countr_zero(days_));
        for (unsigned month = 1; month <= 12; ++month)
            if (has(months_, month) && first <= longest[month]) return;
        throw invalid_schedule("no month that the cron expression names has that day");
    }

    static constexpr bool is_blank(char c) noexcept { return c == ' ' || c == '\t'; }
    static constexpr bool is_star(std::string_view text) noexcept {
        return text.starts_with('*') || text.starts_with('?');
    }
    static constexpr bool is_last(std::string_view text) noexcept { return text == "L" || text == "l"; }
    static constexpr unsigned lowest(field f) noexcept { return f == field::day || f == field::month ? 1 : 0; }
    static constexpr unsigned highest(field f) noexcept {
        switch (f) {
        case field::hour: return 23;
        case field::day: return 31;
        case field::month: return 12;
        case field::weekday: return 7;
        default: return 59;
        }
    }
    static constexpr bool has(std::uint64_t bits, unsigned which) noexcept { return ((bits >> which) & 1) != 0; }
    static constexpr std::optional<unsigned> bit_from(std::uint64_t bits, unsigned from) noexcept {
        const std::uint64_t left = from > 63 ? 0 : bits >> from << from;
        if (left == 0) return std::nullopt;
        return static_cast<unsigned>(std::countr_zero(left));
    }

    constexpr bool on_day(std::chrono::local_days day) const noexcept {
        using namespace std::chrono;
        const year_month_day date(day);
        if (!has(months_, static_cast<unsigned>(date.month()))) return false;
        const bool by_date = has(days_, static_cast<unsigned>(date.day())) ||
                             (last_day_ && date == year_month_day(date.year() / date.month() / last));
        const bool by_weekday = has(weekdays_, weekday(day).c_encoding());
        return either_day_ ? by_date || by_weekday : by_date && by_weekday;
    }
    // The first time of day from `t` on.
    constexpr std::optional<std::chrono::seconds> time_from(std::chrono::seconds t) const noexcept {
        const auto total = static_cast<unsigned>(t.count());
        unsigned hour = total / 3600;
        unsigned minute = total / 60 % 60;
        unsigned second = total % 60;
        const auto first_second = bit_from(seconds_, second);
        if (!first_second) ++minute;
        second = first_second.value_or(*bit_from(seconds_, 0));
        const auto first_minute = bit_from(minutes_, minute);
        if (!first_minute) ++hour;
        if (first_minute != minute) second = *bit_from(seconds_, 0);
        minute = first_minute.value_or(*bit_from(minutes_, 0));
        const auto first_hour = bit_from(hours_, hour);
        if (!first_hour) return std::nullopt;
        if (*first_hour != hour) {
            minute = *bit_from(minutes_, 0);
            second = *bit_from(seconds_, 0);
        }
        return std::chrono::seconds{*first_hour * 3600 + minute * 60 + second};
    }

    std::uint64_t seconds_ = 1; // a bit for each value
    std::uint64_t minutes_ = 0;
    std::uint64_t hours_ = 0;
    std::uint64_t days_ = 0;
    std::uint64_t months_ = 0;
    std::uint64_t weekdays_ = 0;
    bool last_day_ = false;
    bool either_day_ = false; // both days are given: one of them is enough
};

} // namespace holdfast
