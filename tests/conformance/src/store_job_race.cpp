// Jobs: the races in which work is lost or doubled, if it ever is.
#include <algorithm>
#include <map>

#include "store_jobs.hpp"

namespace holdfast::conformance {

namespace {

constexpr int per_round = 100;

task<void> settle_each(job_store* jobs, const std::vector<claimed_job>* claimed, std::vector<settled>* answers,
                       bool backwards) {
    const std::size_t count = claimed->size();
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t at = backwards ? count - 1 - i : i;
        const settlement one[] = {
            {.held = &(*claimed)[at].lease, .how = settlement::kind::succeed, .when = {}, .error = {}, .output = {}}};
        auto calling = jobs->settle(one);
        auto answer = co_await std::move(calling);
        (*answers)[at] = store_lab::value_of(std::move(answer), "settle").at(0);
    }
}

task<void> recover_all(job_store* jobs, int in_steps_of, int* recovered) {
    for (int i = 0; i < per_round / in_steps_of + 1; ++i) {
        auto calling = jobs->recover_stale(in_steps_of);
        auto answer = co_await std::move(calling);
        *recovered += store_lab::value_of(std::move(answer), "recover_stale").requeued;
    }
}

// Every job either was completed by its holder or was given back; never both, never neither.
void completion_against_recovery(store_lab& in, job_store& settles, job_store& recovers) {
    const job_user user(in);
    for (int round = 0; round < in.rounds(); ++round) {
        user.add(per_round);
        const auto claimed = user.claim(per_round, 1ms);
        check_equal(claimed.size(), std::size_t{per_round}, "jobs claimed");
        in.pass(1ms);
        std::vector<settled> answers(per_round);
        int recovered = 0;
        const int steps = round % 3 == 0 ? 1 : round % 3 == 1 ? 7 : per_round;
        std::vector<task<void>> both;
        both.push_back(settle_each(&settles, &claimed, &answers, round % 2 == 1));
        both.push_back(recover_all(&recovers, steps, &recovered));
        if (round % 4 >= 2) std::swap(both[0], both[1]);
        in.at_once(std::move(both));

        int completed = 0;
        for (std::size_t i = 0; i < claimed.size(); ++i) {
            const bool mine = answers[i].answer == write_answer::done;
            completed += mine ? 1 : 0;
            if (i % 10 != 0 && mine) continue; // a look at some, and at all that were overtaken
            const job_view seen = user.view(claimed[i].id);
            check_equal(seen.state, mine ? job_state::succeeded : job_state::pending, "state");
            check_equal(seen.history.size(), std::size_t{1}, "entries in the history");
            check_equal(seen.history[0].outcome, std::string(mine ? "succeeded" : "crashed"), "outcome in the history");
            check_equal(seen.crash_count, mine ? 0 : 1, "crash_count");
        }
        check_equal(completed + recovered, per_round, "jobs completed and jobs recovered");
        for (const auto& each : user.claim(per_round, long_lease)) user.settle(each.lease, settlement::kind::succeed);
        in.ok(user.jobs().purge(job_state::succeeded, 0s, 10 * per_round), "purge");
    }
}

void in_one_instance(store_lab& in) {
    completion_against_recovery(in, in.jobs(), in.jobs());
}

void between_two_instances(store_lab& in) {
    completion_against_recovery(in, in.jobs(), *in.other().jobs());
}

// Takes jobs until none is left; crashes on some by forgetting them.
task<void> work(job_store* jobs, int number, std::map<identifier, int>* done) {
    random_series random(static_cast<std::uint64_t>(number) + 1);
    for (int idle = 0; idle < 3;) {
        auto claiming = jobs->claim({.queues = {"default"}, .limit = 7, .lease_for = 1ms, .worker = "w"});
        auto answer = co_await std::move(claiming);
        const auto claimed = store_lab::value_of(std::move(answer), "claim");
        idle = claimed.empty() ? idle + 1 : 0;
        std::vector<settlement> batch;
        for (const auto& each : claimed) {
            const auto chance = random.next() % 10;
            if (chance == 0) continue; // crashed
            const auto how = chance == 1   ? settlement::kind::retry
                             : chance == 2 ? settlement::kind::release
                                           : settlement::kind::succeed;
            batch.push_back({.held = &each.lease, .how = how, .when = {}, .error = {}, .output = {}});
        }
        auto settling = jobs->settle(batch);
        auto settled_answer = co_await std::move(settling);
        const auto answers = store_lab::value_of(std::move(settled_answer), "settle");
        for (std::size_t i = 0; i < answers.size(); ++i) {
            if (answers[i].answer != write_answer::done || batch[i].how != settlement::kind::succeed) continue;
            const auto id = parse_identifier(batch[i].held->subject());
            ++(*done)[id.value()];
        }
        auto recovering = jobs->recover_stale(20);
        auto recovered = co_await std::move(recovering);
        store_lab::value_of(std::move(recovered), "recover_stale");
    }
}

// Workers that crash, retry and release, while others sweep: each job succeeds once and the store drains.
void drain(store_lab& in, const std::vector<job_store*>& through) {
    const job_user user(in);
    std::vector<new_job> batch;
    for (int i = 0; i < 300; ++i) {
        batch.push_back(user.make());
        batch.back().max_attempts = 100;
        batch.back().max_crashes = 1000;
    }
    in.ok(user.jobs().enqueue(batch), "enqueue");
    std::map<identifier, int> done;
    for (int round = 0; round < 50 && done.size() < batch.size(); ++round) {
        std::vector<std::map<identifier, int>> by_worker(8);
        std::vector<task<void>> workers;
        for (int i = 0; i < 8; ++i)
            workers.push_back(work(through[static_cast<std::size_t>(i) % through.size()], round * 8 + i,
                                   &by_worker[static_cast<std::size_t>(i)]));
        in.at_once(std::move(workers));
        for (const auto& each : by_worker)
            for (const auto& [id, times] : each) done[id] += times;
        in.pass(2ms);
        user.recover();
    }
    check_equal(done.size(), batch.size(), "jobs that succeeded");
    for (const auto& [id, times] : done) {
        check_equal(times, 1, "accepted completions of a job");
        const job_view seen = user.view(id);
        check_equal(seen.state, job_state::succeeded, "state");
        check(std::ranges::is_sorted(seen.history, {}, &attempt_entry::token), "tokens in the history grow");
        check_equal(std::ranges::count(seen.history, "succeeded", &attempt_entry::outcome), std::ptrdiff_t{1},
                    "successes in the history");
    }
    check_equal(user.count("default", job_state::succeeded), std::uint64_t{300}, "jobs that succeeded");
    check_equal(user.count("default", job_state::pending), std::uint64_t{0}, "jobs that are left");
}

void drains(store_lab& in) {
    drain(in, {&in.jobs()});
}

void drains_through_two(store_lab& in) {
    job_store& here = in.jobs();
    drain(in, {&here, in.other().jobs()});
}

void cancel_against_claim(store_lab& in) {
    const job_user user(in);
    for (int round = 0; round < in.rounds(); ++round) {
        const identifier id = user.add();
        std::vector<claimed_job> claimed;
        std::vector<cancel_answer> cancelled;
        struct calls {
            static task<void> claim(job_store* jobs, std::vector<claimed_job>* into) {
                auto calling = jobs->claim({.queues = {"default"}, .limit = 1, .lease_for = long_lease, .worker = "w"});
                auto answer = co_await std::move(calling);
                *into = store_lab::value_of(std::move(answer), "claim");
            }
            static task<void> cancel(job_store* jobs, identifier id, std::vector<cancel_answer>* into) {
                auto calling = jobs->cancel({id});
                auto answer = co_await std::move(calling);
                *into = store_lab::value_of(std::move(answer), "cancel");
            }
        };
        std::vector<task<void>> both;
        both.push_back(calls::claim(&user.jobs(), &claimed));
        both.push_back(calls::cancel(&user.jobs(), id, &cancelled));
        if (round % 2 == 1) std::swap(both[0], both[1]);
        in.at_once(std::move(both));
        if (claimed.empty()) {
            check_equal(cancelled.at(0), cancel_answer::cancelled, "cancel of a job that nobody got");
            continue;
        }
        check_equal(cancelled.at(0), cancel_answer::requested, "cancel of a job that somebody got");
        check(user.heartbeat(claimed[0].lease).cancel_requested, "the worker is told");
        user.settle(claimed[0].lease, settlement::kind::cancel);
    }
}

} // namespace

store_case_list job_race_cases() {
    return {
        {"completion races recovery: one of them wins", &in_one_instance},
        {"completion races recovery through another instance", &between_two_instances},
        {"cancel races claim: the worker is told, or never gets it", &cancel_against_claim},
        {"workers that crash, retry and release drain the store, each job once", &drains},
        {"workers of two instances drain the store, each job once", &drains_through_two},
    };
}

} // namespace holdfast::conformance
