// Looks after runs that others wait for: of overlap::queue, and of a fixed delay.
#include "schedules/scheduler_state.hpp"

#include <algorithm>
#include <string_view>

namespace holdfast::detail {

namespace {

constexpr duration soon = std::chrono::milliseconds{100};
constexpr duration longest_look_away = std::chrono::minutes{1};
constexpr duration forget_waits_after = std::chrono::hours{24}; // a slot may have waited in line for long

// How long to look away from what has been going on for `age`: an eighth of that, so that the number of looks grows with
// its logarithm only.
duration look_away(duration age, duration most) {
    return std::clamp(age / 8, soon, std::max(soon, most));
}

enum class run_is : unsigned char { unknown, open, ended };

struct run_seen {
    run_is state = run_is::unknown;
    store_time created{};
    std::optional<store_time> ended{};
};

run_seen seen(const job_lookup& found) {
    if (const auto* absent = std::get_if<job_absence>(&found))
        return {*absent == job_absence::expired ? run_is::ended : run_is::unknown, {}, {}};
    const auto& view = std::get<job_view>(found);
    return {is_final(view.state) ? run_is::ended : run_is::open, view.created, view.ended};
}

} // namespace

task<result<void>> scheduler_state::on_wait(self s, payload what, job_context& context) {
    auto asking = s->with.store.now();
    const auto now = co_await std::move(asking);
    if (!now) co_return std::unexpected(now.error());
    const auto slot = slot_of(context);
    if (!slot) co_return fail(errc::invalid_argument, "a \"holdfast.wait\" without a readable schedule-slot header");
    definition* const d = s->find(context);
    if (d == nullptr) {
        s->leave_to_others(*slot, *now, std::max(s->how.forget_after, forget_waits_after), context);
        co_return result<void>{};
    }
    auto waiting = d->is_cycle() ? s->look_after(*d, *slot, *now, context)
                                 : s->wait_in_line(*d, std::move(what.body), *now, context);
    co_return co_await std::move(waiting);
}

task<result<identifier>> scheduler_state::try_run(definition& d, identifier id, store_time slot) {
    auto one = run(d, id, slot);
    if (!one) co_return std::unexpected(std::move(one.error()));
    std::vector<new_job> batch;
    batch.push_back(std::move(*one));
    auto enqueueing = store().enqueue(std::move(batch));
    const auto answers = co_await std::move(enqueueing);
    if (!answers) co_return std::unexpected(answers.error());
    const enqueued answer = answers->front();
    if (answer.id != id) co_return answer.id;
    note(d, [&](definition& of) {
        if (answer.created) ++of.seen.fired;
        of.seen.last_run = id;
    });
    co_return id;
}

task<duration> scheduler_state::age_of(identifier run, store_time now) {
    auto looking = store().get(run);
    const auto found = co_await std::move(looking);
    const auto* view = found ? std::get_if<job_view>(&*found) : nullptr;
    co_return view != nullptr ? std::max(duration(now - view->created), duration::zero()) : duration::zero();
}

// `slots`: one a line, oldest first. Each is let in when the run before it has ended, whichever schedule's slot that is.
task<result<void>> scheduler_state::wait_in_line(definition& d, std::string slots, store_time now,
                                                 job_context& context) {
    for (std::string_view left = slots; !left.empty();) {
        const auto end = std::min(left.find('\n'), left.size());
        const auto slot = parse_timestamp<store_time>(left.substr(0, end));
        left.remove_prefix(std::min(end + 1, left.size()));
        if (!slot) co_return fail(errc::invalid_argument, "a \"holdfast.wait\" whose body is no list of slots");
        const identifier id = d.run_id(*slot);
        auto looking = store().get(id);
        const auto found = co_await std::move(looking);
        if (!found) co_return std::unexpected(found.error());
        const run_seen before = seen(*found);
        if (before.state == run_is::ended) continue;
        duration age = now - before.created;
        if (before.state == run_is::unknown) {
            auto trying = try_run(d, id, *slot);
            const auto there = co_await std::move(trying);
            if (!there) co_return std::unexpected(there.error());
            if (*there == id && left.empty()) co_return result<void>{};
            auto asking = age_of(*there, now);
            age = co_await std::move(asking);
        } else if (left.empty()) {
            co_return result<void>{};
        }
        context.snooze(look_away(age, longest_look_away));
        co_return result<void>{};
    }
    co_return result<void>{};
}

// One cycle of a fixed delay: the run, then the wait for its end. The next cycle begins when this job has ended.
task<result<void>> scheduler_state::look_after(definition& d, store_time slot, store_time now, job_context& context) {
    const duration delay = *d.when().after_each;
    const duration most = std::clamp(delay / 4, duration(std::chrono::seconds{1}), longest_look_away);
    const identifier id = d.cycle_run_id(context.job_id(), slot);
    auto looking = store().get(id);
    const auto found = co_await std::move(looking);
    if (!found) co_return std::unexpected(found.error());
    const run_seen mine = seen(*found);
    switch (mine.state) {
    case run_is::unknown: {
        auto trying = try_run(d, id, slot);
        const auto there = co_await std::move(trying);
        if (!there) co_return std::unexpected(there.error());
        context.snooze(*there == id ? soon : look_away(now - slot, most));
        break;
    }
    case run_is::open: context.snooze(look_away(now - mine.created, most)); break;
    case run_is::ended: {
        const store_time next = mine.ended.value_or(now) + std::chrono::duration_cast<std::chrono::microseconds>(delay);
        const time_point since = with.on.now();
        note(d, [&](definition& of) { of.handover = {context.job_id(), next, id, since}; });
        waker.set();
        break;
    }
    }
    co_return result<void>{};
}

} // namespace holdfast::detail
