#include "schedule_overrides.hpp"

#include <algorithm>

#include <holdfast/nearest.hpp>
#include <holdfast/settings.hpp>

namespace holdfast::detail {

namespace {

std::string_view name_of(const recurring_job& each) {
    return each.when.name;
}

// Of the three ways to say when, the override's takes the declared one's place.
schedule_options changed(schedule_options when, const schedule_override& by) {
    if (by.cron || by.every || by.after_each) {
        when.cron = by.cron ? std::string_view(*by.cron) : std::string_view();
        when.every = by.every;
        when.after_each = by.after_each;
        if (!by.cron) when.time_zone = {};
    }
    if (by.time_zone) when.time_zone = *by.time_zone;
    return when;
}

} // namespace

bool schedule_override::says_the_same_as(const schedule_override& other) const {
    return schedule == other.schedule && std::ranges::is_permutation(written, other.written, same_text);
}

result<schedule_override> read_schedule_override(const config_table& table) {
    schedule_override read{.schedule = table.name, .where = table.where, .written = flatten(table)};
    settings values("[" + table.path + "]");
    for (const config_entry& each : read.written) values.set(each.key, each.value);
    try {
        read.enabled = values.flag("enabled", true);
        if (values.has("cron")) read.cron = values.text("cron", "");
        if (values.has("every")) read.every = values.time("every", {});
        if (values.has("after_each")) read.after_each = values.time("after_each", {});
        if (values.has("time_zone")) read.time_zone = values.text("time_zone", "");
    } catch (const failed& e) {
        return std::unexpected(e.what_failed());
    }
    if (auto unknown = values.first_unknown()) return std::unexpected(std::move(*unknown));
    return read;
}

result<void> apply_overrides(std::vector<recurring_job>& to, const std::vector<schedule_override>& overrides) {
    for (const schedule_override& each : overrides) {
        const auto found = std::ranges::find(to, std::string_view(each.schedule), &name_of);
        if (found == to.end()) {
            std::vector<std::string_view> known;
            for (const recurring_job& job : to) known.push_back(name_of(job));
            return fail(errc::configuration, each.where + ": there is no schedule \"" + each.schedule + "\"" +
                                                 did_you_mean(each.schedule, known));
        }
        found->when = changed(found->when, each);
        try {
            check(found->when);
        } catch (const invalid_schedule& e) {
            return fail(errc::configuration, each.where + ": [schedules." + each.schedule + "]: " + e.what());
        }
    }
    std::erase_if(to, [&](const recurring_job& job) {
        const auto by = std::ranges::find(overrides, name_of(job), &schedule_override::schedule);
        return by != overrides.end() && !by->enabled;
    });
    return {};
}

} // namespace holdfast::detail
