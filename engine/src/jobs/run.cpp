// Runs claimed jobs: one slot and one coroutine each.
#include <algorithm>
#include <charconv>
#include <utility>

#include "worker_state.hpp"

namespace holdfast::detail {

namespace {

// How much one piece of posted work begins before it lets others have a turn.
constexpr int most_in_a_turn = 64;
constexpr duration longest_turn = std::chrono::milliseconds{5};

int attempts_before(const headers& extra) noexcept {
    const auto found = extra.find(job_header::attempts_before);
    if (found == extra.end()) return 0;
    int number = 0;
    const std::string& text = found->second;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
    return read.ec == std::errc() && read.ptr == text.data() + text.size() && number > 0 ? number : 0;
}

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
            job_run* r = stopping || paused || running >= how.concurrency ? nullptr : queues.pop();
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
    if (starter_posted || stopping || paused || running >= how.concurrency || !queues.startable()) return;
    starter_posted = true;
    starter.keep = shared_from_this();
    in.starter = true;
}

job_context::facts worker_state::facts_of(const job_run& r) const {
    const int before = r.job.extra.empty() ? 0 : attempts_before(r.job.extra);
    return {.id = r.job.id,
            .token = r.job.lease.token(),
            .type = r.type_name(),
            .queue = r.job.queue,
            .attempt = before + r.job.attempt,
            .max_attempts = before + r.job.max_attempts,
            .crash_count = r.job.crash_count,
            .generation = r.job.generation,
            .extra = &r.job.extra};
}

void worker_state::begin(job_run& r, locked& in) {
    r.running = true;
    ++running;
    const bool timed = r.kind != nullptr && (r.kind->options.timeout || r.kind->options.hard_deadline);
    r.began = timed ? with.on.now() : with.on.coarse_now();
    r.stop = std::stop_source();
    r.context.emplace(facts_of(r), with.on, with.log, r.stop.get_token(), with.client);
    if (!timed) return;
    r.deadline = saturating_add(r.began, r.kind->options.timeout.value_or(forever));
    r.give_up_at = saturating_add(r.began, r.kind->options.hard_deadline.value_or(forever));
    const time_point first = std::min(r.deadline, r.give_up_at);
    if (first >= next_deadline) return;
    next_deadline = first;
    in.minder = true;
}

detached worker_state::run_job(self s, run r) {
    std::exception_ptr thrown;
    std::optional<error> returned;
    try {
        answer allowed;
        if (needs_care(*r)) {
            auto asking = before_run(s, r);
            allowed = co_await std::move(asking);
        }
        if (!allowed.run) {
            s->finish(r, std::move(allowed.ending));
            co_return;
        }
        auto running =
            r->kind->policy ? run_under_policy(s, r) : r->kind->type.run(std::move(r->job.what), *r->context);
        auto ended = co_await std::move(running);
        if (!ended) returned = std::move(ended.error());
    } catch (...) {
        thrown = std::current_exception();
    }
    s->finish(r, s->judge(*r, thrown, returned));
}

// Every attempt within the run has a context of its own, for its token is its own.
task<result<void>> worker_state::run_under_policy(self s, run r) {
    auto once = [&](attempt& a) { return r->kind->type.run(r->job.what, s->add_context(*r, a.stop_token())); };
    auto call = r->kind->policy->execute(std::move(once), r->stop.get_token());
    co_return co_await std::move(call);
}

job_context& worker_state::add_context(job_run& r, std::stop_token stop) {
    const locked in(*this);
    return r.more_contexts.emplace_back(facts_of(r), with.on, with.log, std::move(stop), with.client);
}

job_verdict::circumstances worker_state::circumstances_of(job_run& r) const {
    return {.options = r.kind->options,
            .waits = r.kind->waits,
            .attempt = r.job.attempt,
            .may_restart = r.job.may_restart,
            .cancelled = r.cancelled,
            .timed_out = r.timed_out,
            .stopping = r.stopping,
            .snooze = r.latest_context().wants_snooze(),
            .retry_after = r.latest_context().wants_retry_after()};
}

settlement worker_state::judge(job_run& r, const std::exception_ptr& thrown, const std::optional<error>& returned) {
    const auto about = circumstances_of(r);
    if (!thrown && !returned) return job_verdict::after_return(about, r.latest_context().take_output());
    auto mine = draw();
    auto ending =
        thrown ? job_verdict::after_throw(about, thrown, mine) : job_verdict::after_error(about, *returned, mine);
    ending.output = r.latest_context().take_output();
    return ending;
}

void worker_state::finish(const run& r, std::optional<settlement> ending) {
    const time_point now = with.on.coarse_now();
    run gone;
    locked in(*this);
    const double took = std::max(0.0, std::chrono::duration<double>(now - r->began).count());
    average_run = average_run < 0 ? took : average_run + (took - average_run) / 16;
    r->running = false;
    --running;
    --queues[r->queue].running;
    if (r->stuck) {
        --stuck;
        if (!r->unsettled) gone = forget(*r);
    } else if (r->lost || closed || !ending) {
        ++counts.lost;
        gone = forget(*r);
    } else {
        add_ending(*r, std::move(*ending), in);
    }
    want_starter(in);
    if (feeder_waits && !stopping && queues.worth_asking(prefetch_now()) && wants_claim()) {
        feeder_waits = false;
        in.feeder = true;
    }
    if (stopping && running <= stuck) in.drained = true;
}

} // namespace holdfast::detail
