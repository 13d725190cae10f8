// [schedules.NAME]: what the configuration says differently from the program.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <holdfast/error.hpp>
#include <holdfast/schedule.hpp>

#include "toml_document.hpp"

namespace holdfast::detail {

struct schedule_override {
    std::string schedule;
    std::string where;
    bool enabled = true; // false: this process neither fires it nor keeps its chain
    std::optional<std::string> cron{};
    std::optional<duration> every{};
    std::optional<duration> after_each{};
    std::optional<std::string> time_zone{};
    std::vector<config_entry> written{}; // to tell a change

    bool says_the_same_as(const schedule_override& other) const;
};

result<schedule_override> read_schedule_override(const config_table& table);

// Puts them in place and drops what is not enabled; the texts of `overrides` must stay. errc::configuration: a schedule
// that nobody declared, or one that breaks a rule now.
result<void> apply_overrides(std::vector<recurring_job>& to, const std::vector<schedule_override>& overrides);

} // namespace holdfast::detail
