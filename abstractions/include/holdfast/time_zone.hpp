// Where clocks on the wall differ from UTC, and since when. Only what a schedule needs: which offset holds at a moment,
// from when and until when.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include <holdfast/error.hpp>
#include <holdfast/timestamp.hpp>

namespace holdfast {

struct zone_period {
    std::chrono::sys_seconds begin = std::chrono::sys_seconds::min();
    std::chrono::sys_seconds end = std::chrono::sys_seconds::max(); // first moment after it
    std::chrono::seconds offset{};                                  // wall clock = UTC + offset

    friend bool operator==(const zone_period&, const zone_period&) = default;
};

// Any thread.
class time_zone {
public:
    virtual ~time_zone() = default;
    // The period that holds `at`.
    virtual zone_period period_at(std::chrono::sys_seconds at) const noexcept = 0;

protected:
    time_zone() = default;
    time_zone(const time_zone&) = delete;
    time_zone& operator=(const time_zone&) = delete;
};

// Finds zones by name. Any thread.
class time_zones {
public:
    virtual ~time_zones() = default;
    // Lives as long as this. errc::not_found: the message says what was looked for and where.
    virtual result<const time_zone*> find(std::string_view name) = 0;

protected:
    time_zones() = default;
    time_zones(const time_zones&) = delete;
    time_zones& operator=(const time_zones&) = delete;
};

// The same offset for ever.
class fixed_zone final : public time_zone {
public:
    explicit fixed_zone(std::chrono::seconds offset) noexcept : offset_(offset) {}
    zone_period period_at(std::chrono::sys_seconds) const noexcept override { return {.offset = offset_}; }

private:
    std::chrono::seconds offset_;
};

// The offset that "", "UTC", "Z", "+02:00" or "-0330" says; nothing for other names.
constexpr std::optional<std::chrono::seconds> parse_fixed_zone(std::string_view name) noexcept {
    using detail::take;
    using detail::take_digits;
    if (name.empty() || name == "UTC" || name == "Etc/UTC" || name == "Z") return std::chrono::seconds{0};
    const bool minus = name.front() == '-';
    if (!minus && name.front() != '+') return std::nullopt;
    name.remove_prefix(1);
    const int hours = take_digits(name, 2);
    take(name, ':');
    const int minutes = name.empty() ? 0 : take_digits(name, 2);
    if (hours < 0 || hours > 23 || minutes < 0 || minutes > 59 || !name.empty()) return std::nullopt;
    const std::chrono::seconds offset = std::chrono::hours{hours} + std::chrono::minutes{minutes};
    return minus ? -offset : offset;
}

} // namespace holdfast
