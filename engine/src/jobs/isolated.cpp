// Runs a handler in another process, and judges what comes back.
#include <algorithm>

#include <holdfast/detail/exception_type.hpp>
#include <holdfast/job_isolation.hpp>
#include <holdfast/job_machine.hpp>

#include "job_rules.hpp"
#include "worker_state.hpp"

namespace holdfast {

task<isolated_ending> run_isolated(job_type& kind, const exception_policy* of_host, payload what,
                                   exception_history so_far, job_context& context, random_series random) {
    using ends = isolated_ending::kind;
    isolated_ending ended;
    try {
        auto running = kind.run(std::move(what), context);
        auto returned = co_await std::move(running);
        if (!returned) {
            ended.how = ends::failed;
            ended.failure = std::move(returned.error());
        }
    } catch (const operation_cancelled& e) {
        ended.how = ends::gave_up;
        ended.failure = e.what_failed();
    } catch (...) {
        const exception_table rules = job_rules::table_of(kind, of_host);
        so_far.retry_after = context.wants_retry_after();
        const job_verdict::circumstances about{.options = kind.options(), .rules = rules, .so_far = std::move(so_far)};
        auto judged = job_verdict::after_throw(about, std::current_exception(), random);
        ended.how = ends::threw;
        ended.verdict = {std::move(judged.ending), std::move(judged.again), judged.discarded};
    }
    ended.output = context.take_output();
    ended.snooze = context.wants_snooze();
    ended.retry_after = context.wants_retry_after();
    co_return ended;
}

namespace detail {

namespace {

using kind = settlement::kind;

const isolated_verdict* verdict_in(const std::exception_ptr& thrown) noexcept {
    if (const auto* e = exception_as<isolated_failure>(thrown)) return &e->verdict();
    if (const auto* e = exception_as<isolated_end>(thrown)) return &e->verdict();
    return nullptr;
}

settlement with_error(const settlement& judged, const job_error& what) {
    settlement made = job_verdict::make(judged.how, what);
    made.when = judged.when;
    return made;
}

std::string with_stack(std::string what, const job_crashed& crash) {
    return crash.stack().empty() ? what : std::move(what) + "\n" + crash.stack();
}

} // namespace

// Before anything is marked: as long as there is no process, nothing has begun.
task<worker_state::answer> worker_state::find_process(self s, run r) {
    std::optional<std::string> why;
    try {
        auto acquiring = s->with.isolation->acquire(r->stop.get_token());
        auto process = co_await std::move(acquiring);
        const locked in(*s);
        r->process = std::move(process);
        r->so_far = r->history();
        co_return answer{};
    } catch (const operation_cancelled&) { // without a reason of its own
    } catch (const std::exception& e) {
        why = e.what();
    }
    if (r->cancelled) co_return answer{false, job_verdict::make(kind::cancel)};
    if (!why) co_return answer{false, job_verdict::make(kind::release)};
    co_return answer{false, s->put_off(*r, s->no_process, "there is no process to run it in: " + *why)};
}

task<result<void>> worker_state::run_elsewhere(self s, run r, job_context& context) {
    isolated_job job{.what = r->job.what,
                     .id = r->job.id,
                     .token = r->job.lease.token(),
                     .queue = r->job.queue,
                     .attempt = context.attempt(),
                     .max_attempts = context.max_attempts(),
                     .crash_count = r->job.crash_count,
                     .generation = r->job.generation,
                     .extra = r->job.extra,
                     .so_far = r->so_far};
    const auto occupy = [&](bool now) {
        const locked in(*s);
        return std::exchange(r->elsewhere, now);
    };
    if (occupy(true)) // a policy that came to hedge while it was reloaded
        throw failed({errc::unsupported, "an isolated handler runs one attempt at a time, it cannot be hedged", {}});
    isolated_ending ended;
    try {
        auto running = r->process->run(std::move(job), context);
        ended = co_await std::move(running);
    } catch (...) {
        occupy(false);
        throw;
    }
    occupy(false);
    if (!ended.output.empty()) context.output(std::move(ended.output));
    if (ended.snooze) context.snooze(*ended.snooze);
    if (ended.retry_after) context.retry_after(*ended.retry_after);
    switch (ended.how) {
    case isolated_ending::kind::returned: co_return result<void>{};
    case isolated_ending::kind::failed: co_return std::unexpected(std::move(ended.failure));
    case isolated_ending::kind::gave_up: throw operation_cancelled(ended.failure.message);
    case isolated_ending::kind::threw: break;
    }
    if (ended.verdict.again || ended.verdict.ending.how == kind::retry)
        throw isolated_failure(std::move(ended.verdict));
    throw isolated_end(std::move(ended.verdict));
}

// What the rules say stands, unless something beside the error decides.
job_verdict::verdict worker_state::judge_isolated(const job_verdict::circumstances& about,
                                                  const std::exception_ptr& thrown, random_series& random) {
    const isolated_verdict& told = *verdict_in(thrown);
    if (!about.cancelled && !about.stopping && !about.timed_out)
        return {.ending = told.ending, .again = told.again, .discarded = told.discarded};
    auto judged = job_verdict::after_throw(about, thrown, random);
    if (judged.ending.error.type == exception_type_name(thrown))
        judged.ending = with_error(judged.ending, told.ending.error);
    return judged;
}

// Whether this crash is one too many for its generation: the job's own limit, as it was enqueued with.
task<bool> worker_state::crashes_too_often(self s, run r) {
    auto asking = s->with.store.get(r->job.id);
    const auto found = co_await std::move(asking);
    const auto* view = found ? std::get_if<job_view>(&*found) : nullptr;
    if (view == nullptr) co_return false; // the attempts are counted all the same
    const auto is_crash = [&](const attempt_entry& each) {
        return each.generation == view->generation && (each.outcome == "crashed" || is_crash_type(each.error.type));
    };
    co_return 1 + std::ranges::count_if(view->history, is_crash) > view->max_crashes;
}

task<settlement> worker_state::judge_crash(self s, run r, std::exception_ptr thrown) {
    const job_crashed crash = *exception_as<job_crashed>(thrown);
    auto random = s->draw();
    if (crash.killed()) {
        const auto about = s->circumstances_of(*r, r->history());
        co_return job_verdict::when_killed(about, r->past_hard_deadline, random);
    }
    s->with.log.warning("job " + to_text(r->job.id) + " \"" + std::string(r->type_name()) +
                        "\" crashed its process at attempt " + std::to_string(r->job.attempt) + " of " +
                        std::to_string(r->job.max_attempts) + ": " + crash.how());
    auto asking = crashes_too_often(s, r);
    const bool too_often = co_await std::move(asking);
    {
        const locked in(*s);
        ++s->counts.crashed;
    }
    const auto about = s->circumstances_of(*r, r->history());
    job_error what{crash_type(crash.how()), with_stack(crash.what(), crash)};
    if (about.cancelled) co_return job_verdict::make(kind::cancel, std::move(what));
    if (!about.may_restart) {
        what.message = with_stack(std::string(job_machine::crash_not_allowed), crash);
        co_return job_verdict::make(kind::fail, std::move(what));
    }
    if (too_often) {
        what.message = with_stack(std::string(job_machine::crashed_too_often), crash);
        co_return job_verdict::make(kind::dead_letter, std::move(what));
    }
    co_return with_error(job_verdict::after_error(about, {errc::unknown_outcome, crash.what(), {}}, random).ending,
                         what);
}

} // namespace detail

} // namespace holdfast
