// Runs claimed jobs: one slot and one coroutine each.
#include <algorithm>
#include <utility>

#include <holdfast/detail/exception_type.hpp>

#include "worker_state.hpp"

namespace holdfast::detail {

namespace {

// How much one piece of posted work begins before it lets others have a turn.
constexpr int most_in_a_turn = 64;
constexpr duration longest_turn = std::chrono::milliseconds{5};

} // namespace

void worker_state::start_posted(work& w, wake) noexcept {
    static_cast<starter_work&>(w).owner->start_some();
}

// Whoever takes a job posts a successor first if there is more to begin, so that a handler that keeps its thread busy
// holds up nobody.
void worker_state::start_some() noexcept {
    self keep;
    const time_point began = with.on.coarse_now();
    for (int n = 1;; ++n) {
        run next;
        {
            locked in(*this);
            if (n == 1) {
                starter_posted = false;
                keep = std::move(starter.keep);
            }
            job_run* r = stopping || paused || queues.running() >= how.concurrency ? nullptr : queues.pop();
            if (r == nullptr) {
                wake_settler(in);
                return;
            }
            begin(*r, in);
            next = all[r->place];
            want_starter(in);
        }
        run_job(keep, std::move(next));
        if (n == most_in_a_turn || with.on.coarse_now() - began >= longest_turn) return;
    }
}

void worker_state::want_starter(locked& in) {
    if (starter_posted || stopping || paused || queues.running() >= how.concurrency || !queues.startable()) return;
    starter_posted = true;
    starter.keep = shared_from_this();
    in.starter = true;
}

job_context::facts worker_state::facts_of(job_run& r) const {
    const int before = attempts_before(r.job.extra, r.job.generation);
    return {.id = r.job.id,
            .token = r.job.lease.token(),
            .type = r.type_name(),
            .queue = r.job.queue,
            .attempt = before + r.job.attempt,
            .max_attempts = before + r.job.max_attempts,
            .crash_count = r.job.crash_count,
            .generation = r.job.generation,
            .extra = &r.job.extra,
            .clock = r.owner != nullptr ? &r : nullptr};
}

void worker_state::begin(job_run& r, locked& in) {
    r.running = true;
    r.began = with.on.coarse_now();
    r.stop = std::stop_source();
    if (!r.isolated()) r.owner = this;
    r.context.emplace(facts_of(r), with.on, with.log, r.stop.get_token(), with.client);
    if (!needs_care(r)) let_go(r, in);
}

// Its handler begins, as soon as it has a thread: from here on its time runs.
void worker_state::let_go(job_run& r, locked& in) {
    r.let_go = true;
    set_deadlines(r, in);
}

void worker_state::set_deadlines(job_run& r, locked& in) {
    if (r.kind == nullptr || (!r.kind->options.timeout && !r.kind->options.hard_deadline)) return;
    r.began = with.on.now();
    r.deadline = saturating_add(r.began, r.kind->options.timeout.value_or(forever));
    r.give_up_at = saturating_add(r.began, r.kind->options.hard_deadline.value_or(forever));
    const time_point first = std::min(r.deadline, r.give_up_at);
    if (first >= next_deadline) return;
    next_deadline = first;
    in.minder = true;
}

// A blocking handler's time does not run until it has a thread. Further calls within the run get no more of it.
void worker_state::wait_for_thread(job_run& r) {
    const locked in(*this);
    r.waits = true;
    if (r.begun || r.timed_out || r.adrift) return;
    r.deadline = r.give_up_at = never;
}

bool worker_state::begin_on_thread(job_run& r) {
    locked in(*this);
    if (r.begun) return true;
    if (stopping && !r.adrift) r.stopping = true; // so it goes back
    if (r.adrift || r.asked_to_stop()) return false;
    r.begun = true;
    set_deadlines(r, in);
    return true;
}

// Between its slot and its handler it was lost, cancelled or given up, or the worker has begun to stop. Nothing: it was let go.
std::optional<worker_state::answer> worker_state::called_off(job_run& r) {
    locked in(*this);
    if (r.lost || r.adrift) return answer{false, std::nullopt};
    if (r.cancelled) return answer{false, job_verdict::make(settlement::kind::cancel)};
    if (r.stopping || stopping) return answer{false, job_verdict::make(settlement::kind::release)};
    let_go(r, in);
    return std::nullopt;
}

detached worker_state::run_job(self s, run r) {
    call_end ended;
    try {
        answer allowed;
        if (needs_care(*r)) {
            auto asking = before_run(s, r);
            allowed = co_await std::move(asking);
            if (allowed.run) allowed = s->called_off(*r).value_or(answer{});
        }
        if (!allowed.run) {
            s->finish(r, std::move(allowed.ending));
            co_return;
        }
        auto running = r->kind->policy ? run_under_policy(s, r) : call(s, r, *r->context, r->kind->retries_in_run);
        auto answered = co_await std::move(running);
        if (!answered) ended.returned = std::move(answered.error());
    } catch (...) {
        ended.thrown = std::current_exception();
    }
    if (exception_as<job_crashed>(ended.thrown) != nullptr) {
        auto judging = judge_crash(s, r, ended.thrown);
        s->finish(r, co_await std::move(judging));
        co_return;
    }
    auto verdict = s->judge(*r, ended, r->history());
    if (verdict.again) {
        auto again = run_again(s, r, std::move(ended), std::move(verdict));
        verdict = co_await std::move(again);
    }
    s->finish(r, std::move(verdict.ending), verdict.discarded);
}

// No coroutine of its own: this is the way of all jobs.
task<result<void>> worker_state::call(const self& s, const run& r, job_context& context, bool keep_payload) {
    if (r->kind->isolated) return run_elsewhere(s, r, context);
    if (keep_payload) return r->kind->type.run(r->job.what, context);
    return r->kind->type.run(std::move(r->job.what), context);
}

// Retries within the run, which keeps its slot meanwhile.
task<job_verdict::verdict> worker_state::run_again(self s, run r, call_end ended, job_verdict::verdict next) {
    exception_history so_far = r->history();
    while (next.again) {
        auto waiting = sleep_for(s->with.on, next.again->after, r->stop.get_token());
        const sleep_end woken = co_await std::move(waiting);
        if (woken != sleep_end::due || !s->may_go_on(*r)) {
            if (r->cancelled || r->stopping) next = s->judge(*r, ended, so_far);
            next.again.reset();
            break;
        }
        so_far.add(*next.again);
        if (r->kind->isolated) r->so_far = so_far;
        ended = {};
        try {
            auto running =
                r->kind->policy ? run_under_policy(s, r) : call(s, r, s->add_context(*r, r->stop.get_token()), true);
            auto answered = co_await std::move(running);
            if (!answered) ended.returned = std::move(answered.error());
        } catch (...) {
            ended.thrown = std::current_exception();
        }
        if (exception_as<job_crashed>(ended.thrown) != nullptr) {
            auto judging = judge_crash(s, r, ended.thrown);
            co_return job_verdict::verdict{.ending = co_await std::move(judging)};
        }
        next = s->judge(*r, ended, so_far);
    }
    co_return next;
}

bool worker_state::may_go_on(const job_run& r) {
    const locked in(*this);
    return !r.adrift && !r.asked_to_stop();
}

// Every attempt within the run has a context of its own, for its token is its own.
task<result<void>> worker_state::run_under_policy(self s, run r) {
    auto once = [&](attempt& a) { return call_noted(s, r, s->add_context(*r, a.stop_token())); };
    auto call = r->kind->policy->execute(std::move(once), r->stop.get_token());
    co_return co_await std::move(call);
}

// What the first attempt says that succeeds is what counts; those that were hedged against it end later.
task<result<void>> worker_state::call_noted(self s, run r, job_context& context) {
    auto calling = call(s, r, context, true);
    auto ended = co_await std::move(calling);
    const locked in(*s);
    if (ended && r->winner == nullptr) r->winner = &context;
    co_return ended;
}

job_context& worker_state::add_context(job_run& r, std::stop_token stop) {
    const locked in(*this);
    return r.more_contexts.emplace_back(facts_of(r), with.on, with.log, std::move(stop), with.client);
}

job_verdict::circumstances worker_state::circumstances_of(job_run& r, const exception_history& so_far) const {
    job_verdict::circumstances about{.options = r.kind->options,
                                     .rules = r.kind->rules,
                                     .so_far = so_far,
                                     .may_restart = r.job.may_restart,
                                     .cancelled = r.cancelled,
                                     .timed_out = r.timed_out,
                                     .stopping = r.stopping,
                                     .never_began = r.never_began(),
                                     .snooze = r.latest_context().wants_snooze()};
    about.so_far.retry_after = r.latest_context().wants_retry_after();
    return about;
}

job_verdict::verdict worker_state::judge(job_run& r, const call_end& ended, const exception_history& so_far) {
    const auto about = circumstances_of(r, so_far);
    if (!ended.thrown && !ended.returned) return {job_verdict::after_return(about, r.latest_context().take_output())};
    auto mine = draw();
    if (about.never_began && !about.cancelled && !about.stopping)
        if (const auto* refused = exception_as<failed>(ended.thrown);
            refused != nullptr && (refused->code() == errc::overloaded || refused->code() == errc::stopped))
            return {put_off_without_thread(r, *refused)};
    const bool elsewhere = exception_as<isolated_failure>(ended.thrown) || exception_as<isolated_end>(ended.thrown);
    auto verdict = elsewhere      ? judge_isolated(about, ended.thrown, mine)
                   : ended.thrown ? job_verdict::after_throw(about, ended.thrown, mine)
                                  : job_verdict::after_error(about, *ended.returned, mine);
    verdict.ending.output = r.latest_context().take_output();
    return verdict;
}

// The blocking pool has no room: not the job's fault, so no attempt is burnt.
settlement worker_state::put_off_without_thread(const job_run& r, const failed& why) {
    if (why.code() == errc::stopped) return job_verdict::make(settlement::kind::release);
    return put_off(r, no_thread,
                   std::string(why.what()) +
                       "; give the runtime more blocking_threads or a longer blocking_queue, or this worker less "
                       "concurrency");
}

settlement worker_state::put_off(const job_run& r, put_off_reason& why, const std::string& in_words) {
    const time_point now = with.on.now();
    duration wait{};
    bool complain = false;
    settlement later = job_verdict::make(settlement::kind::snooze);
    {
        const locked in(*this);
        wait = why.wait(now);
        complain = why.complains(now);
        later.when = due::after(with_jitter(wait, random));
    }
    if (complain)
        with.log.warning("job " + to_text(r.job.id) + " \"" + std::string(r.type_name()) + "\" is put off by " +
                         to_short_text(wait) + ", and so may be others, unburnt: " + in_words);
    return later;
}

void worker_state::finish(const run& r, std::optional<settlement> ending, bool discarded) {
    const time_point now = with.on.coarse_now();
    run gone;
    std::unique_ptr<isolated_process> process; // given back without the lock
    locked in(*this);
    process = std::move(r->process);
    r->running = false;
    r->discarded = discarded;
    queues.ended(r->queue, now - r->began);
    if (r->adrift) {
        --adrift;
        if (!r->unsettled) gone = forget(*r);
    } else if (r->lost || closed || !ending) {
        ++counts.lost;
        gone = forget(*r);
    } else {
        add_ending(*r, std::move(*ending), in);
    }
    want_starter(in);
    want_feeder(in);
    if (stopping && queues.running() <= adrift) in.drained = true;
}

} // namespace holdfast::detail

namespace holdfast {

void job_run::handler_waits() noexcept {
    owner->wait_for_thread(*this);
}
bool job_run::handler_begins() noexcept {
    return owner->begin_on_thread(*this);
}

} // namespace holdfast
