// Watches deadlines, keeps the leases of what the worker holds, passes progress on.
#include <algorithm>

#include "worker_state.hpp"

namespace holdfast::detail {

namespace {

constexpr duration beat_again = std::chrono::seconds{1}; // after one that did not reach the store

// Fires them without a lock held: they call whatever the handlers hung on them.
void fire(std::vector<std::stop_source>& which) {
    for (std::stop_source& each : which) each.request_stop();
}

} // namespace

// Deadlines have a loop of their own: a store that does not answer holds up none of them.
task<void> worker_state::mind(self s) {
    runtime& on = s->with.on;
    co_await resume_on(on);
    for (;;) {
        const time_point deadline = s->watch_deadlines();
        auto waiting = s->minder.wait(on, deadline);
        if (!co_await std::move(waiting)) co_return;
        const locked in(*s);
        if (s->closing) co_return;
    }
}

task<void> worker_state::renew(self s) {
    runtime& on = s->with.on;
    co_await resume_on(on);
    const duration every = s->beat_every();
    time_point next = on.now() + every;
    for (;;) {
        auto waiting = s->renewer.wait(on, next);
        if (!co_await std::move(waiting)) co_return;
        {
            const locked in(*s);
            if (s->closing) co_return;
        }
        if (on.now() < next) continue;
        auto beating = s->beat();
        const bool fine = co_await std::move(beating);
        next = on.now() + (fine ? every : std::min(every, beat_again));
    }
}

// Apart from the heartbeats, which must not wait for it.
task<void> worker_state::report(self s) {
    runtime& on = s->with.on;
    co_await resume_on(on);
    for (;;) {
        auto waiting = s->reporter.wait(on, saturating_add(on.now(), s->how.progress_every));
        if (!co_await std::move(waiting)) co_return;
        {
            const locked in(*s);
            if (s->closing) co_return;
        }
        auto reporting = s->report_progress();
        co_await std::move(reporting);
    }
}

// When to look again.
time_point worker_state::watch_deadlines() {
    const time_point now = with.on.now();
    std::vector<std::stop_source> out_of_time;
    std::vector<std::string> complaints;
    {
        locked in(*this);
        if (now < next_deadline) return next_deadline;
        next_deadline = never;
        for (std::size_t i = 0; i < all.size(); ++i) {
            job_run& r = *all[i];
            if (!r.running || r.adrift) continue;
            if (now >= r.deadline && !r.timed_out) {
                r.timed_out = true;
                out_of_time.push_back(r.stop);
                if (!r.kind->options.hard_deadline && !r.probing) kill_soon(r, how.kill_after, in);
            }
            if (now >= r.give_up_at && r.process && !r.probing) {
                const duration most = r.kind->options.hard_deadline.value_or(forever);
                r.past_hard_deadline = now >= saturating_add(r.began, most);
                if (r.past_hard_deadline) ++counts.stuck;
                r.give_up_at = never;
                r.process->kill(); // the end of its process ends the run
            } else if (now >= r.give_up_at) {
                out_of_time.push_back(r.stop);
                give_up_stuck(r, in);
                complaints.push_back(
                    "job " + to_text(r.job.id) + " \"" + std::string(r.type_name()) + "\" is stuck: its " +
                    (r.probing ? "probe" : "handler") +
                    " runs past its hard deadline and keeps its slot; restart this worker to have it back");
                continue;
            }
            next_deadline = std::min({next_deadline, r.timed_out ? never : r.deadline, r.give_up_at});
        }
    }
    for (const std::string& each : complaints) with.log.warning(each);
    fire(out_of_time);
    const locked in(*this);
    return next_deadline;
}

// An isolated handler that does not heed its token need not be waited for.
void worker_state::kill_soon(job_run& r, duration grace, locked& in) {
    if (!r.process) return;
    r.give_up_at = std::min(r.give_up_at, saturating_add(with.on.now(), grace));
    if (r.give_up_at >= next_deadline) return;
    next_deadline = r.give_up_at;
    in.minder = true;
}

// Its slot stays taken until the handler ends; the job goes on without it.
void worker_state::give_up_stuck(job_run& r, locked& in) {
    const auto about = circumstances_of(r, r.history());
    r.timed_out = true;
    r.stuck = r.adrift = true;
    ++adrift;
    ++counts.stuck;
    if (r.suspect) --suspects; // others of that sort need not wait for it
    r.suspect = false;
    if (!r.lost) {
        random_series mine(random.next());
        add_ending(r,
                   r.probing ? job_verdict::in_doubt("the probe did not end by the hard deadline")
                             : job_verdict::when_stuck(about, mine),
                   in);
    }
    if (stopping && queues.running() <= adrift) in.drained = true;
}

// One call for everything held. False: the store did not answer.
task<bool> worker_state::beat() {
    std::vector<run> held;
    std::vector<const job_lease*> leases;
    {
        locked in(*this);
        give_back_waiting(in);
        for (const run& each : all) {
            if (each->lost || each->adrift) continue;
            held.push_back(each);
            leases.push_back(&each->job.lease);
        }
    }
    if (held.empty()) {
        store_answered(duty::renew); // nothing is in danger
        co_return true;
    }
    auto beating = with.store.heartbeat(leases, how.lease);
    const auto answers = co_await std::move(beating);
    if (!answers) {
        store_failed(duty::renew, answers.error());
        co_return false;
    }
    store_answered(duty::renew);
    beaten(held, *answers);
    co_return true;
}

void worker_state::beaten(std::span<const run> held, std::span<const holdfast::beat> answers) {
    std::vector<std::stop_source> stops;
    std::vector<run> gone;
    {
        locked in(*this);
        for (std::size_t i = 0; i < held.size() && i < answers.size(); ++i) {
            job_run& r = *held[i];
            if (!r.held || r.unsettled || r.adrift) continue; // settled meanwhile, or about to be
            if (answers[i].answer != write_answer::done) {
                r.lost = true;
                if (r.running) {
                    stops.push_back(r.stop);
                    kill_soon(r, how.kill_after, in);
                } else if (queues.remove(r.queue, r)) {
                    ++counts.lost;
                    gone.push_back(forget(r));
                }
            } else if (answers[i].cancel_requested && !r.cancelled) {
                r.cancelled = true;
                if (r.running) {
                    stops.push_back(r.stop);
                    kill_soon(r, how.kill_after, in);
                } else if (queues.remove(r.queue, r)) {
                    add_ending(r, job_verdict::make(settlement::kind::cancel), in);
                }
            }
        }
    }
    fire(stops);
}

task<void> worker_state::report_progress() {
    std::vector<run> held;
    std::vector<progress_report> reports;
    {
        const locked in(*this);
        for (const run& each : all) {
            if (!each->running || each->lost || each->adrift) continue;
            auto said = each->latest_context().take_progress();
            if (!said) continue;
            held.push_back(each);
            reports.push_back({&each->job.lease, said->percent, job_verdict::clean_text(std::move(said->note))});
        }
    }
    if (reports.empty()) co_return;
    auto reporting = with.store.progress(reports);
    const auto answers = co_await std::move(reporting);
    if (!answers) {
        store_failed(duty::renew, answers.error());
        co_return;
    }
    std::vector<holdfast::beat> seen;
    for (const write_answer each : *answers) seen.push_back({each, false});
    beaten(held, seen);
}

void worker_state::interrupt_all() {
    std::vector<std::stop_source> stops;
    {
        locked in(*this);
        for (const run& each : all) {
            if (!each->running) continue;
            each->stopping = true;
            stops.push_back(each->stop);
            kill_soon(*each, std::min(how.kill_after, how.last_wait / 2), in);
        }
    }
    fire(stops);
}

} // namespace holdfast::detail
