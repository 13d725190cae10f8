// Units of work: several that want the same thing.
#include "store_jobs.hpp"

namespace holdfast::conformance {

namespace {

bool is_conflict(const error& e) {
    return e.code == errc::duplicate || e.code == errc::stale_lease;
}

struct end {
    bool promised = false; // the call inside the unit said yes
    bool committed = false;
};

task<void> claim_in_a_unit(store* in, idempotency_store* keys, std::string key, end* into) {
    auto beginning = in->begin();
    auto begun = co_await std::move(beginning);
    auto unit = store_lab::value_of(std::move(begun), "begin");
    auto claiming = keys->try_claim(key, 1h, unit.get());
    auto claimed = co_await std::move(claiming);
    into->promised = store_lab::value_of(std::move(claimed), "try_claim");
    auto committing = unit->commit();
    const auto committed = co_await std::move(committing);
    into->committed = committed.has_value();
    if (!committed)
        check(is_conflict(committed.error()), "a commit fails for a conflict: " + committed.error().message);
}

void one_of_twenty_claims(store_lab& in) {
    in.needs_units();
    idempotency_store& keys = in.idempotency();
    for (int round = 0; round < 3; ++round) {
        std::vector<end> ends(20);
        std::vector<task<void>> units;
        for (end& each : ends) units.push_back(claim_in_a_unit(&in.store(), &keys, "k" + std::to_string(round), &each));
        in.at_once(std::move(units));
        int won = 0;
        for (const end& each : ends) won += each.promised && each.committed ? 1 : 0;
        check_equal(won, 1, "units out of 20 that claimed the key and were committed");
    }
}

task<void> enqueue_in_a_unit(store* in, job_store* jobs, std::vector<new_job> batch, end* into) {
    auto beginning = in->begin();
    auto begun = co_await std::move(beginning);
    auto unit = store_lab::value_of(std::move(begun), "begin");
    auto enqueueing = jobs->enqueue(std::move(batch), unit.get());
    auto answer = co_await std::move(enqueueing);
    into->promised = store_lab::value_of(std::move(answer), "enqueue").back().created;
    auto committing = unit->commit();
    const auto committed = co_await std::move(committing);
    into->committed = committed.has_value();
    if (!committed)
        check(is_conflict(committed.error()), "a commit fails for a conflict: " + committed.error().message);
}

void one_of_twenty_unique_keys(store_lab& in) {
    in.needs_units();
    const job_user user(in);
    std::vector<end> ends(20);
    std::vector<new_job> witnesses;
    std::vector<task<void>> units;
    for (end& each : ends) {
        new_job wanted = user.make();
        wanted.unique_key = "k";
        witnesses.push_back(user.make("witnesses")); // shares the fate of its unit
        units.push_back(enqueue_in_a_unit(&in.store(), &user.jobs(), {witnesses.back(), wanted}, &each));
    }
    in.at_once(std::move(units));
    int won = 0;
    for (std::size_t i = 0; i < ends.size(); ++i) {
        won += ends[i].promised && ends[i].committed ? 1 : 0;
        check_equal(!user.absence(witnesses[i].id).has_value(), ends[i].committed, "all of a unit, or nothing");
    }
    check_equal(won, 1, "units out of 20 that enqueued the unique job and were committed");
    check_equal(user.claim_ids(50).size(), std::size_t{1}, "unique jobs to claim");
}

task<void> settle_in_a_unit(store* in, job_store* jobs, const job_lease* held, new_job follow_up, end* into) {
    auto beginning = in->begin();
    auto begun = co_await std::move(beginning);
    auto unit = store_lab::value_of(std::move(begun), "begin");
    const settlement one[] = {{.held = held, .how = settlement::kind::succeed, .when = {}, .error = {}, .output = {}}};
    auto settling = jobs->settle(one, unit.get());
    auto settled_answer = co_await std::move(settling);
    into->promised = store_lab::value_of(std::move(settled_answer), "settle").at(0).answer == write_answer::done;
    if (!into->promised) co_return; // dropped: the follow-up must not happen
    auto enqueueing = jobs->enqueue({std::move(follow_up)}, unit.get());
    const auto answer = co_await std::move(enqueueing);
    if (!answer) {
        check(is_conflict(answer.error()), "a call in a unit fails for a conflict: " + answer.error().message);
        co_return;
    }
    auto committing = unit->commit();
    const auto committed = co_await std::move(committing);
    into->committed = committed.has_value();
    if (!committed)
        check(is_conflict(committed.error()), "a commit fails for a conflict: " + committed.error().message);
}

task<void> recover(job_store* jobs, int* requeued) {
    auto recovering = jobs->recover_stale(10);
    auto answer = co_await std::move(recovering);
    *requeued += store_lab::value_of(std::move(answer), "recover_stale").requeued;
}

// The follow-up exists exactly when the completion was accepted.
void completion_in_a_unit_against_recovery(store_lab& in) {
    in.needs_units();
    const job_user user(in);
    for (int round = 0; round < in.rounds(); ++round) {
        const identifier id = user.add();
        const claimed_job mine = user.claim_one(1ms);
        in.pass(1ms);
        const new_job follow_up = user.make("next");
        end how;
        int requeued = 0;
        std::vector<task<void>> both;
        both.push_back(settle_in_a_unit(&in.store(), &user.jobs(), &mine.lease, follow_up, &how));
        both.push_back(recover(&user.jobs(), &requeued));
        if (round % 2 == 1) std::swap(both[0], both[1]);
        in.at_once(std::move(both));
        requeued += user.recover().requeued; // a sweep may leave alone what a unit has its hands on
        check_equal(requeued, how.committed ? 0 : 1, "jobs requeued");
        check_equal(user.state_of(id), how.committed ? job_state::succeeded : job_state::pending, "state");
        check_equal(!user.absence(follow_up.id).has_value(), how.committed, "the follow-up is there");
        if (how.committed) continue;
        // A unit that was dropped may have its hands on the job for a moment more.
        auto again = user.claim(5);
        for (int tries = 0; again.empty() && tries < 1000; ++tries) {
            in.pass(1ms);
            again = user.claim(5);
        }
        check_equal(again.size(), std::size_t{1}, "requeued jobs to claim");
        user.settle(again.front().lease, settlement::kind::succeed);
    }
}

void many_units(store_lab& in) {
    in.needs_units();
    const job_user user(in);
    std::vector<end> ends(30);
    std::vector<task<void>> units;
    for (end& each : ends)
        units.push_back(enqueue_in_a_unit(&in.store(), &user.jobs(), {user.make(), user.make()}, &each));
    in.at_once(std::move(units));
    for (const end& each : ends) check(each.promised && each.committed, "units without a conflict are all committed");
    check_equal(user.claim_ids(100).size(), std::size_t{60}, "jobs to claim");
}

} // namespace

store_case_list unit_conflict_cases() {
    return {
        {"of twenty units that claim a key one is committed with it", &one_of_twenty_claims},
        {"of twenty units that enqueue a unique job one is committed with it", &one_of_twenty_unique_keys},
        {"completion in a unit races recovery: what follows shares its fate", &completion_in_a_unit_against_recovery},
        {"thirty units without a conflict are all committed", &many_units},
    };
}

} // namespace holdfast::conformance
