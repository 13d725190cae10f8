#include "slot_plan.hpp"

#include <algorithm>

namespace holdfast {

using namespace std::chrono;

result<slot_plan> slot_plan::make(const schedule_options& options, time_zones& zones) {
    slot_plan made;
    if (!options.cron.empty()) {
        made.cron_.emplace(options.cron);
        const auto zone = zones.find(options.time_zone);
        if (!zone) return std::unexpected(zone.error());
        made.zone_ = *zone;
        made.text_ =
            std::string(options.cron) + " " + std::string(options.time_zone.empty() ? "UTC" : options.time_zone);
    } else if (options.every) {
        made.every_ = *options.every;
        made.text_ = "every " + to_text(*options.every);
    } else if (options.after_each) {
        made.text_ = to_text(*options.after_each) + " after each";
    } else {
        made.text_ = "at start";
    }
    return made;
}

std::optional<store_time> slot_plan::next(store_time after) const {
    if (cron_) return next_cron(floor<seconds>(after));
    if (every_ <= duration::zero()) return std::nullopt;
    const auto step = duration_cast<microseconds>(every_);
    const auto gone = after.time_since_epoch() / step;
    return store_time((gone + 1) * step);
}

std::optional<sys_seconds> slot_plan::next_cron(sys_seconds after) const {
    zone_period period = zone_->period_at(after);
    wall_time from((after + period.offset).time_since_epoch());
    const auto on_wall = [](sys_seconds at, seconds offset) { return wall_time((at + offset).time_since_epoch()); };
    for (;;) {
        if (period.begin != sys_seconds::min() && !cron_->every_hour()) {
            // Wall times that the period before had already are not fired again.
            const seconds before = zone_->period_at(period.begin - seconds{1}).offset;
            if (before > period.offset) from = std::max(from, on_wall(period.begin, before) - seconds{1});
        }
        const auto found = cron_->next(from);
        if (!found) return std::nullopt;
        const sys_seconds at(found->time_since_epoch() - period.offset);
        if (at < period.end) return at;
        const sys_seconds change = period.end;
        const zone_period following = zone_->period_at(change);
        // It is left out by the change, unless the hour after stands in for it: every hour has its slots.
        const bool evenly = cron_->every_hour() && (following.offset - period.offset) % hours{1} == seconds::zero();
        if (!evenly && *found < on_wall(change, following.offset)) return change;
        from = on_wall(change, following.offset) - seconds{1};
        period = following;
    }
}

// Looks at ever longer stretches before `to`, so that a long absence costs no more than a short one.
std::vector<store_time> slot_plan::latest(store_time from, store_time to, int most) const {
    std::vector<store_time> found;
    if (!has_slots() || to < from) return found;
    const store_time before = from - microseconds{1};
    for (microseconds stretch = minutes{1};; stretch *= 4) {
        const store_time begin = to - before > stretch ? to - stretch : before;
        found.clear();
        for (auto at = next(begin); at && *at <= to; at = next(*at)) found.push_back(*at);
        if (begin == before || found.size() >= static_cast<std::size_t>(most)) break;
    }
    if (found.size() > static_cast<std::size_t>(most)) found.erase(found.begin(), found.end() - most);
    return found;
}

slot_decision decide(const schedule_options& rules, const slot_plan& plan, store_time slot, store_time now) {
    slot_decision decided;
    const auto due = plan.latest(slot, std::max(slot, now), rules.max_catch_up);
    const auto in_time = std::ranges::find_if(
        due, [&](store_time each) { return now - each <= duration_cast<microseconds>(rules.misfire_after); });
    switch (rules.misfire) {
    case misfire::catch_up: decided.fire = due; break;
    case misfire::skip: decided.fire.assign(in_time, due.end()); break;
    case misfire::fire_once:
        // The latest, so that every late slot comes to the same one.
        decided.fire.assign(in_time == due.end() && !due.empty() ? due.end() - 1 : in_time, due.end());
        break;
    }
    decided.missed = static_cast<int>(due.size() - decided.fire.size());
    return decided;
}

} // namespace holdfast
