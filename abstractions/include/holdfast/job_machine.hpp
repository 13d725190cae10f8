// The life of a job as pure code: every store keeps these rules, in this form or in SQL or Lua. No clock, no I/O: the
// store brings its own time. A call that is refused changes nothing.
//
//   scheduled, waiting_retry --due--> pending --claim--> processing --settle--> succeeded, failed, dead_letter,
//   cancelled, indeterminate, or back to pending, scheduled (snooze), waiting_retry; --lease ends--> recover
//
// An attempt is counted when it is claimed, and given back when the job is released, snoozed or its worker died: a
// crash counts as a crash, never as an attempt.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <holdfast/job_store.hpp>

namespace holdfast::job_machine {

struct record {
    job_view job;            // history included
    std::uint64_t token = 0; // of the latest claim; see claim()
    bool started = false;    // the handler of that claim has begun
    bool waits_for_parent = false;
    bool cancelled_by_parent = false;
    std::optional<duration> keep_for{};
};

// A parent that has ended badly cancels the child at once; one that has succeeded holds nothing up.
enum class parent_is : unsigned char { none, open, succeeded, dead };

inline record make(const new_job& n, store_time now, parent_is parent = parent_is::none) {
    record r;
    r.job.id = n.id;
    r.job.what = n.what;
    r.job.queue = n.queue;
    r.job.priority = n.priority;
    r.job.created = now;
    r.job.due_at = n.when.on(now);
    r.job.max_attempts = n.max_attempts;
    r.job.crash_count = 0;
    r.job.may_restart = n.may_restart;
    r.job.unique_key = n.unique_key;
    r.job.parent = n.parent;
    r.job.extra = n.extra;
    r.keep_for = n.keep_for;
    r.job.max_crashes = n.max_crashes;
    r.waits_for_parent = parent == parent_is::open;
    r.job.state = r.waits_for_parent || r.job.due_at > now ? job_state::scheduled : job_state::pending;
    if (parent == parent_is::dead) {
        r.job.state = job_state::cancelled;
        r.cancelled_by_parent = true;
        r.job.ended = now;
    }
    return r;
}

// Due and free to take. A job that fell due is claimable whatever its state is called.
inline bool claimable(const record& r, store_time now) noexcept {
    switch (r.job.state) {
    case job_state::pending:
    case job_state::scheduled:
    case job_state::waiting_retry: return !r.waits_for_parent && r.job.due_at <= now;
    default: return false;
    }
}

// The state as a reader sees it: what is due is pending.
inline job_state seen_state(const record& r, store_time now) noexcept {
    return claimable(r, now) ? job_state::pending : r.job.state;
}

// `token`: larger than any that a job of this id was ever given. The store sees to that even where it has forgotten the
// job and the id was enqueued anew, for its earlier holder may still be there: so a record cannot count them itself.
inline void claim(record& r, std::uint64_t token, std::string_view worker, duration lease_for, store_time now) {
    r.token = token;
    ++r.job.attempts;
    r.started = false;
    r.job.state = job_state::processing;
    r.job.worker = worker;
    r.job.leased_until = now + std::chrono::duration_cast<std::chrono::microseconds>(lease_for);
    r.job.history.push_back({r.job.generation, r.job.attempts, r.token, std::string(worker), now, {}, "running", {}});
}

// Whether the holder of `token` may still write. A lease that has run out is good until somebody ended it.
inline write_answer may_write(const record& r, std::uint64_t token) noexcept {
    return r.job.state == job_state::processing && r.token == token ? write_answer::done : write_answer::stale;
}

inline beat heartbeat(record& r, std::uint64_t token, duration lease_for, store_time now) noexcept {
    if (may_write(r, token) != write_answer::done) return {write_answer::stale, false};
    r.job.leased_until = now + std::chrono::duration_cast<std::chrono::microseconds>(lease_for);
    return {write_answer::done, r.job.cancel_requested};
}

namespace detail {

inline void end_attempt(record& r, std::string_view outcome, const job_error& error, store_time now) {
    if (!r.job.history.empty()) {
        attempt_entry& last = r.job.history.back();
        last.ended = now;
        last.outcome = outcome;
        last.error = error;
    }
    r.job.worker.clear();
    r.job.leased_until.reset();
    if (!error.type.empty() || !error.message.empty()) r.job.last_error = error;
}

inline void move_to(record& r, job_state to, store_time now) {
    r.job.state = to;
    if (is_final(to)) r.job.ended = now;
}

} // namespace detail

inline std::string_view outcome_text(settlement::kind how) noexcept {
    switch (how) {
    case settlement::kind::succeed: return "succeeded";
    case settlement::kind::retry: return "retry";
    case settlement::kind::dead_letter: return "dead_letter";
    case settlement::kind::fail: return "failed";
    case settlement::kind::cancel: return "cancelled";
    case settlement::kind::release: return "released";
    case settlement::kind::snooze: return "snoozed";
    case settlement::kind::indeterminate: return "indeterminate";
    }
    return "unknown";
}

inline settled settle(record& r, std::uint64_t token, const settlement& s, store_time now) {
    if (may_write(r, token) != write_answer::done) return {write_answer::stale, r.job.state};
    detail::end_attempt(r, outcome_text(s.how), s.error, now);
    if (!s.output.empty()) r.job.output = s.output;
    switch (s.how) {
    case settlement::kind::succeed: detail::move_to(r, job_state::succeeded, now); break;
    case settlement::kind::dead_letter: detail::move_to(r, job_state::dead_letter, now); break;
    case settlement::kind::fail: detail::move_to(r, job_state::failed, now); break;
    case settlement::kind::cancel: detail::move_to(r, job_state::cancelled, now); break;
    case settlement::kind::indeterminate: detail::move_to(r, job_state::indeterminate, now); break;
    case settlement::kind::retry:
        if (r.job.cancel_requested) {
            detail::move_to(r, job_state::cancelled, now);
        } else if (r.job.attempts >= r.job.max_attempts) {
            detail::move_to(r, job_state::dead_letter, now);
        } else {
            r.job.due_at = s.when.on(now);
            r.job.state = job_state::waiting_retry;
        }
        break;
    case settlement::kind::release:
    case settlement::kind::snooze:
        --r.job.attempts;
        if (r.job.cancel_requested) {
            detail::move_to(r, job_state::cancelled, now);
        } else if (s.how == settlement::kind::release) {
            r.job.state = job_state::pending;
        } else {
            r.job.due_at = s.when.on(now);
            r.job.state = r.job.due_at > now ? job_state::scheduled : job_state::pending;
        }
        break;
    }
    return {write_answer::done, r.job.state};
}

enum class recovered : unsigned char { not_stale, requeued, failed, deleted, dead_letter };

inline constexpr std::string_view crash_not_allowed = "crash, restart not allowed";
inline constexpr std::string_view crashed_too_often = "crashed too often";

inline bool is_stale(const record& r, store_time now) noexcept {
    return r.job.state == job_state::processing && r.job.leased_until && *r.job.leased_until <= now;
}

// The worker died. Its user's wish to cancel wins; then the restart rule; then the cap on crashes.
inline recovered recover(record& r, store_time now) {
    if (!is_stale(r, now)) return recovered::not_stale;
    --r.job.attempts;
    if (r.job.cancel_requested) {
        detail::end_attempt(r, "crashed", {}, now);
        detail::move_to(r, job_state::cancelled, now);
        return recovered::deleted;
    }
    if (!r.job.may_restart && r.started) {
        detail::end_attempt(r, "crashed", {"crash", std::string(crash_not_allowed)}, now);
        detail::move_to(r, job_state::failed, now);
        return recovered::failed;
    }
    if (r.job.may_restart) ++r.job.crash_count; // one that never started did nothing wrong
    if (r.job.crash_count > r.job.max_crashes) {
        detail::end_attempt(r, "crashed", {"crash", std::string(crashed_too_often)}, now);
        detail::move_to(r, job_state::dead_letter, now);
        return recovered::dead_letter;
    }
    detail::end_attempt(r, "crashed", {}, now);
    r.job.state = job_state::pending;
    return recovered::requeued;
}

inline cancel_answer cancel(record& r, store_time now) noexcept {
    if (is_final(r.job.state)) return cancel_answer::already_ended;
    r.job.cancel_requested = true;
    if (r.job.state == job_state::processing) return cancel_answer::requested;
    detail::move_to(r, job_state::cancelled, now);
    return cancel_answer::cancelled;
}

// A new generation of attempts; the history stays. False: it is not in a state that can be requeued.
inline bool requeue(record& r, store_time now) {
    switch (r.job.state) {
    case job_state::dead_letter:
    case job_state::failed:
    case job_state::cancelled:
    case job_state::indeterminate: break;
    default: return false;
    }
    ++r.job.generation;
    r.job.attempts = 0;
    r.job.crash_count = 0;
    r.job.cancel_requested = false;
    r.cancelled_by_parent = false;
    r.waits_for_parent = false;
    r.job.ended.reset();
    r.job.due_at = now;
    r.job.state = job_state::pending;
    return true;
}

// What a parent's end, or its requeueing, does to a child. True: the child changed.
inline bool parent_ended(record& child, bool succeeded, store_time now) {
    if (!child.waits_for_parent || is_final(child.job.state)) return false;
    child.waits_for_parent = false;
    if (!succeeded) {
        child.cancelled_by_parent = true;
        detail::move_to(child, job_state::cancelled, now);
    } else if (child.job.due_at <= now) {
        child.job.state = job_state::pending;
    }
    return true;
}
inline bool parent_requeued(record& child) {
    if (!child.cancelled_by_parent || child.job.state != job_state::cancelled) return false;
    child.cancelled_by_parent = false;
    child.waits_for_parent = true;
    child.job.ended.reset();
    child.job.state = job_state::scheduled;
    return true;
}

} // namespace holdfast::job_machine
