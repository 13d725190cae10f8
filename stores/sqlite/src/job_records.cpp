#include "job_records.hpp"

namespace holdfast::sqlite {

std::optional<stored_job> find_job(session& s, const identifier& id) {
    auto row = s.run(query::job_load, id);
    if (!row.step()) return std::nullopt;
    return read_machine_row(row);
}

std::vector<stored_job> jobs_of(use rows) {
    std::vector<stored_job> found;
    while (rows.step()) found.push_back(read_machine_row(rows));
    return found;
}

bool key_taken(session& s, const stored_job& job) {
    return s.any(s.run(query::job_key_taken, job.seq));
}

void forget_job(session& s, const stored_job& job, bool remember) {
    s.exec(query::job_delete, job.seq);
    if (job.large) s.exec(query::job_body_delete, job.seq);
    if (job.runs > 0) {
        s.exec(query::job_attempts_delete, job.seq);
        s.exec(query::job_output_delete, job.seq);
    }
    if (remember && s.how().keep_tombstones > duration::zero())
        s.exec(query::job_bury, job.r.job.id, after(s.now(), s.how().keep_tombstones));
}

namespace {

void save(session& s, const stored_job& stored) {
    const job_view& job = stored.r.job;
    s.exec(query::job_save, stored.seq, static_cast<int>(job.state), job.due_at, job.ended, job.attempts,
           job.crash_count, job.generation, job.cancel_requested, stored.r.waits_for_parent,
           stored.r.cancelled_by_parent, job.worker, job.leased_until, job.last_error.type, job.last_error.message,
           stored.runs, stored.expires);
    if (job_machine::claimable(stored.r, s.now())) s.woken.anywhere = true;
}

void append_attempt(session& s, stored_job& job) {
    if (job.r.job.history.empty() || !job.r.job.history.back().ended) return;
    const attempt_entry& e = job.r.job.history.back();
    s.exec(query::job_attempt_append, job.seq, e.token, e.generation, e.number, e.worker, e.started, *e.ended,
           e.outcome, e.error.type, e.error.message);
    ++job.runs;
}

// A child that is cancelled ends its own children in turn.
void tell_children(session& s, const stored_job& parent) {
    struct ended {
        identifier id;
        bool succeeded;
    };
    std::vector<ended> todo{{parent.r.job.id, parent.r.job.state == job_state::succeeded}};
    while (!todo.empty()) {
        const ended next = todo.back();
        todo.pop_back();
        for (stored_job& child : jobs_of(s.run(query::job_waiting_children, next.id))) {
            if (!job_machine::parent_ended(child.r, next.succeeded, s.now())) continue;
            save(s, child);
            if (child.has_children && is_final(child.r.job.state)) todo.push_back({child.r.job.id, false});
        }
    }
}

} // namespace

void store_transition(session& s, stored_job& stored, std::string_view output) {
    const job_view& job = stored.r.job;
    if (is_final(job.state) && stored.has_children) tell_children(s, stored);
    if (job.state == job_state::succeeded) {
        const duration keep = stored.r.keep_for.value_or(s.how().keep_succeeded);
        if (keep <= duration::zero()) return forget_job(s, stored, false);
        if (stored.r.keep_for) stored.expires = after(s.now(), keep);
    }
    append_attempt(s, stored);
    if (!output.empty()) s.exec(query::job_output_save, stored.seq, bytes{output});
    save(s, stored);
}

void rearm_children(session& s, const stored_job& parent) {
    std::vector<identifier> todo{parent.r.job.id};
    while (!todo.empty()) {
        const identifier next = todo.back();
        todo.pop_back();
        for (stored_job& child : jobs_of(s.run(query::job_cancelled_children, next))) {
            if (key_taken(s, child) || !job_machine::parent_requeued(child.r)) continue;
            save(s, child);
            if (child.has_children) todo.push_back(child.r.job.id);
        }
    }
}

} // namespace holdfast::sqlite
