// The slots of a schedule: which moments it names. Pure; the store's clock says how far it got.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <holdfast/lease.hpp>
#include <holdfast/schedule.hpp>
#include <holdfast/time_zone.hpp>

namespace holdfast {

// A wall time that a clock change leaves out stands for the moment of the change; one that comes twice for its first,
// unless the schedule names every hour: that one goes on through both.
class slot_plan {
public:
    // The options were checked. An error is the zone's. The zone must outlive the plan.
    static result<slot_plan> make(const schedule_options& options, time_zones& zones);

    // False: only a start, or the end of a run, fires it.
    bool has_slots() const noexcept { return cron_.has_value() || every_ > duration::zero(); }
    std::optional<store_time> next(store_time after) const;
    // The last `most` of those from `from` to `to`, both included; oldest first.
    std::vector<store_time> latest(store_time from, store_time to, int most) const;
    // "0 3 * * * Europe/Berlin", "every 5m": differs when the slots do.
    const std::string& text() const noexcept { return text_; }

private:
    std::optional<std::chrono::sys_seconds> next_cron(std::chrono::sys_seconds after) const;

    std::optional<cron_expression> cron_;
    const time_zone* zone_ = nullptr;
    duration every_{};
    std::string text_;
};

// What a slot that comes up at `now` fires: itself, and those that came after it meanwhile.
struct slot_decision {
    std::vector<store_time> fire; // oldest first
    int missed = 0;               // of those that were looked at, not fired
};
slot_decision decide(const schedule_options& rules, const slot_plan& plan, store_time slot, store_time now);

} // namespace holdfast
