// What schedules write to the store.
#include "schedules/scheduler_state.hpp"

#include <algorithm>
#include <limits>

#include "schedules/schedule_ids.hpp"

namespace holdfast::detail {

namespace {

constexpr int first_in_queue = 1'000'000; // ticks are short, and others wait for them
// A run that left no trace would be taken for one that was never there, so runs are kept, whatever the store's default.
constexpr duration kept_at_least = std::chrono::minutes{10};
constexpr duration kept_by_default = std::chrono::hours{24};

std::string key_of(const definition& d) {
    return "schedule:" + d.scope;
}

new_job record(const definition& d, std::string_view kind, const identifier& id, store_time slot) {
    new_job made;
    made.id = id;
    made.what = {std::string(kind), 1, "text/plain", {}};
    made.queue = d.queue;
    made.priority = first_in_queue;
    made.max_attempts = max_job_attempts;
    made.max_crashes = std::numeric_limits<int>::max() / 2; // never their own fault
    made.keep_for = duration::zero();
    made.extra = {{std::string(schedule_header::name), std::string(d.when().name)},
                  {std::string(schedule_header::slot), to_text(slot)},
                  {std::string(tick_header::plan), d.plan.text()}};
    return made;
}

} // namespace

identifier definition::tick_id(store_time slot) const {
    return derived_id({scope, "tick", plan.text(), queue}, slot);
}
identifier definition::run_id(store_time slot) const {
    return derived_id({scope, "run"}, slot);
}
identifier definition::wait_id(store_time slot) const {
    return derived_id({scope, "wait"}, slot);
}
identifier definition::first_cycle_id() const {
    return derived_id({scope, "first cycle"}, store_time{});
}
identifier definition::cycle_run_id(const identifier& which, store_time slot) const {
    return derived_id({scope, "run", to_text(which)}, slot);
}

std::optional<store_time> slot_of(const job_context& context) {
    const auto text = context.header(schedule_header::slot);
    return text ? parse_timestamp<store_time>(*text) : std::nullopt;
}

new_job scheduler_state::tick(const definition& d, store_time slot) const {
    new_job made = record(d, tick_kind, d.tick_id(slot), slot);
    made.when = due::at(slot);
    return made;
}

// A new one each time: the key alone sees to it that there is one.
new_job scheduler_state::cycle(const definition& d, store_time slot, due when, std::optional<identifier> last_run) {
    std::string drawn;
    {
        const std::lock_guard lock(mutex);
        drawn = std::to_string(random.next());
    }
    new_job made = record(d, wait_kind, derived_id({d.scope, "cycle", drawn}, slot), slot);
    made.when = when;
    made.unique_key = key_of(d);
    if (last_run) made.extra.emplace(tick_header::last_run, to_text(*last_run));
    return made;
}

result<new_job> scheduler_state::run(const definition& d, const identifier& id, store_time slot) const {
    enqueue_options options;
    options.id = id;
    options.queue = d.queue;
    options.keep_for = std::max(d.job.type.keep_for.value_or(kept_by_default), kept_at_least);
    options.unique_key = d.when().overlap == overlap::concurrent ? d.job.unique_key : key_of(d);
    options.extra = {{std::string(schedule_header::name), std::string(d.when().name)},
                     {std::string(schedule_header::slot), to_text(slot)}};
    return with.client.make_record(d.job.type, d.job.restart, d.job.what, std::move(options));
}

// For overlap::queue one job that lets them in one after the other.
result<std::vector<new_job>> scheduler_state::runs(const definition& d, const std::vector<store_time>& slots) const {
    std::vector<new_job> all;
    if (slots.empty()) return all;
    if (d.when().overlap == overlap::queue) {
        all.push_back(record(d, wait_kind, d.wait_id(slots.back()), slots.back()));
        for (const store_time each : slots) all.back().what.body += to_text(each) + "\n";
        return all;
    }
    for (const store_time each : slots) {
        auto one = run(d, d.run_id(each), each);
        if (!one) return std::unexpected(std::move(one.error()));
        all.push_back(std::move(*one));
    }
    return all;
}

} // namespace holdfast::detail
