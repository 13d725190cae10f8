// The calls that operators and the recovery loop make.
#include "job_calls.hpp"
#include "job_records.hpp"
#include "sweep.hpp"

namespace holdfast::sqlite {

recovery recover_stale(session& s, int limit) {
    recovery counted;
    for (stored_job& job : jobs_of(s.run(query::job_stale, s.now(), limit))) {
        switch (job_machine::recover(job.r, s.now())) {
        case job_machine::recovered::not_stale: continue;
        case job_machine::recovered::requeued: ++counted.requeued; break;
        case job_machine::recovered::failed: ++counted.failed; break;
        case job_machine::recovered::deleted: ++counted.deleted; break;
        case job_machine::recovered::dead_letter: ++counted.dead_letter; break;
        }
        store_transition(s, job);
    }
    sweep(s, limit);
    return counted;
}

std::vector<cancel_answer> cancel(session& s, const std::vector<identifier>& which) {
    std::vector<cancel_answer> answers;
    for (const identifier& id : which) {
        auto job = find_job(s, id);
        if (!job) {
            answers.push_back(cancel_answer::not_found);
            continue;
        }
        answers.push_back(job_machine::cancel(job->r, s.now()));
        if (answers.back() != cancel_answer::already_ended) store_transition(s, *job);
    }
    return answers;
}

int requeue(session& s, const std::vector<identifier>& which) {
    int count = 0;
    for (const identifier& id : which) {
        auto job = find_job(s, id);
        if (!job || !job_machine::requeue(job->r, s.now()) || key_taken(s, *job)) continue;
        store_transition(s, *job);
        if (job->has_children) rearm_children(s, *job);
        ++count;
    }
    return count;
}

int purge(session& s, job_state state, duration older_than, int limit) {
    const store_time ended_by = after(s.now(), -older_than);
    int count = 0;
    const auto forget = [&](const std::vector<stored_job>& old) {
        for (const stored_job& job : old) forget_job(s, job, true);
        count += static_cast<int>(old.size());
    };
    forget(jobs_of(s.run(query::job_purgeable, static_cast<int>(state), ended_by, limit)));
    if (state == job_state::succeeded) forget(jobs_of(s.run(query::job_purgeable_kept, ended_by, limit - count)));
    return count;
}

int discard_jobs(session& s, const std::vector<identifier>& which) {
    int count = 0;
    for (const identifier& id : which) {
        const auto job = find_job(s, id);
        if (!job || !is_final(job->r.job.state)) continue;
        forget_job(s, *job, true);
        ++count;
    }
    return count;
}

void set_paused(session& s, const std::string& queue, bool paused) {
    s.exec(query::queue_pause, queue, paused);
    if (!paused) s.woken.note(queue);
}

} // namespace holdfast::sqlite
