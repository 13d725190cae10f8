// Sees to it that the store has what fires each schedule next, and mends what got lost.
#include "schedules/scheduler_state.hpp"

#include <algorithm>

namespace holdfast::detail {

namespace {

constexpr duration try_again = std::chrono::seconds{5};
constexpr duration hand_over_again = std::chrono::milliseconds{20};
constexpr duration first_kept_for = std::chrono::hours{24};  // and then the store's note of it
constexpr duration hand_over_for = std::chrono::seconds{30}; // then it is missing, and put there like any other

} // namespace

task<void> scheduler_state::keep_up(self s) {
    runtime& on = s->with.on;
    co_await resume_on(on);
    time_point next = on.now();
    for (;;) {
        if (on.now() >= next) {
            auto ensuring = s->ensure();
            const auto ended = co_await std::move(ensuring);
            s->tell(ended);
            next = saturating_add(on.now(), s->jittered(ended ? s->how.ensure_every : try_again));
        }
        auto handing = s->hand_over();
        const auto again = co_await std::move(handing);
        {
            const std::lock_guard lock(s->mutex);
            if (s->stopping) co_return;
        }
        auto waiting = s->waker.wait(on, again ? std::min(next, saturating_add(on.now(), *again)) : next);
        if (!co_await std::move(waiting)) co_return;
    }
}

void scheduler_state::tell(const result<void>& ended) {
    {
        const std::lock_guard lock(mutex);
        if (in_trouble == !ended) return;
        in_trouble = !ended;
    }
    if (ended) with.log.info("scheduler: the store is back");
    else
        with.log.warning("scheduler: cannot see to the schedules and keeps trying: " +
                         std::string(to_text(ended.error().code)) + ": " + ended.error().message);
}

// Idempotent: any number of schedulers may do it at the same time.
task<result<void>> scheduler_state::ensure() {
    auto asking = with.store.now();
    const auto now = co_await std::move(asking);
    if (!now) co_return std::unexpected(now.error());
    std::vector<new_job> batch;
    std::vector<std::pair<definition*, std::optional<store_time>>> whose;
    for (auto& [name, d] : definitions) {
        bool start = false;
        bool handing = false;
        note(d, [&](definition& of) {
            start = of.start_is_due;
            handing = of.handover.has_value();
        });
        if (d.is_cycle()) {
            if (handing) continue;
            if (start && d.when().at_start) {
                auto beginning = begin_cycle(d, *now);
                const auto began = co_await std::move(beginning);
                if (!began) co_return std::unexpected(began.error());
            }
            const store_time slot = *now + std::chrono::duration_cast<std::chrono::microseconds>(*d.when().after_each);
            batch.push_back(cycle(d, slot, due::after(*d.when().after_each), std::nullopt)); // `now` may be old
            whose.emplace_back(&d, std::nullopt);
            continue;
        }
        if (start) {
            auto starting = fire_start(d, *now);
            auto fired = co_await std::move(starting);
            if (!fired) co_return fired;
        }
        auto looking = needs_tick(d, *now);
        const auto needed = co_await std::move(looking);
        if (!needed) co_return std::unexpected(needed.error());
        const auto next = *needed ? d.plan.next(*now) : std::nullopt;
        if (!next) continue;
        batch.push_back(tick(d, *next));
        whose.emplace_back(&d, next);
    }
    if (batch.empty()) co_return result<void>{};
    auto enqueueing = store().enqueue(std::move(batch));
    const auto answers = co_await std::move(enqueueing);
    if (!answers) co_return std::unexpected(answers.error());
    for (std::size_t i = 0; i < whose.size() && i < answers->size(); ++i)
        note(*whose[i].first, [&](definition& of) {
            of.start_is_due = false;
            if (of.is_cycle()) of.cycle = (*answers)[i].id;
            else of.planned = whose[i].second;
        });
    co_return result<void>{};
}

// Not while its latest tick waits for a worker: that one will do, however late it is. One that was put off by workers
// which do not know the schedule is seen to right here.
task<result<bool>> scheduler_state::needs_tick(definition& d, store_time now) {
    std::optional<store_time> planned;
    note(d, [&](const definition& of) { planned = of.planned; });
    if (!planned || *planned > now) co_return true;
    auto looking = store().get(d.tick_id(*planned));
    const auto found = co_await std::move(looking);
    if (!found) co_return std::unexpected(found.error());
    const auto* view = std::get_if<job_view>(&*found);
    if (view == nullptr) co_return true;
    if (view->state == job_state::pending) co_return false;
    if (view->state != job_state::scheduled) co_return true;
    auto coming = come_up(d, *planned, now);
    auto fired = co_await std::move(coming);
    if (!fired) co_return std::unexpected(std::move(fired.error()));
    co_return false;
}

// Schedulers that start in the same minute fire the same slot, those of the next minute see it.
task<result<void>> scheduler_state::fire_start(definition& d, store_time now) {
    const store_time slot = std::chrono::floor<std::chrono::minutes>(now);
    if (d.when().at_start) {
        auto looking = store().get(d.run_id(slot - std::chrono::minutes{1}));
        const auto found = co_await std::move(looking);
        if (!found) co_return std::unexpected(found.error());
        const auto* absent = std::get_if<job_absence>(&*found);
        if (absent != nullptr && *absent == job_absence::never_known) {
            auto firing = fire(d, {slot}, {});
            auto fired = co_await std::move(firing);
            if (!fired) co_return fired;
        }
    }
    note(d, [](definition& of) { of.start_is_due = false; });
    co_return result<void>{};
}

// The first of all, once: where there has been one, its end is not known here, and the delay may not be over.
task<result<void>> scheduler_state::begin_cycle(definition& d, store_time now) {
    std::vector<new_job> batch;
    batch.push_back(cycle(d, now, due::now(), std::nullopt));
    batch.back().id = d.first_cycle_id();
    batch.back().keep_for = first_kept_for;
    auto enqueueing = store().enqueue(std::move(batch));
    const auto answers = co_await std::move(enqueueing);
    if (!answers) co_return std::unexpected(answers.error());
    co_return result<void>{};
}

task<std::optional<duration>> scheduler_state::hand_over() {
    std::optional<duration> again;
    for (auto& [name, d] : definitions) {
        std::optional<holdfast::detail::handover> pending;
        note(d, [&](const definition& of) { pending = of.handover; });
        if (!pending) continue;
        std::vector<new_job> batch;
        batch.push_back(cycle(d, pending->due, due::at(pending->due), pending->last_run));
        auto enqueueing = store().enqueue(std::move(batch));
        const auto answers = co_await std::move(enqueueing);
        const bool too_long = with.on.now() - pending->since > hand_over_for;
        const bool done = answers && answers->front().id != pending->from;
        if (!done && !too_long) {
            again = answers ? hand_over_again : try_again;
            continue;
        }
        note(d, [&](definition& of) {
            if (of.handover && of.handover->from == pending->from) of.handover.reset();
            if (done) of.cycle = answers->front().id;
        });
    }
    co_return again;
}

} // namespace holdfast::detail
