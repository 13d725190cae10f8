// Jobs: cancelling, before and while they run; purging what has ended.
#include "store_jobs.hpp"

namespace holdfast::conformance {

namespace {

using kind = settlement::kind;

void before_it_runs(store_lab& in) {
    const job_user user(in);
    const identifier pending = user.add();
    new_job later = user.make();
    later.when = due::after(1h);
    user.add(later);
    check_equal(user.cancel(pending), cancel_answer::cancelled, "cancel of a pending job");
    check_equal(user.cancel(later.id), cancel_answer::cancelled, "cancel of a scheduled job");
    for (const identifier& each : {pending, later.id}) {
        check_equal(user.state_of(each), job_state::cancelled, "state");
        check(user.view(each).ended.has_value(), "it has ended");
    }
    check_equal(user.claim_ids(1).size(), std::size_t{0}, "jobs to claim");
    check_equal(user.cancel(pending), cancel_answer::already_ended, "cancel again");
    check_equal(user.cancel(in.next_id()), cancel_answer::not_found, "cancel of a job that never was");
}

void while_it_waits_for_a_retry(store_lab& in) {
    const job_user user(in);
    const identifier id = user.add();
    const claimed_job mine = user.claim_one();
    user.retry(mine.lease, 1h);
    check_equal(user.cancel(id), cancel_answer::cancelled, "cancel");
    check_equal(user.state_of(id), job_state::cancelled, "state");
}

void while_it_runs(store_lab& in) {
    const job_user user(in);
    const identifier id = user.add();
    const claimed_job mine = user.claim_one();
    check_equal(user.heartbeat(mine.lease).cancel_requested, false, "cancel_requested before");
    check_equal(user.cancel(id), cancel_answer::requested, "cancel");
    check_equal(user.cancel(id), cancel_answer::requested, "cancel again");
    check_equal(user.state_of(id), job_state::processing, "state: its worker decides");
    check_equal(user.view(id).cancel_requested, true, "cancel_requested that is seen");
    const beat pulse = user.heartbeat(mine.lease);
    check_equal(pulse.answer, write_answer::done, "heartbeat");
    check_equal(pulse.cancel_requested, true, "cancel_requested in the heartbeat");
    check_equal(user.settle(mine.lease, kind::cancel).now, job_state::cancelled, "state");
    check_equal(user.cancel(id), cancel_answer::already_ended, "cancel after the end");
}

// What would make it run again ends it instead; what has ended has ended.
void the_wish_outlives_the_attempt(store_lab& in) {
    const job_user user(in);
    const auto settled_as = [&](kind how) {
        const identifier id = user.add();
        const claimed_job mine = user.claim_one();
        user.cancel(id);
        return user.settle({.held = &mine.lease, .how = how, .when = due::after(1h), .error = {}, .output = {}}).now;
    };
    check_equal(settled_as(kind::retry), job_state::cancelled, "retry, after a cancel");
    check_equal(settled_as(kind::release), job_state::cancelled, "release, after a cancel");
    check_equal(settled_as(kind::snooze), job_state::cancelled, "snooze, after a cancel");
    check_equal(settled_as(kind::succeed), job_state::succeeded, "success, after a cancel");
    check_equal(settled_as(kind::dead_letter), job_state::dead_letter, "dead letter, after a cancel");
}

void many_in_one_call(store_lab& in) {
    const job_user user(in);
    user.add(3);
    const auto claimed = user.claim(2);
    user.settle(claimed.at(0).lease, kind::succeed);
    const auto waiting = user.list({.state = job_state::pending, .queue = {}, .type = {}});
    const auto answers =
        in.ok(user.jobs().cancel({claimed[0].id, claimed.at(1).id, waiting.at(0), in.next_id()}), "cancel");
    const cancel_answer expected[] = {cancel_answer::already_ended, cancel_answer::requested, cancel_answer::cancelled,
                                      cancel_answer::not_found};
    check_equal(answers.size(), std::size_t{4}, "answers");
    for (std::size_t i = 0; i < 4; ++i) check_equal(answers[i], expected[i], "answer");
}

void from_another_instance(store_lab& in) {
    const job_user here(in);
    const job_user there(in, *in.other().jobs());
    const identifier id = here.add();
    const claimed_job mine = here.claim_one();
    check_equal(there.cancel(id), cancel_answer::requested, "cancel");
    check_equal(here.heartbeat(mine.lease).cancel_requested, true, "cancel_requested in the heartbeat");
}

void frees_the_unique_key(store_lab& in) {
    const job_user user(in);
    new_job j = user.make();
    j.unique_key = "k";
    user.cancel(user.add(j));
    j.id = in.next_id();
    user.add(j);
}

void purge_by_age(store_lab& in) {
    const job_user user(in);
    const auto purge = [&](job_state state, duration older_than, int limit = 1000) {
        return in.ok(user.jobs().purge(state, older_than, limit), "purge");
    };
    using clock = std::chrono::steady_clock;
    identifier old, young;
    int purged = 0;
    // What took so long that the young has grown old shows nothing, and is done once more.
    for (int tries = 0; tries < 10; ++tries) {
        old = user.ended_as(kind::dead_letter);
        in.pass(short_lease);
        const auto born = clock::now();
        young = user.ended_as(kind::dead_letter);
        check_equal(purge(job_state::dead_letter, 1h), 0, "purged of those older than an hour");
        purged = purge(job_state::dead_letter, short_lease);
        if (clock::now() - born < short_lease) break;
        purge(job_state::dead_letter, 0s);
    }
    const identifier good = user.ended_as(kind::succeed);
    const identifier open = user.add();
    check_equal(purged, 1, "purged of the old");
    check(user.absence(old) == job_absence::expired, "what was purged is told apart from what never was");
    check(user.absence(in.next_id()) == job_absence::never_known, "what never was is told apart from what was purged");
    check_equal(user.state_of(young), job_state::dead_letter, "state of the young");
    check_equal(user.state_of(good), job_state::succeeded, "state of another state");
    check_equal(purge(job_state::succeeded, 0s), 1, "purged of what succeeded");
    check(user.absence(good) == job_absence::expired, "expired");
    check_equal(user.state_of(open), job_state::pending, "state of what is open");
}

void purge_in_portions(store_lab& in) {
    const job_user user(in);
    for (int i = 0; i < 5; ++i) user.ended_as(kind::cancel);
    const auto purge = [&] { return in.ok(user.jobs().purge(job_state::cancelled, 0s, 2), "purge"); };
    in.pass(1ms);
    check_equal(purge(), 2, "purged of at most 2");
    check_equal(purge(), 2, "purged of at most 2");
    check_equal(purge(), 1, "purged of the rest");
    check_equal(purge(), 0, "purged of none");
    check_equal(user.count("default", job_state::cancelled), std::uint64_t{0}, "jobs that are left");
}

void open_jobs_cannot_be_purged(store_lab& in) {
    const job_user user(in);
    const identifier id = user.add();
    for (const job_state each :
         {job_state::scheduled, job_state::pending, job_state::processing, job_state::waiting_retry})
        in.refused(user.jobs().purge(each, 0s, 10), {errc::invalid_argument}, "purge of jobs that have not ended");
    check_equal(user.state_of(id), job_state::pending, "state");
}

void discard_by_id(store_lab& in) {
    const job_user user(in);
    const auto discard = [&](std::vector<identifier> which) {
        return in.ok(user.jobs().discard(std::move(which)), "discard");
    };
    const identifier dead = user.ended_as(kind::dead_letter);
    const identifier other = user.ended_as(kind::dead_letter);
    const identifier good = user.ended_as(kind::succeed);
    const identifier open = user.add();
    check_equal(discard({dead, open, good, in.next_id()}), 2,
                "discarded of two that ended, an open and an unknown one");
    check(user.absence(dead) == job_absence::expired, "what was discarded is told apart from what never was");
    check(user.absence(good) == job_absence::expired, "expired");
    check_equal(user.state_of(other), job_state::dead_letter, "state of one that was not named");
    check_equal(user.state_of(open), job_state::pending, "state of one that has not ended");
    check_equal(user.count("default", job_state::dead_letter), std::uint64_t{1}, "dead letters that are left");
    check_equal(discard({dead}), 0, "discarded of one that is gone");
    check_equal(discard({}), 0, "discarded of none");
}

} // namespace

store_case_list job_cancel_cases() {
    return {
        {"a job that does not run yet is cancelled at once", &before_it_runs},
        {"a job that waits for a retry is cancelled at once", &while_it_waits_for_a_retry},
        {"a running job's worker is told, and decides", &while_it_runs},
        {"a cancelled job never runs again", &the_wish_outlives_the_attempt},
        {"each of a batch gets its own answer", &many_in_one_call},
        {"a cancel from another instance reaches the worker", &from_another_instance},
        {"a cancelled job frees its unique key", &frees_the_unique_key},
        {"purge forgets by state and age, and a note stays", &purge_by_age},
        {"purge forgets no more than it was asked to", &purge_in_portions},
        {"what has not ended cannot be purged", &open_jobs_cannot_be_purged},
        {"discard forgets the named jobs that have ended, and a note stays", &discard_by_id},
    };
}

} // namespace holdfast::conformance
