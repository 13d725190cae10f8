// Jobs: how an attempt ends, and what is reported meanwhile.
#include "store_jobs.hpp"

namespace holdfast::conformance {

namespace {

using kind = settlement::kind;

void final_settlements(store_lab& in) {
    const job_user user(in);
    const struct {
        kind how;
        job_state state;
        std::string outcome;
    } expected[] = {{kind::succeed, job_state::succeeded, "succeeded"},
                    {kind::dead_letter, job_state::dead_letter, "dead_letter"},
                    {kind::fail, job_state::failed, "failed"},
                    {kind::cancel, job_state::cancelled, "cancelled"},
                    {kind::indeterminate, job_state::indeterminate, "indeterminate"}};
    for (const auto& each : expected) {
        const identifier id = user.add();
        const claimed_job mine = user.claim_one();
        const store_time before = in.now();
        const settled answer = user.settle({.held = &mine.lease,
                                            .how = each.how,
                                            .when = {},
                                            .error = {"smtp_error", "550 no such box"},
                                            .output = "receipt"});
        check_equal(answer.answer, write_answer::done, "answer");
        check_equal(answer.now, each.state, "state in the answer");
        const job_view seen = user.view(id);
        check_equal(seen.state, each.state, "state");
        check(seen.ended && before <= *seen.ended && *seen.ended <= in.now(), "ended by the store's clock");
        check_equal(seen.worker, std::string(), "worker");
        check(!seen.leased_until, "no lease any more");
        check_equal(seen.output, std::string("receipt"), "output");
        check_equal(seen.last_error.type, std::string("smtp_error"), "type of the last error");
        check_equal(seen.last_error.message, std::string("550 no such box"), "last error");
        check_equal(seen.history.size(), std::size_t{1}, "entries in the history");
        check_equal(seen.history[0].outcome, each.outcome, "outcome in the history");
        check_equal(seen.history[0].error.message, std::string("550 no such box"), "error in the history");
        check(seen.history[0].ended && *seen.history[0].ended >= seen.history[0].started, "times in the history");
        check_equal(user.claim_ids(1).size(), std::size_t{0}, "jobs to claim afterwards");
    }
}

void retry_waits(store_lab& in) {
    const job_user user(in);
    const identifier id = user.add();
    const claimed_job first = user.claim_one();
    check_equal(user.retry(first.lease, short_lease, {"io", "reset"}).now, job_state::waiting_retry, "state");
    check_equal(user.state_of(id), job_state::waiting_retry, "state that is seen");
    check_equal(user.claim_ids(1).size(), std::size_t{0}, "jobs to claim before it is due");
    in.pass(short_lease);
    const claimed_job second = user.claim_one();
    check_equal(second.id, id, "the job that is due again");
    check_equal(second.attempt, 2, "attempt");
    check(second.lease.token() > first.lease.token(), "the token has grown");
    const job_view seen = user.view(id);
    check_equal(seen.last_error.message, std::string("reset"), "last error");
    check_equal(seen.history.size(), std::size_t{2}, "entries in the history");
    check_equal(seen.history[0].outcome, std::string("retry"), "outcome of the first attempt");
    check_equal(seen.history[0].error.type, std::string("io"), "error of the first attempt");
    check_equal(seen.history[1].outcome, std::string("running"), "outcome of the second attempt");
    check_equal(seen.history[1].number, 2, "number of the second attempt");
}

void last_attempt_is_dead(store_lab& in) {
    const job_user user(in);
    new_job j = user.make();
    j.max_attempts = 3;
    const identifier id = user.add(j);
    for (int attempt = 1; attempt <= 3; ++attempt) {
        const claimed_job mine = user.claim_one();
        check_equal(mine.attempt, attempt, "attempt");
        const settled answer = user.retry(mine.lease, 0s);
        check_equal(answer.now, attempt == 3 ? job_state::dead_letter : job_state::waiting_retry, "state after it");
    }
    check_equal(user.state_of(id), job_state::dead_letter, "state when the attempts are spent");
    check_equal(user.view(id).attempts, 3, "attempts");
    check_equal(user.claim_ids(1).size(), std::size_t{0}, "jobs to claim");
}

void release_burns_nothing(store_lab& in) {
    const job_user user(in);
    new_job j = user.make();
    j.max_attempts = 1;
    const identifier id = user.add(j);
    std::uint64_t token = 0;
    for (int i = 0; i < 5; ++i) {
        const claimed_job mine = user.claim_one();
        check_equal(mine.attempt, 1, "attempt");
        check(mine.lease.token() > token, "the token grows");
        token = mine.lease.token();
        check_equal(user.settle(mine.lease, kind::release).now, job_state::pending, "state");
        check_equal(user.view(id).attempts, 0, "attempts after a release");
    }
    check_equal(user.view(id).history.size(), std::size_t{5}, "entries in the history");
    check_equal(user.view(id).history[0].outcome, std::string("released"), "outcome in the history");
}

void snooze_burns_nothing(store_lab& in) {
    const job_user user(in);
    new_job j = user.make();
    j.max_attempts = 1;
    const identifier id = user.add(j);
    const claimed_job mine = user.claim_one();
    const settled answer = user.settle(
        {.held = &mine.lease, .how = kind::snooze, .when = due::after(short_lease), .error = {}, .output = {}});
    check_equal(answer.now, job_state::scheduled, "state");
    check_equal(user.claim_ids(1).size(), std::size_t{0}, "jobs to claim while it sleeps");
    in.pass(short_lease);
    check_equal(user.claim_one().attempt, 1, "attempt after it slept");
    check_equal(user.view(id).history[0].outcome, std::string("snoozed"), "outcome in the history");
}

void retry_at_a_time(store_lab& in) {
    const job_user user(in);
    const identifier id = user.add();
    const claimed_job mine = user.claim_one();
    const store_time when = in.now() + std::chrono::hours{3};
    user.settle({.held = &mine.lease, .how = kind::retry, .when = due::at(when), .error = {}, .output = {}});
    check(user.view(id).due_at == when, "due at the time that was asked for");
}

void a_batch_of_all_kinds(store_lab& in) {
    const job_user user(in);
    user.add(8);
    const auto claimed = user.claim(8);
    check_equal(claimed.size(), std::size_t{8}, "jobs claimed");
    const kind kinds[] = {kind::succeed, kind::retry,   kind::dead_letter, kind::fail,
                          kind::cancel,  kind::release, kind::snooze,      kind::indeterminate};
    const job_state states[] = {job_state::succeeded, job_state::waiting_retry, job_state::dead_letter,
                                job_state::failed,    job_state::cancelled,     job_state::pending,
                                job_state::scheduled, job_state::indeterminate};
    std::vector<settlement> batch;
    for (std::size_t i = 0; i < 8; ++i)
        batch.push_back(
            {.held = &claimed[i].lease, .how = kinds[i], .when = due::after(1h), .error = {}, .output = {}});
    const auto answers = in.ok(user.jobs().settle(batch), "settle");
    check_equal(answers.size(), std::size_t{8}, "answers");
    for (std::size_t i = 0; i < 8; ++i) {
        check_equal(answers[i].answer, write_answer::done, "answer");
        check_equal(answers[i].now, states[i], "state in the answer");
        check_equal(user.state_of(claimed[i].id), states[i], "state that is seen");
    }
}

void one_stale_in_five_hundred(store_lab& in) {
    const job_user user(in);
    user.add(500);
    const auto claimed = user.claim(500);
    check_equal(claimed.size(), std::size_t{500}, "jobs claimed");
    user.settle(claimed[250].lease, kind::dead_letter);
    std::vector<settlement> batch;
    for (const auto& each : claimed)
        batch.push_back({.held = &each.lease, .how = kind::succeed, .when = {}, .error = {}, .output = {}});
    const auto answers = in.ok(user.jobs().settle(batch), "settle");
    for (std::size_t i = 0; i < 500; ++i)
        check_equal(answers.at(i).answer, i == 250 ? write_answer::stale : write_answer::done, "answer");
    check_equal(user.count("default", job_state::succeeded), std::uint64_t{499}, "jobs that succeeded");
    check_equal(user.state_of(claimed[250].id), job_state::dead_letter, "state of the other");
}

void one_lease_twice(store_lab& in) {
    const job_user user(in);
    user.add(3);
    const auto claimed = user.claim(3);
    check_equal(claimed.size(), std::size_t{3}, "jobs claimed");
    std::vector<settlement> batch;
    for (const std::size_t i : {0, 1, 0, 2})
        batch.push_back({.held = &claimed[i].lease, .how = kind::succeed, .when = {}, .error = {}, .output = {}});
    const auto answers = in.ok(user.jobs().settle(batch), "settle");
    for (std::size_t i = 0; i < batch.size(); ++i)
        check_equal(answers.at(i).answer, i == 2 ? write_answer::stale : write_answer::done, "answer");
    check_equal(user.count("default", job_state::succeeded), std::uint64_t{3}, "jobs that succeeded");
    check_equal(user.count("default", job_state::processing), std::uint64_t{0}, "jobs that are processing");
}

void nothing_at_all(store_lab& in) {
    const job_user user(in);
    check(in.ok(user.jobs().settle({}), "settle").empty(), "no answer for no settlement");
    check(in.ok(user.jobs().heartbeat({}, 1s), "heartbeat").empty(), "no answer for no heartbeat");
    check(in.ok(user.jobs().started({}), "started").empty(), "no answer for no start");
    check(in.ok(user.jobs().progress({}), "progress").empty(), "no answer for no progress");
    check(in.ok(user.jobs().cancel({}), "cancel").empty(), "no answer for no cancellation");
    check_equal(in.ok(user.jobs().requeue({}), "requeue"), 0, "requeued of none");
}

void heartbeat_extends(store_lab& in) {
    const job_user user(in);
    const identifier id = user.add();
    const claimed_job mine = user.claim_one(short_lease);
    check_equal(user.heartbeat(mine.lease, long_lease).answer, write_answer::done, "heartbeat");
    in.pass(short_lease + 10ms);
    check_equal(user.recover().total(), 0, "stale jobs");
    const job_view seen = user.view(id);
    check(seen.leased_until && *seen.leased_until > in.now() + 1min, "the lease was extended");
}

void progress_is_seen(store_lab& in) {
    const job_user user(in);
    const identifier id = user.add();
    const claimed_job mine = user.claim_one();
    check_equal(user.progress(mine.lease, 40, "page 4 of 10"), write_answer::done, "progress");
    check_equal(user.view(id).percent, 40, "percent");
    check_equal(user.view(id).note, std::string("page 4 of 10"), "note");
    check_equal(user.progress(mine.lease, 50, ""), write_answer::done, "progress");
    check_equal(user.view(id).percent, 50, "percent");
    check_equal(user.view(id).state, job_state::processing, "state");
}

void kept_as_long_as_asked(store_lab& in) {
    const job_user user(in);
    new_job forgotten = user.make();
    forgotten.keep_for = 0s;
    user.add(forgotten);
    const claimed_job mine = user.claim_one();
    const settled answer = user.settle(mine.lease, kind::succeed);
    check_equal(answer.answer, write_answer::done, "answer");
    check_equal(answer.now, job_state::succeeded, "state in the answer");
    check(user.absence(forgotten.id).has_value(), "a job that is not to be kept is gone when it has succeeded");
    check(user.settle(mine.lease, kind::succeed).answer != write_answer::done, "it cannot be settled again");
    check_equal(user.count("default", job_state::succeeded), std::uint64_t{0}, "jobs that succeeded");

    new_job dead = user.make();
    dead.keep_for = 0s;
    user.add(dead);
    const claimed_job other = user.claim_one();
    user.settle(other.lease, kind::dead_letter);
    check_equal(user.state_of(dead.id), job_state::dead_letter, "keep_for counts for success alone");
}

} // namespace

store_case_list job_settle_cases() {
    return {
        {"each way to end is kept with its time, error and output", &final_settlements},
        {"a retry waits until it is due, with a new token", &retry_waits},
        {"a retry can be for a time", &retry_at_a_time},
        {"after the last attempt a retry is a dead letter", &last_attempt_is_dead},
        {"a release burns no attempt", &release_burns_nothing},
        {"a snooze burns no attempt", &snooze_burns_nothing},
        {"a batch may end in every way there is", &a_batch_of_all_kinds},
        {"one stale settlement in a batch of 500 hurts no other", &one_stale_in_five_hundred},
        {"one lease twice in a batch is good once", &one_lease_twice},
        {"an empty batch does nothing", &nothing_at_all},
        {"a heartbeat extends the lease", &heartbeat_extends},
        {"progress is seen by readers", &progress_is_seen},
        {"a job is kept after success as long as it asked for", &kept_as_long_as_asked},
    };
}

} // namespace holdfast::conformance
