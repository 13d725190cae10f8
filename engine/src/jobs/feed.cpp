// Claims jobs: ahead of free slots, in batches, and without asking the store again and again when there is nothing.
#include <algorithm>

#include <holdfast/when_all.hpp>

#include "worker_state.hpp"

namespace holdfast::detail {

namespace {

// The store may say that something is due which a claim does not get: another worker is at it.
constexpr duration shortest_look = std::chrono::milliseconds{1};
constexpr int suspect_after = 2;                            // crashes
constexpr duration suspects_wait = std::chrono::seconds{2}; // or as long again as the one before them has taken
constexpr duration suspects_wait_at_most = std::chrono::minutes{1};

} // namespace

task<void> worker_state::feed(self s) {
    runtime& on = s->with.on;
    co_await resume_on(on);
    int failures = 0;
    bool asked = true; // since the time of the next look was settled
    time_point look_at = on.now();
    for (;;) {
        const next_claims next = s->plan_claims();
        if (next.finished) co_return;
        if (next.plans.empty()) {
            if (next.dry && std::exchange(asked, false)) {
                auto looking = s->next_look();
                look_at = co_await std::move(looking);
            }
            auto waiting = s->feeder.wait(on, next.dry ? look_at : never);
            if (!co_await std::move(waiting)) co_return;
            if (next.dry && on.now() >= look_at) s->hinted = true;
            continue;
        }
        asked = true;
        auto claiming = s->claim_all(next);
        const bool fine = co_await std::move(claiming);
        failures = fine ? 0 : failures + 1;
        if (fine) {
            co_await resume_on(on); // what was claimed begins first
            continue;
        }
        auto backing_off = s->back_off(failures);
        co_await std::move(backing_off);
    }
}

worker_state::next_claims worker_state::plan_claims() {
    const locked in(*this);
    if (stopping) return {.plans = {}, .finished = true};
    feeder_is_dry = false;
    if (hinted.exchange(false)) queues.dry(false);
    if (!paused && store_keeps_up()) {
        if (auto plans = queues.plan(how.batch); !plans.empty()) {
            const bool unlimited = plans.size() == 1 && !queues[plans.front().from.front()].limited();
            const bool twice = plenty && unlimited && plans.front().room >= 2 * how.batch;
            return {.plans = std::move(plans), .twice = twice};
        }
    }
    feeder_waits = true;
    const bool dry = !paused && queues.any_dry();
    if (!dry) return {};
    feeder_is_dry = true;
    if (hinted) feeder.set(); // it came before anybody could know that it was waited for
    return {.plans = {}, .finished = false, .dry = true};
}

// It takes what has ended, so that more may be asked of it.
bool worker_state::store_keeps_up() const noexcept {
    const int unwritten = static_cast<int>(endings.size()) + writing;
    return unwritten <= how.concurrency + how.prefetch + how.batch;
}

void worker_state::want_feeder(locked& in) {
    if (!feeder_waits || stopping || !store_keeps_up() || !queues.wants_claim()) return;
    feeder_waits = false;
    in.feeder = true;
}

// While there is room for two calls, the store works on one and the answer to the other is taken in. False: one failed.
task<bool> worker_state::claim_all(next_claims next) {
    if (next.twice) {
        auto both = when_all(claim(next.plans.front()), claim(next.plans.front()));
        const auto [first, second] = co_await std::move(both);
        co_return (first && second);
    }
    for (auto& plan : next.plans) {
        auto claiming = claim(std::move(plan));
        if (!co_await std::move(claiming)) co_return false;
    }
    co_return true;
}

task<bool> worker_state::claim(ready_queues::claim_plan plan) {
    claim_request request;
    for (const std::size_t i : plan.from) request.queues.push_back(queues[i].how.name);
    request.limit = plan.limit;
    request.lease_for = how.lease;
    request.worker = name;
    request.then_hand_to = address;
    auto claiming = with.store.claim(std::move(request));
    auto claimed = co_await std::move(claiming);
    if (!claimed) {
        store_failed(duty::claim, claimed.error());
        co_return false;
    }
    store_answered(duty::claim);
    const bool full = claimed->size() >= static_cast<std::size_t>(plan.limit);
    {
        const locked in(*this);
        plenty = full;
        if (!full)
            for (const std::size_t i : plan.from) queues[i].dry = true;
    }
    if (!claimed->empty()) deliver(std::move(*claimed));
    co_return true;
}

// A job that the store has claimed for this worker, which it took to be idle.
void worker_state::handed(claimed_job job) {
    std::vector<claimed_job> one;
    one.push_back(std::move(job));
    deliver(std::move(one), false);
    hint(); // the next claim says that it is idle again
}

void worker_state::deliver(std::vector<claimed_job> claimed, bool asked_for) {
    std::vector<run> runs;
    runs.reserve(claimed.size());
    for (claimed_job& each : claimed) {
        const auto kind = kinds.find(each.what.type);
        const std::size_t queue = queues.find(each.queue);
        runs.push_back(
            std::make_shared<job_run>(std::move(each), kind == kinds.end() ? nullptr : &kind->second, queue));
    }
    const time_point now = with.on.coarse_now();
    locked in(*this);
    counts.claimed += runs.size();
    for (run& each : runs) {
        job_run& r = *each;
        r.since = now;
        r.place = all.size();
        r.held = true;
        all.push_back(std::move(each));
        if (stopping || paused || (!asked_for && !queues.has_room(r.queue)))
            add_ending(r, job_verdict::make(settlement::kind::release), in);
        else if (r.job.cancel_requested) add_ending(r, job_verdict::make(settlement::kind::cancel), in);
        else if (!put_off_suspect(r, in)) queues.push(r.queue, r, r.job.priority);
    }
    want_starter(in);
}

// A job that keeps killing its workers must not take to the dead letters what they held beside it. So what has been
// through several crashes runs while this worker holds nothing else of that sort; the others are put off, unburnt.
bool worker_state::put_off_suspect(job_run& r, locked& in) {
    if (r.job.crash_count < suspect_after) return false;
    if (suspects == 0) {
        ++suspects;
        suspect_since = with.on.coarse_now();
        r.suspect = true;
        return false;
    }
    settlement later = job_verdict::make(settlement::kind::snooze);
    const duration wait = std::clamp(with.on.coarse_now() - suspect_since, suspects_wait, suspects_wait_at_most);
    later.when = due::after(with_jitter(wait, random));
    add_ending(r, std::move(later), in);
    return true;
}

void worker_state::give_back_ready(locked& in) {
    for (job_run* each : queues.take_all()) add_ending(*each, job_verdict::make(settlement::kind::release), in);
}

// Claimed ahead of slots that did not become free as soon as it had seemed: others may be quicker.
void worker_state::give_back_waiting(locked& in) {
    const time_point now = with.on.coarse_now();
    for (std::size_t i = 0; i < all.size(); ++i) {
        job_run& r = *all[i];
        if (r.running || r.unsettled || now - r.since < beat_every() || !queues.remove(r.queue, r)) continue;
        queues.waited(r.queue, now - r.since);
        add_ending(r, job_verdict::make(settlement::kind::release), in);
    }
}

// Handlers that wait for a thread or a process have not begun, and do not any more: their jobs go back, unburnt. What it gives
// must be fired without the lock: those that wait for a process.
std::vector<std::stop_source> worker_state::give_back_unbegun(locked& in) {
    std::vector<std::stop_source> waiting;
    for (std::size_t i = 0; i < all.size(); ++i) {
        job_run& r = *all[i];
        if (!r.running || r.adrift) continue;
        if (r.isolated() && r.process == nullptr) {
            r.stopping = true;
            waiting.push_back(r.stop);
        } else if (r.waits_for_thread()) {
            r.adrift = true;
            ++adrift;
            const auto how_ended = r.cancelled ? settlement::kind::cancel : settlement::kind::release;
            if (!r.lost) add_ending(r, job_verdict::make(how_ended), in);
        }
    }
    return waiting;
}

// When to look again without a hint: when the next job falls due, and now and then.
task<time_point> worker_state::next_look() {
    auto asking = with.store.next_due(queues.names());
    auto due = co_await std::move(asking);
    duration wait = how.poll;
    if (!due) {
        store_failed(duty::claim, due.error());
    } else if (due->has_value()) {
        contested = **due > duration::zero() ? 0 : std::min(contested + 1, 20);
        wait = std::min(wait, contested > 0 ? shortest_look * (1 << contested) : std::max(**due, shortest_look));
    }
    co_return saturating_add(with.on.now(), wait);
}

void worker_state::hint() noexcept {
    if (hinted.exchange(true) || !feeder_is_dry) return;
    // On a thread that the store lends the claim is made right here.
    const thread_loan loan = with.on.lend_thread(thread_loan::none);
    with.on.lend_thread(loan);
    if (loan == thread_loan::listener) feeder.set_here();
    else feeder.set();
}

} // namespace holdfast::detail
