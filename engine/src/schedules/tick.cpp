// A slot has come.
#include "schedules/scheduler_state.hpp"

#include <algorithm>

#include "jobs/job_verdict.hpp"

namespace holdfast::detail {

namespace {

constexpr duration longest_put_off = std::chrono::minutes{10};

} // namespace

task<result<void>> scheduler_state::on_tick(self s, payload, job_context& context) {
    auto asking = s->with.store.now();
    const auto now = co_await std::move(asking);
    if (!now) co_return std::unexpected(now.error());
    const auto slot = slot_of(context);
    if (!slot) co_return fail(errc::invalid_argument, "a \"holdfast.tick\" without a readable schedule-slot header");
    definition* const d = s->find(context);
    if (d == nullptr) {
        s->leave_to_others(*slot, *now, s->how.forget_after, context);
        co_return result<void>{};
    }
    auto coming = s->come_up(*d, *slot, *now);
    co_return co_await std::move(coming);
}

task<result<void>> scheduler_state::come_up(definition& d, store_time slot, store_time now) {
    slot_decision decided = decide(d.when(), d.plan, slot, now);
    std::vector<new_job> along;
    const auto next = d.plan.next(std::max(slot, now));
    if (next) along.push_back(tick(d, *next));
    auto firing = fire(d, std::move(decided.fire), std::move(along));
    auto fired = co_await std::move(firing);
    if (!fired) co_return fired;
    note(d, [&](definition& of) {
        of.seen.missed += static_cast<std::uint64_t>(decided.missed);
        of.planned = next;
    });
    co_return result<void>{};
}

// The runs and what goes along in one write; to do it again changes nothing.
task<result<void>> scheduler_state::fire(definition& d, std::vector<store_time> slots, std::vector<new_job> along) {
    auto batch = runs(d, slots);
    if (!batch) co_return std::unexpected(std::move(batch.error()));
    const std::size_t count = batch->size();
    std::vector<identifier> wanted;
    for (const new_job& each : *batch) wanted.push_back(each.id);
    for (new_job& each : along) batch->push_back(std::move(each));
    if (batch->empty()) co_return result<void>{};
    auto enqueueing = store().enqueue(std::move(*batch));
    const auto answers = co_await std::move(enqueueing);
    if (!answers) co_return std::unexpected(answers.error());
    if (d.when().overlap == overlap::queue) co_return result<void>{}; // counted when they are let in
    note(d, [&](definition& of) {
        for (std::size_t i = 0; i < count && i < answers->size(); ++i) {
            if ((*answers)[i].id != wanted[i]) ++of.seen.skipped;
            else if ((*answers)[i].created) ++of.seen.fired;
            of.seen.last_run = (*answers)[i].id;
        }
    });
    co_return result<void>{};
}

// In a fleet that is being updated some nodes know it and some do not; those that do make the next tick by themselves,
// so dropping one loses no more than its own slot.
void scheduler_state::leave_to_others(store_time slot, store_time now, duration forget_after, job_context& context) {
    const duration age = now - slot;
    if (age < forget_after) {
        context.snooze(jittered(std::clamp(age / 8, how.unknown_delay, std::max(how.unknown_delay, longest_put_off))));
        return;
    }
    const std::string name(context.header(schedule_header::name).value_or("?"));
    with.log.warning("schedule \"" + job_verdict::clean_text(name) + "\": its slot of " + to_text(slot) +
                     " is dropped, for no node that claimed it in " + to_short_text(forget_after) +
                     " has that schedule with these times; nothing to do if it was removed or changed");
}

} // namespace holdfast::detail
