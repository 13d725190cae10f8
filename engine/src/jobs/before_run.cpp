// What some jobs need before their handlers may run: a mark in the store, an answer from their probe, a kind.
#include <ranges>

#include "worker_state.hpp"

namespace holdfast::detail {

namespace {

constexpr std::size_t most_unknown_kinds = 1000; // remembered

bool is_probed(const job_run& r) noexcept {
    return r.job.may_restart && r.kind->type.restart() == restart::probe &&
           !r.job.extra.contains(job_header::ask_no_probe);
}

bool may_be_in_doubt(const job_run& r) noexcept {
    if (r.job.crash_count > 0 || r.job.attempt > 1 || r.job.generation > 1) return true;
    return r.kind->isolated && r.job.lease.token() > 1; // put back, but its process may have been ended
}

// Whether the work may have been done in that attempt. Nothing: it was put back, and those before it tell.
std::optional<bool> leaves_doubt(const attempt_entry& e, bool isolated) {
    if (e.outcome == "crashed" || e.error.type == "stuck" || is_crash_type(e.error.type)) return true;
    if (isolated && e.error.type == "timed_out") return true; // its process may have been ended
    if (e.outcome == "released" || e.outcome == "snoozed") return std::nullopt;
    return false; // after "indeterminate" a person decided
}

} // namespace

bool worker_state::needs_care(const job_run& r) noexcept {
    if (r.kind == nullptr || !r.job.may_restart || r.kind->isolated) return true;
    return may_be_in_doubt(r) && is_probed(r);
}

task<worker_state::answer> worker_state::before_run(self s, run r) {
    if (r->kind == nullptr) co_return answer{false, s->unknown_kind(*r)};
    if (r->kind->isolated) {
        auto finding = find_process(s, r);
        auto found = co_await std::move(finding);
        if (!found.run) co_return found;
    }
    if (is_probed(*r) && may_be_in_doubt(*r)) {
        auto looking = is_in_doubt(s, r);
        if (!co_await std::move(looking)) co_return answer{};
        auto asking = ask_probe(s, r);
        co_return co_await std::move(asking);
    }
    if (r->job.may_restart) co_return answer{};
    auto marking = mark_started(s, r);
    co_return co_await std::move(marking);
}

// Not burnt: another worker may know the kind, or this one after its next start.
settlement worker_state::unknown_kind(const job_run& r) {
    put_off_reason* why = &other_kinds;
    {
        const locked in(*this);
        const auto known = unknown_kinds.find(r.job.what.type);
        if (known != unknown_kinds.end()) why = &known->second;
        else if (unknown_kinds.size() < most_unknown_kinds)
            why = &unknown_kinds.emplace(r.job.what.type, other_kinds).first->second;
    }
    return put_off(r, *why,
                   "this worker has no handler for \"" + job_verdict::clean_text(r.job.what.type) + "\" of queue \"" +
                       r.job.queue + "\"; register it, or run it from another worker");
}

// From here on a crash means that it may have happened.
task<worker_state::answer> worker_state::mark_started(self s, run r) {
    const job_lease* const one[] = {&r->job.lease};
    for (int n = 1;; ++n) {
        auto marking = s->with.store.started(one);
        const auto answers = co_await std::move(marking);
        if (answers) {
            if (answers->front() == write_answer::done) co_return answer{};
            co_return answer{false, std::nullopt}; // somebody else has it
        }
        s->store_failed(duty::claim, answers.error());
        if (r->lost) co_return answer{false, std::nullopt};
        if (r->asked_to_stop() || s->is_past_giving_up())
            co_return answer{false, job_verdict::make(settlement::kind::release)};
        auto backing_off = s->back_off(n);
        co_await std::move(backing_off);
    }
}

// Whether an earlier run may have done the work: its worker died, or it was given up while it ran.
task<bool> worker_state::is_in_doubt(self s, run r) {
    if (r->job.crash_count > 0) co_return true;
    auto asking = s->with.store.get(r->job.id);
    const auto found = co_await std::move(asking);
    if (!found) co_return true;
    const auto* view = std::get_if<job_view>(&*found);
    if (view == nullptr) co_return false;
    for (const attempt_entry& each : view->history | std::views::reverse) {
        if (each.token == r->job.lease.token()) continue;
        if (const auto doubt = leaves_doubt(each, r->kind->isolated)) co_return *doubt;
    }
    co_return false;
}

// The probe has the time that an attempt would have. What it says counts, however late; a handler after it begins anew.
void worker_state::begin_probe(job_run& r) {
    locked in(*this);
    r.probing = true;
    set_deadlines(r, in);
}

void worker_state::end_probe(job_run& r) {
    const locked in(*this);
    r.probing = false;
    r.deadline = r.give_up_at = never;
    if (!r.timed_out || r.adrift) return;
    r.timed_out = false;
    if (r.asked_to_stop()) return;
    r.stop = std::stop_source();
    r.context.emplace(facts_of(r), with.on, with.log, r.stop.get_token(), with.client);
}

task<worker_state::answer> worker_state::ask_probe(self s, run r) {
    using kind = settlement::kind;
    happened said = happened::unknown;
    std::string why = "the probe could not tell whether it happened";
    std::optional<failed> no_thread;
    s->begin_probe(*r);
    try {
        auto asking = r->kind->type.probe(r->job.what, *r->context);
        said = co_await std::move(asking);
    } catch (const undecodable_job&) {
        throw;
    } catch (const failed& e) {
        why = "the probe failed: " + e.what_failed().message;
        if (e.code() == errc::overloaded || e.code() == errc::stopped) no_thread = e;
    } catch (...) {
        why = "the probe failed: " + exception_message(std::current_exception());
    }
    s->end_probe(*r);
    if (said == happened::no) co_return answer{};
    if (said == happened::yes) co_return answer{false, job_verdict::make(kind::succeed)};
    if (r->cancelled) co_return answer{false, job_verdict::make(kind::cancel)};
    if (r->stopping) co_return answer{false, job_verdict::make(kind::release)};
    if (no_thread) co_return answer{false, s->put_off_without_thread(*r, *no_thread)};
    co_return answer{false, job_verdict::in_doubt(std::move(why))};
}

} // namespace holdfast::detail
