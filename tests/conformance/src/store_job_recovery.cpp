// Jobs: what becomes of them when their worker died.
#include "store_jobs.hpp"

namespace holdfast::conformance {

namespace {

// A worker takes the job, starts it if asked to, and is never heard of again.
claimed_job abandoned(store_lab& in, const job_user& user, bool started) {
    claimed_job mine = user.claim_one(short_lease);
    if (started) check_equal(user.started(mine.lease), write_answer::done, "started");
    in.pass(short_lease);
    return mine;
}

void not_before_its_time(store_lab& in) {
    const job_user user(in);
    const identifier id = user.add();
    user.claim_one();
    check_equal(user.recover().total(), 0, "stale jobs");
    check_equal(user.state_of(id), job_state::processing, "state");
}

void restart_allowed(store_lab& in) {
    const job_user user(in);
    const identifier id = user.add();
    abandoned(in, user, true);
    const recovery found = user.recover();
    check_equal(found.requeued, 1, "requeued");
    check_equal(found.total(), 1, "stale jobs");
    const job_view seen = user.view(id);
    check_equal(seen.state, job_state::pending, "state");
    check_equal(seen.crash_count, 1, "crash_count");
    check_equal(seen.attempts, 0, "attempts: a crash is none");
    check_equal(seen.worker, std::string(), "worker");
    check_equal(seen.history.size(), std::size_t{1}, "entries in the history");
    check_equal(seen.history[0].outcome, std::string("crashed"), "outcome in the history");
    check(seen.history[0].ended.has_value(), "the entry was ended");
    const claimed_job again = user.claim_one();
    check_equal(again.attempt, 1, "attempt");
    check_equal(again.crash_count, 1, "crash_count of the claim");
    check_equal(user.recover().total(), 0, "stale jobs afterwards");
}

void crashes_are_capped(store_lab& in) {
    const job_user user(in);
    new_job j = user.make();
    j.max_crashes = 2;
    const identifier id = user.add(j);
    for (int crash = 1; crash <= 2; ++crash) {
        abandoned(in, user, true);
        check_equal(user.recover().requeued, 1, "requeued");
        check_equal(user.view(id).crash_count, crash, "crash_count");
    }
    abandoned(in, user, true);
    const recovery found = user.recover();
    check_equal(found.dead_letter, 1, "dead letters");
    check_equal(found.total(), 1, "stale jobs");
    const job_view seen = user.view(id);
    check_equal(seen.state, job_state::dead_letter, "state");
    check_equal(seen.last_error.type, std::string("crash"), "type of the last error");
    check_equal(seen.last_error.message, std::string("crashed too often"), "last error");
    check_equal(seen.history.size(), std::size_t{3}, "entries in the history");
    check(seen.ended.has_value(), "it has ended");
}

void restart_not_allowed(store_lab& in) {
    const job_user user(in);
    new_job j = user.make();
    j.may_restart = false;
    const identifier id = user.add(j);
    abandoned(in, user, true);
    const recovery found = user.recover();
    check_equal(found.failed, 1, "failed");
    check_equal(found.total(), 1, "stale jobs");
    const job_view seen = user.view(id);
    check_equal(seen.state, job_state::failed, "state");
    check_equal(seen.last_error.message, std::string("crash, restart not allowed"), "last error");
    check_equal(user.claim_ids(1).size(), std::size_t{0}, "jobs to claim");
}

void not_allowed_but_never_started(store_lab& in) {
    const job_user user(in);
    new_job j = user.make();
    j.may_restart = false;
    j.max_crashes = 0;
    const identifier id = user.add(j);
    for (int i = 0; i < 2; ++i) {
        abandoned(in, user, false);
        check_equal(user.recover().requeued, 1, "requeued");
    }
    check_equal(user.view(id).crash_count, 0, "crash_count: it never started");
    // A start of an earlier claim does not count for the next.
    const claimed_job mine = user.claim_one();
    user.started(mine.lease);
    user.settle(mine.lease, settlement::kind::release);
    abandoned(in, user, false);
    check_equal(user.recover().requeued, 1, "requeued, after a claim that had started and was released");
}

void cancelled_by_its_user(store_lab& in) {
    const job_user user(in);
    const identifier id = user.add();
    const claimed_job mine = user.claim_one(short_lease);
    user.started(mine.lease);
    check_equal(user.cancel(id), cancel_answer::requested, "cancel");
    in.pass(short_lease);
    const recovery found = user.recover();
    check_equal(found.deleted, 1, "deleted");
    check_equal(found.total(), 1, "stale jobs");
    check_equal(user.state_of(id), job_state::cancelled, "state");
    check_equal(user.view(id).history[0].outcome, std::string("crashed"), "outcome in the history");
}

void no_more_than_asked(store_lab& in) {
    const job_user user(in);
    user.add(10);
    check_equal(user.claim(10, short_lease).size(), std::size_t{10}, "jobs claimed");
    in.pass(short_lease);
    check_equal(user.recover(4).requeued, 4, "requeued of at most 4");
    check_equal(user.recover(4).requeued, 4, "requeued of at most 4");
    check_equal(user.recover(4).requeued, 2, "requeued of the rest");
    check_equal(user.recover(4).requeued, 0, "requeued of none");
}

void all_kinds_together(store_lab& in) {
    const job_user user(in);
    new_job never = user.make();
    never.may_restart = false;
    new_job capped = user.make();
    capped.max_crashes = 0;
    new_job doomed = user.make();
    new_job plain = user.make();
    for (const new_job* each : {&never, &capped, &doomed, &plain}) user.add(*each);
    const auto claimed = user.claim(4, short_lease);
    for (const auto& each : claimed) user.started(each.lease);
    user.cancel(doomed.id);
    in.pass(short_lease);
    const recovery found = user.recover();
    check_equal(found.requeued, 1, "requeued");
    check_equal(found.failed, 1, "failed");
    check_equal(found.deleted, 1, "deleted");
    check_equal(found.dead_letter, 1, "dead letters");
    check_equal(user.state_of(plain.id), job_state::pending, "state of the plain one");
}

void many_sweepers(store_lab& in) {
    const job_user user(in);
    const auto ids = user.add(100);
    check_equal(user.claim(100, short_lease).size(), std::size_t{100}, "jobs claimed");
    in.pass(short_lease);
    std::vector<task<result<recovery>>> calls;
    for (int i = 0; i < 20; ++i) calls.push_back(user.jobs().recover_stale(50));
    int requeued = 0;
    for (auto& each : in.at_once(std::move(calls))) requeued += in.value_of(std::move(each), "recover_stale").requeued;
    requeued += user.recover().requeued; // what they left to each other
    check_equal(requeued, 100, "jobs requeued by 20 sweepers");
    for (const identifier& each : ids) check_equal(user.view(each).crash_count, 1, "crash_count");
}

void crash_frees_no_key(store_lab& in) {
    const job_user user(in);
    new_job j = user.make();
    j.unique_key = "k";
    const identifier id = user.add(j);
    abandoned(in, user, true);
    user.recover();
    j.id = in.next_id();
    const enqueued again = user.enqueue(j);
    check(!again.created && again.id == id, "a recovered job keeps its unique key");
}

} // namespace

store_case_list job_recovery_cases() {
    return {
        {"a lease that has not run out is left alone", &not_before_its_time},
        {"a job that may restart is requeued and its crash counted", &restart_allowed},
        {"a job that crashes too often is a dead letter", &crashes_are_capped},
        {"a started job that may not restart has failed", &restart_not_allowed},
        {"a job that may not restart and never started is requeued", &not_allowed_but_never_started},
        {"its user's wish to cancel wins", &cancelled_by_its_user},
        {"recovery ends no more leases than it was asked to", &no_more_than_asked},
        {"one sweep applies each job's own rule", &all_kinds_together},
        {"twenty sweepers recover each job once", &many_sweepers},
        {"a recovered job keeps its unique key", &crash_frees_no_key},
    };
}

} // namespace holdfast::conformance
