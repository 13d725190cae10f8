// Writes down how messages ended: many in one call, none held up by another, each fenced by its lease.
#include <algorithm>

#include "event_worker_state.hpp"

namespace holdfast::detail {

namespace {

using kind = delivery_settlement::kind;

void count(consumer_snapshot& to, const event_run& r) noexcept {
    switch (r.ending.how) {
    case kind::acknowledge: ++(r.duplicate ? to.duplicates : to.handled); return;
    case kind::redeliver: ++to.redelivered; return;
    case kind::release: ++to.released; return;
    case kind::dead_letter: ++to.dead_lettered; return;
    case kind::discard: ++to.discarded; return;
    }
}

} // namespace

// Under the lock. What it gives back is destroyed outside it.
event_worker_state::run event_worker_state::forget(event_run& r) {
    run gone = std::move(all[r.place]);
    if (r.place + 1 != all.size()) {
        all[r.place] = std::move(all.back());
        all[r.place]->place = r.place;
    }
    all.pop_back();
    r.held = false;
    if (r.suspect) --suspects;
    return gone;
}

void event_worker_state::add_ending(event_run& r, delivery_settlement chosen) {
    r.unsettled = true;
    r.ending = std::move(chosen);
    r.ending.held = &r.what.lease;
    if (endings.empty()) first_ending = with.on.coarse_now();
    endings.push_back(&r);
}

void event_worker_state::end(const run& r, std::optional<delivery_settlement> chosen) {
    run gone;
    {
        const std::lock_guard lock(mutex);
        if (!chosen || r->lost || closed) {
            ++r->in.counts.lost;
            gone = forget(*r);
        } else {
            add_ending(*r, std::move(*chosen));
        }
    }
    settler.set();
}

bool event_worker_state::endings_are_due(time_point now) const noexcept {
    if (endings.size() >= static_cast<std::size_t>(how.batch) || stopping) return true;
    if (now >= saturating_add(first_ending, how.settle_wait)) return true;
    return std::ranges::all_of(lanes, [](const event_lane& each) { return each.waiting == 0; });
}

task<void> event_worker_state::settle(self s) {
    runtime& on = s->with.on;
    co_await resume_on(on);
    for (;;) {
        std::vector<run> batch;
        time_point wait_until = never;
        {
            const time_point now = on.now();
            const std::lock_guard lock(s->mutex);
            if (s->endings.empty()) {
                if (s->closing) co_return;
            } else if (!s->endings_are_due(now)) {
                wait_until = saturating_add(s->first_ending, s->how.settle_wait);
            } else {
                const auto count = std::min(s->endings.size(), static_cast<std::size_t>(s->how.batch));
                for (std::size_t i = 0; i < count; ++i) {
                    batch.push_back(s->all[s->endings.front()->place]);
                    s->endings.pop_front();
                }
                s->first_ending = now;
                s->writing += static_cast<int>(count);
            }
        }
        if (batch.empty()) {
            auto waiting = s->settler.wait(on, wait_until);
            if (!co_await std::move(waiting)) co_return;
            continue;
        }
        auto writing = s->write(std::move(batch));
        co_await std::move(writing);
    }
}

// A call that the transport refuses for good is halved until the one that it cannot take is alone. One whose outcome is
// not known is made again: the lease tells the transport whether it has it already.
task<void> event_worker_state::write(std::vector<run> batch) {
    struct range {
        std::size_t from;
        std::size_t size;
    };
    std::vector<range> left{{0, batch.size()}};
    for (int failures = 0; !left.empty();) {
        const range at = left.back();
        left.pop_back();
        const auto runs = std::span(batch).subspan(at.from, at.size);
        std::vector<delivery_settlement> what;
        for (const run& each : runs) what.push_back(each->ending);
        auto settling = with.from.settle(what);
        const auto answers = co_await std::move(settling);
        if (answers) {
            failures = 0;
            transport_outage.answered(who(), "settle events");
            written(runs, *answers);
        } else if (is_passing(answers.error().code)) {
            transport_outage.failed(who(), "settle events", answers.error());
            if (is_past_giving_up()) {
                given_up(runs, answers.error());
                continue;
            }
            left.push_back(at);
            auto backing_off = back_off(++failures);
            co_await std::move(backing_off);
        } else if (at.size > 1) {
            left.push_back({at.from + at.size / 2, at.size - at.size / 2});
            left.push_back({at.from, at.size / 2});
        } else {
            given_up(runs, answers.error());
        }
    }
}

void event_worker_state::written(std::span<const run> which, std::span<const write_answer> answers) {
    std::vector<run> gone; // destroyed after the lock is gone
    int late = 0;
    std::vector<event_lane*> again; // something of theirs may be due before their next look
    {
        const std::lock_guard lock(mutex);
        writing -= static_cast<int>(which.size());
        for (std::size_t i = 0; i < which.size(); ++i) {
            event_run& r = *which[i];
            r.unsettled = false;
            if (i < answers.size() && answers[i] == write_answer::done) {
                count(r.in.counts, r);
            } else {
                ++r.in.counts.lost;
                ++late;
            }
            const bool opens =
                r.ending.how == kind::redeliver || r.ending.how == kind::release || !r.what.message.key.empty();
            if (opens && std::ranges::find(again, &r.in) == again.end()) again.push_back(&r.in);
            gone.push_back(forget(r));
        }
    }
    for (event_lane* each : again) {
        each->hinted = true;
        each->feeder.set();
    }
    if (late > 0)
        with.log.warning(
            std::to_string(late) + (late == 1 ? " event" : " events") +
            " ended after the lease was lost, so nothing was written: this worker was too slow to renew it, "
            "or was held up for longer than the lease of " +
            to_short_text(how.lease));
}

// Their leases run out, and they come again.
void event_worker_state::given_up(std::span<const run> which, const error& why) {
    std::vector<run> gone;
    {
        const std::lock_guard lock(mutex);
        writing -= static_cast<int>(which.size());
        for (const run& each : which) {
            each->unsettled = false;
            ++each->in.counts.lost;
            gone.push_back(forget(*each));
        }
    }
    with.log.error("how " + std::to_string(which.size()) + (which.size() == 1 ? " event" : " events") +
                   " ended could not be written, the first is " + to_text(which[0]->what.message.id) + ": " +
                   why.message + "; they come again when their leases have run out");
}

} // namespace holdfast::detail
