// What a scheduler, its loop and its kinds share.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <holdfast/job_scheduler.hpp>
#include <holdfast/task_scope.hpp>

#include "jobs/wake_signal.hpp"
#include "schedules/slot_plan.hpp"

namespace holdfast::detail {

// What ticks carry, beside schedule_header.
namespace tick_header {
inline constexpr std::string_view plan = "schedule-plan";         // slot_plan::text(): of another one, it does not fire
inline constexpr std::string_view last_run = "schedule-last-run"; // of a fixed delay: its run before
} // namespace tick_header

// The run of a fixed delay has ended; what looked after it is about to end, and then the next may be put in its place.
struct handover {
    identifier from;
    store_time due;
    identifier last_run;
    time_point since;
};

struct definition {
    recurring_job job;
    slot_plan plan;
    std::string scope; // in the fleet: the name, and the node where each fires for itself
    std::string queue;

    // Under the state's lock:
    std::optional<store_time> planned{}; // the slot of the latest tick that is known to have been there
    bool start_is_due = false;
    std::optional<identifier> cycle{}; // fixed delay: what holds the chain
    std::optional<holdfast::detail::handover> handover{};
    schedule_status seen{};

    const schedule_options& when() const noexcept { return job.when; }
    bool is_cycle() const noexcept { return job.when.after_each.has_value(); }

    // Ids that follow from the slot.
    identifier tick_id(store_time slot) const;
    identifier run_id(store_time slot) const;
    identifier wait_id(store_time slot) const;
    identifier first_cycle_id() const;
    identifier cycle_run_id(const identifier& cycle, store_time slot) const;
};

struct scheduler_state : std::enable_shared_from_this<scheduler_state> {
    using self = std::shared_ptr<scheduler_state>;

    scheduler_state(scheduler_parts parts, scheduler_options options, std::uint64_t seed);

    result<void> add(recurring_job which);
    definition* find(const job_context& of); // null: not known here
    job_store& store() { return with.client.store(); }
    duration jittered(duration d);
    template <class Change>
    void note(definition& d, Change change) {
        const std::lock_guard lock(mutex);
        change(d);
    }

    // records.cpp: what is written.
    new_job tick(const definition& d, store_time slot) const;
    new_job cycle(const definition& d, store_time slot, due when, std::optional<identifier> last_run);
    result<new_job> run(const definition& d, const identifier& id, store_time slot) const;
    result<std::vector<new_job>> runs(const definition& d, const std::vector<store_time>& slots) const;

    // tick.cpp and wait.cpp: the handlers.
    static task<result<void>> on_tick(self s, payload what, job_context& context);
    static task<result<void>> on_wait(self s, payload what, job_context& context);
    void leave_to_others(store_time slot, store_time now, duration forget_after, job_context& context);
    task<result<void>> come_up(definition& d, store_time slot, store_time now);
    task<result<void>> fire(definition& d, std::vector<store_time> slots, std::vector<new_job> along);
    task<result<void>> wait_in_line(definition& d, std::string slots, store_time now, job_context& context);
    task<result<void>> look_after(definition& d, store_time slot, store_time now, job_context& context);
    // Enqueues it unless another run of the schedule has not ended. True: it is there.
    // Gives the run that there is now: this one, or another one of the schedule that goes on.
    task<result<identifier>> try_run(definition& d, identifier id, store_time slot);
    task<duration> age_of(identifier run, store_time now);

    // ensure.cpp: the loop.
    static task<void> keep_up(self s);
    task<result<void>> ensure();
    task<result<void>> fire_start(definition& d, store_time now);
    task<result<void>> begin_cycle(definition& d, store_time now);
    task<result<bool>> needs_tick(definition& d, store_time now);
    task<std::optional<duration>> hand_over(); // when to try again; nothing: all is handed over
    void tell(const result<void>& ended);

    // inspect.cpp
    task<result<schedule_status>> inspect(definition& d, store_time now);
    task<result<schedule_status>> inspect_slots(const definition& d, store_time now, schedule_status status);
    task<result<schedule_status>> inspect_cycle(definition& d, store_time now, schedule_status status);
    task<result<std::optional<job_view>>> look(identifier id);
    task<result<std::optional<job_view>>> find_cycle(definition& d);

    scheduler_parts with;
    const scheduler_options how;
    std::map<std::string, definition, std::less<>> definitions; // does not change after the start

    mutable std::mutex mutex;
    random_series random;
    bool started = false;
    bool stopping = false;
    bool in_trouble = false; // the store's; told once
    wake_signal waker;
    task_scope loop;
};

std::optional<store_time> slot_of(const job_context& context);

} // namespace holdfast::detail
