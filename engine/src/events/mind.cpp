// Watches deadlines, keeps the leases of what the worker holds, lets the transport forget what is old.
#include <algorithm>

#include "event_worker_state.hpp"

namespace holdfast::detail {

namespace {

constexpr duration beat_again = std::chrono::seconds{1};  // after one that did not reach the transport
constexpr duration sweep_again = std::chrono::seconds{5}; // the same
constexpr int sweep_limit = 1000;

// Fires them without a lock held: they call whatever the handlers hung on them.
void fire(std::vector<std::stop_source>& which) {
    for (std::stop_source& each : which) each.request_stop();
}

} // namespace

// Deadlines have a loop of their own: a transport that does not answer holds up none of them.
task<void> event_worker_state::mind(self s) {
    runtime& on = s->with.on;
    co_await resume_on(on);
    for (;;) {
        const time_point deadline = s->watch_deadlines();
        auto waiting = s->minder.wait(on, deadline);
        if (!co_await std::move(waiting)) co_return;
        const std::lock_guard lock(s->mutex);
        if (s->closing) co_return;
    }
}

task<void> event_worker_state::renew(self s) {
    runtime& on = s->with.on;
    co_await resume_on(on);
    const duration every = s->how.heartbeat.value_or(s->how.lease / 3);
    time_point next = on.now() + every;
    for (;;) {
        auto waiting = s->renewer.wait(on, next);
        if (!co_await std::move(waiting)) co_return;
        {
            const std::lock_guard lock(s->mutex);
            if (s->closing) co_return;
        }
        if (on.now() < next) continue;
        auto beating = s->beat();
        const bool fine = co_await std::move(beating);
        next = on.now() + (fine ? every : std::min(every, beat_again));
    }
}

// When to look again.
time_point event_worker_state::watch_deadlines() {
    const time_point now = with.on.now();
    std::vector<std::stop_source> out_of_time;
    time_point next = never;
    {
        const std::lock_guard lock(mutex);
        if (now < next_deadline) return next_deadline;
        for (const run& each : all) {
            if (!each->running || each->timed_out) continue;
            if (now >= each->deadline) {
                each->timed_out = true;
                out_of_time.push_back(each->stop);
            } else {
                next = std::min(next, each->deadline);
            }
        }
        next_deadline = next;
    }
    fire(out_of_time);
    const std::lock_guard lock(mutex);
    return next_deadline;
}

// One call for everything held. False: the transport did not answer.
task<bool> event_worker_state::beat() {
    std::vector<run> held;
    std::vector<const delivery_lease*> leases;
    {
        const std::lock_guard lock(mutex);
        for (const run& each : all) {
            if (each->lost) continue;
            held.push_back(each);
            leases.push_back(&each->what.lease);
        }
    }
    if (held.empty()) {
        transport_outage.answered(who(), "renew leases"); // nothing is in danger
        co_return true;
    }
    auto beating = with.from.renew(leases, how.lease);
    const auto answers = co_await std::move(beating);
    if (!answers) {
        transport_outage.failed(who(), "renew leases", answers.error());
        co_return false;
    }
    transport_outage.answered(who(), "renew leases");
    std::vector<std::stop_source> stops;
    {
        const std::lock_guard lock(mutex);
        for (std::size_t i = 0; i < held.size() && i < answers->size(); ++i) {
            event_run& r = *held[i];
            if ((*answers)[i] == write_answer::done || !r.held || r.unsettled)
                continue; // settled meanwhile, or about to be
            r.lost = true;
            if (r.running) stops.push_back(r.stop);
        }
    }
    fire(stops);
    co_return true;
}

void event_worker_state::interrupt_all() {
    std::vector<std::stop_source> stops;
    {
        const std::lock_guard lock(mutex);
        for (const run& each : all) {
            if (!each->running) continue;
            each->stopping = true;
            stops.push_back(each->stop);
        }
    }
    fire(stops);
}

// Workers that were started together do not sweep together: the first time is anywhere within the interval, the others
// are off by up to a quarter.
task<void> event_worker_state::sweep(self s) {
    runtime& on = s->with.on;
    co_await resume_on(on);
    auto random = s->draw();
    const auto part_of = [&](duration d) {
        return d <= duration::zero()
                   ? d
                   : duration{static_cast<std::int64_t>(random.next() % static_cast<std::uint64_t>(d.count()))};
    };
    time_point next = on.now() + part_of(s->how.sweep);
    for (;;) {
        auto waiting = s->sweeper.wait(on, next);
        if (!co_await std::move(waiting)) co_return;
        if (s->is_stopping()) co_return;
        if (on.now() < next) continue;
        bool fine = true;
        for (int forgotten = sweep_limit; fine && forgotten >= sweep_limit && !s->is_stopping();) {
            auto sweeping = s->with.from.sweep(sweep_limit);
            const auto swept = co_await std::move(sweeping);
            fine = swept.has_value();
            forgotten = fine ? *swept : 0;
            if (fine) s->transport_outage.answered(s->who(), "forget old events");
            else s->transport_outage.failed(s->who(), "forget old events", swept.error());
        }
        const duration every = fine ? s->how.sweep : std::min(s->how.sweep, sweep_again);
        next = on.now() + every - every / 4 + part_of(every / 2);
    }
}

} // namespace holdfast::detail
