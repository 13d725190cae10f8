// Writes down how jobs ended: many in one call, none held up by another, each fenced by its lease.
#include <algorithm>

#include "worker_state.hpp"

namespace holdfast::detail {

namespace {

using kind = settlement::kind;

constexpr std::uint64_t most_epitaphs = 5; // in the log, for one call to the store

void count(worker_snapshot& to, const settlement& what, const settled& answer) noexcept {
    switch (what.how) {
    case kind::succeed: ++to.succeeded; return;
    case kind::retry:
        if (answer.now == job_state::dead_letter) ++to.dead_lettered;
        else if (answer.now == job_state::cancelled) ++to.cancelled;
        else ++to.retried;
        return;
    case kind::dead_letter: ++to.dead_lettered; return;
    case kind::fail: ++to.failed; return;
    case kind::cancel: ++to.cancelled; return;
    case kind::release: ++to.released; return;
    case kind::snooze: ++to.snoozed; return;
    case kind::indeterminate: ++to.indeterminate; return;
    }
}

std::string epitaph(const job_run& r, const settlement& what) {
    return "job " + to_text(r.job.id) + " \"" + std::string(r.type_name()) + "\" goes to the dead letters at attempt " +
           std::to_string(r.job.attempt) + " of " + std::to_string(r.job.max_attempts) + ": " + what.error.type + ": " +
           what.error.message;
}

std::string farewell(const job_run& r, const settlement& what) {
    return "job " + to_text(r.job.id) + " \"" + std::string(r.type_name()) + "\" is " + what.error.message;
}

} // namespace

// Under the lock. What it gives back is destroyed outside it.
worker_state::run worker_state::forget(job_run& r) {
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

void worker_state::add_ending(job_run& r, settlement ending, locked& in) {
    r.unsettled = true;
    r.ending = std::move(ending);
    r.ending.held = &r.job.lease;
    const bool first = endings.empty();
    if (first) first_ending = with.on.coarse_now();
    endings.push_back(&r);
    if (!r.job.may_restart) ++urgent;
    if (first || endings_are_due(first_ending)) wake_settler(in);
}

bool worker_state::endings_are_due(time_point now) const noexcept {
    return endings.size() >= static_cast<std::size_t>(how.batch) || urgent > 0 || queues.ready() == 0 || stopping ||
           now >= saturating_add(first_ending, how.settle_wait);
}

void worker_state::wake_settler(locked& in) {
    if (endings.empty()) return;
    for (std::size_t lane = 0; lane < std::size(settler_waits); ++lane) {
        if (!settler_waits[lane]) continue;
        settler_waits[lane] = false;
        in.settler[lane] = true;
        return;
    }
}

task<void> worker_state::settle(self s, std::size_t lane) {
    runtime& on = s->with.on;
    co_await resume_on(on);
    for (;;) {
        auto taken = s->take_endings(lane);
        if (taken.finished) co_return;
        if (taken.batch.empty()) {
            auto waiting = s->settlers[lane].wait(on, taken.wait_until);
            if (!co_await std::move(waiting)) co_return;
            continue;
        }
        auto writing = s->write(std::move(taken.batch));
        co_await std::move(writing);
    }
}

worker_state::taken_endings worker_state::take_endings(std::size_t lane) {
    const time_point now = with.on.now();
    const locked in(*this);
    settler_waits[lane] = false;
    if (endings.empty()) {
        settler_waits[lane] = !closing;
        if (closing && --lanes == 0) closed = true; // nobody would write what comes now
        return {.batch = {}, .wait_until = never, .finished = closing};
    }
    if (!endings_are_due(now)) {
        settler_waits[lane] = true;
        return {.batch = {}, .wait_until = saturating_add(first_ending, how.settle_wait), .finished = false};
    }
    taken_endings taken;
    const auto count = std::min(endings.size(), static_cast<std::size_t>(how.batch));
    taken.batch.assign(endings.begin(), endings.begin() + static_cast<std::ptrdiff_t>(count));
    endings.erase(endings.begin(), endings.begin() + static_cast<std::ptrdiff_t>(count));
    for (const job_run* each : taken.batch)
        if (!each->job.may_restart) --urgent;
    first_ending = now;
    writing += static_cast<int>(count);
    return taken;
}

// The last word of a run about its progress; it is no matter if it gets lost.
task<void> worker_state::write_progress(std::vector<job_run*> of) {
    std::vector<progress_report> reports;
    for (job_run* each : of) {
        if (!each->context || each->adrift) continue; // such a one still uses its own
        if (auto said = each->latest_context().take_progress())
            reports.push_back({&each->job.lease, said->percent, job_verdict::clean_text(std::move(said->note))});
    }
    if (reports.empty()) co_return;
    auto reporting = with.store.progress(reports);
    co_await std::move(reporting);
}

// A call that the store refuses for good is halved until the one that it cannot take is alone. One whose outcome is
// not known is made again: the lease tells the store whether it has it already.
task<void> worker_state::write(std::vector<job_run*> batch) {
    auto reporting = write_progress(batch);
    co_await std::move(reporting);

    std::vector<settlement> what;
    what.reserve(batch.size());
    for (job_run* each : batch) what.push_back(std::move(each->ending));
    struct range {
        std::size_t from;
        std::size_t size;
        bool plain = false; // tried again without what may be too much
    };
    std::vector<range> left{{0, batch.size()}};
    for (int failures = 0; !left.empty();) {
        const range at = left.back();
        left.pop_back();
        const auto runs = std::span(batch).subspan(at.from, at.size);
        const auto part = std::span(what).subspan(at.from, at.size);
        auto settling = with.store.settle(part);
        const auto answers = co_await std::move(settling);
        if (answers) {
            failures = 0;
            store_answered(duty::settle);
            written(runs, part, *answers);
        } else if (is_passing(answers.error().code)) {
            store_failed(duty::settle, answers.error());
            if (answers.error().code == errc::unknown_outcome)
                for (job_run* each : runs) each->asked_again = true;
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
        } else if (!at.plain) {
            with.log.error("job " + to_text(runs[0]->job.id) + " \"" + std::string(runs[0]->type_name()) +
                           "\": the store refuses how it ended, so its output is left out: " + answers.error().message);
            part[0].output.clear();
            left.push_back({at.from, 1, true});
        } else {
            given_up(runs, answers.error());
        }
    }
}

void worker_state::written(std::span<job_run* const> which, std::span<const settlement> what,
                           std::span<const settled> answers) {
    std::vector<run> gone; // destroyed after the lock is gone
    gone.reserve(which.size());
    std::vector<std::string> epitaphs;
    std::vector<std::string> farewells;
    std::uint64_t dead = 0;
    int late = 0;
    {
        locked in(*this);
        writing -= static_cast<int>(which.size());
        for (std::size_t i = 0; i < which.size(); ++i) {
            job_run& r = *which[i];
            r.unsettled = false;
            const settled answer = i < answers.size() ? answers[i] : settled{write_answer::gone, {}};
            if (answer.answer == write_answer::done || r.asked_again) {
                count(counts, what[i], answer);
                if (answer.answer == write_answer::done && answer.now == job_state::dead_letter &&
                    ++dead <= most_epitaphs)
                    epitaphs.push_back(epitaph(r, what[i]));
                if (r.discarded) {
                    ++counts.discarded;
                    farewells.push_back(farewell(r, what[i]));
                }
            } else {
                ++counts.lost;
                ++late;
            }
            if (!r.running) gone.push_back(forget(r));
        }
        want_feeder(in);
    }
    // What is due later may be due before the next look.
    const auto waits = [](const settled& each) {
        return each.now == job_state::waiting_retry || each.now == job_state::scheduled;
    };
    if (std::ranges::any_of(answers, waits)) hint();
    for (const std::string& each : farewells) with.log.info(each);
    for (const std::string& each : epitaphs) with.log.warning(each);
    if (dead > most_epitaphs) with.log.warning("and so do " + std::to_string(dead - most_epitaphs) + " more jobs");
    if (late > 0)
        with.log.warning(std::to_string(late) + (late == 1 ? " job" : " jobs") +
                         " ended after its lease was lost, so nothing was written: this worker was too slow to renew "
                         "it, or was held up for longer than the lease of " +
                         to_short_text(how.lease));
}

// Their leases run out, and somebody recovers them.
void worker_state::given_up(std::span<job_run* const> which, const error& why) {
    std::vector<run> gone;
    {
        locked in(*this);
        writing -= static_cast<int>(which.size());
        counts.lost += which.size();
        for (job_run* each : which) {
            each->unsettled = false;
            if (!each->running) gone.push_back(forget(*each));
        }
        want_feeder(in);
    }
    with.log.error("how " + std::to_string(which.size()) + (which.size() == 1 ? " job" : " jobs") +
                   " ended could not be written, the first is " + to_text(which[0]->job.id) + ": " + why.message +
                   "; stale recovery will find them when their leases have run out");
}

} // namespace holdfast::detail
