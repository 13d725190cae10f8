// Jobs: a holder that was overtaken can write nothing.
#include "store_jobs.hpp"

namespace holdfast::conformance {

namespace {

using kind = settlement::kind;

constexpr kind all_kinds[] = {kind::succeed, kind::retry,   kind::dead_letter, kind::fail,
                              kind::cancel,  kind::release, kind::snooze,      kind::indeterminate};

// Whatever it tries, it is refused, and the job stays as it is.
void all_is_refused(const job_user& user, const claimed_job& late) {
    const job_view before = user.view(late.id);
    check_equal(user.started(late.lease), write_answer::stale, "started, by a stale lease");
    const beat pulse = user.heartbeat(late.lease);
    check_equal(pulse.answer, write_answer::stale, "heartbeat, by a stale lease");
    check_equal(user.progress(late.lease, 99, "late"), write_answer::stale, "progress, by a stale lease");
    for (const kind how : all_kinds)
        check_equal(user.settle(late.lease, how).answer, write_answer::stale, "settle, by a stale lease");
    const job_view after = user.view(late.id);
    check_equal(after.state, before.state, "state, after what was refused");
    check_equal(after.attempts, before.attempts, "attempts, after what was refused");
    check_equal(after.percent, before.percent, "percent, after what was refused");
    check_equal(after.history.size(), before.history.size(), "history, after what was refused");
    check(after.leased_until == before.leased_until, "the lease, after what was refused");
    check_equal(after.output, before.output, "output, after what was refused");
}

void after_recovery(store_lab& in) {
    const job_user user(in);
    user.add();
    const claimed_job late = user.claim_one(short_lease);
    in.pass(short_lease);
    check_equal(user.recover().requeued, 1, "jobs requeued");
    all_is_refused(user, late);
}

void while_running_again(store_lab& in) {
    const job_user user(in);
    const identifier id = user.add();
    const claimed_job late = user.claim_one(short_lease);
    in.pass(short_lease);
    user.recover();
    const claimed_job current = user.claim_one();
    check(current.lease.token() > late.lease.token(), "the token has grown");
    all_is_refused(user, late);
    check_equal(user.state_of(id), job_state::processing, "the job runs on");
    check_equal(user.progress(current.lease, 10, "fine"), write_answer::done, "progress by the current holder");
    check_equal(user.settle(current.lease, kind::succeed).answer, write_answer::done, "settle by the current holder");
}

void after_another_finished(store_lab& in) {
    const job_user user(in);
    user.add();
    const claimed_job late = user.claim_one(short_lease);
    in.pass(short_lease);
    user.recover();
    const claimed_job current = user.claim_one();
    user.settle({.held = &current.lease, .how = kind::succeed, .when = {}, .error = {}, .output = "good"});
    all_is_refused(user, late);
}

void every_settlement_ends_the_lease(store_lab& in) {
    const job_user user(in);
    for (const kind how : all_kinds) {
        const identifier id = user.add();
        const claimed_job mine = user.claim_one();
        check_equal(mine.id, id, "the job that was claimed");
        check_equal(
            user.settle({.held = &mine.lease, .how = how, .when = due::after(1h), .error = {}, .output = {}}).answer,
            write_answer::done, "settle");
        all_is_refused(user, mine);
        if (how == kind::release) user.settle(user.claim_one().lease, kind::succeed);
    }
}

void expired_but_not_taken(store_lab& in) {
    const job_user user(in);
    user.add(2);
    const auto claimed = user.claim(2, short_lease);
    in.pass(short_lease + 10ms);
    check_equal(user.heartbeat(claimed.at(0).lease).answer, write_answer::done, "heartbeat after the lease ran out");
    check_equal(user.settle(claimed.at(1).lease, kind::succeed).answer, write_answer::done,
                "settle after the lease ran out");
    check_equal(user.recover().total(), 0, "stale jobs");
}

void tokens_grow_for_ever(store_lab& in) {
    const job_user user(in);
    const identifier id = user.add();
    std::uint64_t last = 0;
    const auto grows = [&](const claimed_job& mine) {
        check(mine.lease.token() > last, "the token is larger than any before");
        last = mine.lease.token();
    };
    const claimed_job first = user.claim_one();
    grows(first);
    user.settle(first.lease, kind::release);
    const claimed_job second = user.claim_one();
    grows(second);
    user.retry(second.lease, 0s);
    const claimed_job third = user.claim_one(short_lease);
    grows(third);
    in.pass(short_lease);
    user.recover();
    const claimed_job fourth = user.claim_one();
    grows(fourth);
    user.settle(fourth.lease, kind::dead_letter);
    user.requeue({id});
    grows(user.claim_one());
    all_is_refused(user, fourth);
}

// Whatever the store remembers of a job that it does not keep: who held it may still be there.
void tokens_outlive_the_job(store_lab& in) {
    const job_user user(in);
    new_job j = user.make();
    j.keep_for = duration::zero();
    user.add(j);
    const claimed_job late = user.claim_one(short_lease);
    in.pass(short_lease);
    user.recover();
    const claimed_job second = user.claim_one();
    check_equal(user.settle(second.lease, kind::succeed).now, job_state::succeeded, "state of a job that is not kept");
    if (!user.enqueue(j).created) return; // a note has stayed
    const claimed_job third = user.claim_one();
    check(third.lease.token() > second.lease.token(), "the token is larger than any before");
    check_equal(user.view(j.id).history.size(), std::size_t{1}, "attempts of the new job");
    all_is_refused(user, late);
    all_is_refused(user, second);
    check_equal(user.settle(third.lease, kind::succeed).answer, write_answer::done, "settle by its holder");
}

void unknown_jobs_are_gone(store_lab& in) {
    const job_user user(in);
    const job_lease nobody(to_text(in.next_id()), 1);
    check_equal(user.heartbeat(nobody).answer, write_answer::gone, "heartbeat of a job that never was");
    check_equal(user.settle(nobody, kind::succeed).answer, write_answer::gone, "settle of a job that never was");
    check_equal(user.started(nobody), write_answer::gone, "started, of a job that never was");
    check_equal(user.progress(nobody, 1, ""), write_answer::gone, "progress of a job that never was");
    user.add();
    const claimed_job mine = user.claim_one();
    const job_lease forged(mine.lease.subject(), mine.lease.token() + 1);
    check_equal(user.settle(forged, kind::succeed).answer, write_answer::stale, "settle with a token of the future");
}

void through_another_instance(store_lab& in) {
    const job_user here(in);
    const job_user there(in, *in.other().jobs());
    here.add();
    const claimed_job late = here.claim_one(short_lease);
    in.pass(short_lease);
    check_equal(there.recover().requeued, 1, "jobs requeued");
    const claimed_job current = there.claim_one();
    all_is_refused(here, late);
    check_equal(here.settle(current.lease, kind::succeed).answer, write_answer::done,
                "a lease counts, not the instance that it came through");
}

} // namespace

store_case_list job_fencing_cases() {
    return {
        {"after recovery the old holder can write nothing", &after_recovery},
        {"while the job is running again the old holder can write nothing", &while_running_again},
        {"after another has finished the old holder can write nothing", &after_another_finished},
        {"every settlement ends its lease", &every_settlement_ends_the_lease},
        {"a lease that ran out is good until somebody has ended it", &expired_but_not_taken},
        {"tokens grow for ever", &tokens_grow_for_ever},
        {"a token does not come back with a job that was deleted and enqueued again", &tokens_outlive_the_job},
        {"a job that never was is gone, a forged token is stale", &unknown_jobs_are_gone},
        {"fencing holds between two instances", &through_another_instance},
    };
}

} // namespace holdfast::conformance
