// A time zone as a rule, in the form of POSIX: "CET-1CEST,M3.5.0,M10.5.0/3". Zoneinfo files end with one, for all the
// years that they do not list.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include <holdfast/time_zone.hpp>

namespace holdfast {

class zone_rule final {
public:
    // Nothing for a text that is no such rule.
    static std::optional<zone_rule> parse(std::string_view text);

    zone_period period_at(std::chrono::sys_seconds at) const noexcept;

private:
    // A day of the year, and a time on the wall clock that holds until then; the time may lie outside the day.
    struct change {
        enum class kind : unsigned char { nth_weekday, day_without_leap, day_with_leap } how = kind::nth_weekday;
        int month = 1;
        int week = 1; // 5 = the last
        int day = 0;  // of the week, or of the year
        std::chrono::seconds time = std::chrono::hours{2};

        std::chrono::seconds in_year(std::chrono::year y) const noexcept; // since 1970 on the wall
    };

    static bool take_name(std::string_view& text) noexcept;
    static std::optional<int> take_number(std::string_view& text) noexcept;
    static std::optional<std::chrono::seconds> take_time(std::string_view& text) noexcept;
    static std::optional<change> take_change(std::string_view& text) noexcept;

    std::chrono::seconds standard_{};
    std::chrono::seconds summer_{};
    std::optional<std::pair<change, change>> summer_time_; // its begin and its end
};

} // namespace holdfast
