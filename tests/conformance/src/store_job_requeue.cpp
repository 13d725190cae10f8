// Jobs: a new generation of attempts.
#include "store_jobs.hpp"

namespace holdfast::conformance {

namespace {

using kind = settlement::kind;

void a_new_generation(store_lab& in) {
    const job_user user(in);
    new_job j = user.make();
    j.max_attempts = 2;
    const identifier id = user.add(j);
    for (int i = 0; i < 2; ++i) user.retry(user.claim_one().lease, 0s, {"io", "reset"});
    check_equal(user.state_of(id), job_state::dead_letter, "state when the attempts are spent");
    check_equal(user.requeue({id}), 1, "requeued");
    const job_view seen = user.view(id);
    check_equal(seen.state, job_state::pending, "state");
    check_equal(seen.generation, 2, "generation");
    check_equal(seen.attempts, 0, "attempts");
    check(!seen.ended, "it has not ended");
    check_equal(seen.history.size(), std::size_t{2}, "entries in the history");
    const claimed_job again = user.claim_one();
    check_equal(again.generation, 2, "generation of the claim");
    check_equal(again.attempt, 1, "attempt of the claim");
    user.settle(again.lease, kind::succeed);
    const job_view ended = user.view(id);
    check_equal(ended.history.size(), std::size_t{3}, "entries in the history");
    check_equal(ended.history[0].generation, 1, "generation of the first");
    check_equal(ended.history[2].generation, 2, "generation of the last");
    check_equal(ended.history[2].number, 1, "number of the last");
    check_equal(ended.history[0].error.message, std::string("reset"), "error of the first");
}

void which_states(store_lab& in) {
    const job_user user(in);
    for (const kind how : {kind::dead_letter, kind::fail, kind::cancel, kind::indeterminate}) {
        const identifier id = user.ended_as(how);
        check_equal(user.requeue({id}), 1, "requeued of what ended badly");
        user.settle(user.claim_one().lease, kind::succeed);
        check_equal(user.requeue({id}), 0, "requeued of what succeeded");
        check_equal(user.state_of(id), job_state::succeeded, "state");
    }
    const identifier open = user.add();
    check_equal(user.requeue({open}), 0, "requeued of what is pending");
    const claimed_job mine = user.claim_one();
    check_equal(user.requeue({open}), 0, "requeued of what is running");
    check_equal(user.settle(mine.lease, kind::succeed).answer, write_answer::done, "settle");
    check_equal(user.requeue({in.next_id()}), 0, "requeued of what never was");
}

void many(store_lab& in) {
    const job_user user(in);
    const identifier dead = user.ended_as(kind::dead_letter);
    const identifier failed = user.ended_as(kind::fail);
    const identifier good = user.ended_as(kind::succeed);
    check_equal(user.requeue({dead, good, failed, in.next_id(), dead}), 2, "requeued of a mixed batch");
    check_equal(user.view(dead).generation, 2, "generation of one that was named twice");
    check_equal(user.claim_ids(9).size(), std::size_t{2}, "jobs to claim");
}

void forgets_crashes_and_the_wish(store_lab& in) {
    const job_user user(in);
    new_job j = user.make();
    j.max_crashes = 0;
    const identifier id = user.add(j);
    user.claim_one(short_lease);
    in.pass(short_lease);
    check_equal(user.recover().dead_letter, 1, "dead letters");
    user.requeue({id});
    check_equal(user.view(id).crash_count, 0, "crash_count");
    const claimed_job mine = user.claim_one();
    user.cancel(id);
    user.settle(mine.lease, kind::cancel);
    user.requeue({id});
    check_equal(user.view(id).cancel_requested, false, "cancel_requested");
    check_equal(user.claim_one().cancel_requested, false, "cancel_requested of the claim");
}

void respects_unique_keys(store_lab& in) {
    const job_user user(in);
    new_job j = user.make();
    j.unique_key = "k";
    const identifier first = user.add(j);
    user.settle(user.claim_one().lease, kind::dead_letter);
    j.id = in.next_id();
    const identifier second = user.add(j);
    check_equal(user.requeue({first}), 0, "requeued while another has its unique key");
    check_equal(user.state_of(first), job_state::dead_letter, "state");
    user.settle(user.claim_one().lease, kind::succeed);
    check_equal(user.requeue({first}), 1, "requeued when its unique key is free");
    j.id = in.next_id();
    const enqueued third = user.enqueue(j);
    check(!third.created && third.id == first, "a requeued job has its unique key again");
    check_equal(user.state_of(second), job_state::succeeded, "state of the second");
}

void two_of_one_key(store_lab& in) {
    const job_user user(in);
    std::vector<identifier> dead;
    for (int i = 0; i < 2; ++i) {
        new_job j = user.make();
        j.unique_key = "k";
        dead.push_back(user.add(j));
        user.settle(user.claim_one().lease, kind::dead_letter);
    }
    check_equal(user.requeue(dead), 1, "requeued of two with the same unique key");
    check_equal(user.claim_ids(9).size(), std::size_t{1}, "jobs to claim");
}

void at_once(store_lab& in) {
    const job_user user(in);
    const identifier id = user.ended_as(kind::dead_letter);
    std::vector<task<result<int>>> calls;
    for (int i = 0; i < 20; ++i) calls.push_back(user.jobs().requeue({id}));
    int requeued = 0;
    for (auto& each : in.at_once(std::move(calls))) requeued += in.value_of(std::move(each), "requeue");
    check_equal(requeued, 1, "callers out of 20 that requeued the job");
    check_equal(user.view(id).generation, 2, "generation");
}

} // namespace

store_case_list job_requeue_cases() {
    return {
        {"requeueing begins a new generation and keeps the history", &a_new_generation},
        {"what ended badly can be requeued, nothing else", &which_states},
        {"many are requeued in one call", &many},
        {"a new generation has no crashes and no wish to cancel", &forgets_crashes_and_the_wish},
        {"a job whose unique key is taken stays where it is", &respects_unique_keys},
        {"of two with the same unique key one is requeued", &two_of_one_key},
        {"twenty callers requeue a job once", &at_once},
    };
}

} // namespace holdfast::conformance
