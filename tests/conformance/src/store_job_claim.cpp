// Jobs: who gets which, and when.
#include <algorithm>
#include <set>
#include <thread>

#include "store_jobs.hpp"

namespace holdfast::conformance {

namespace {

identifier add_with(const job_user& user, std::string queue, int priority, due when = {}) {
    new_job j = user.make(std::move(queue));
    j.priority = priority;
    j.when = when;
    return user.add(j);
}

void order_in_a_queue(store_lab& in) {
    const job_user user(in);
    const store_time now = in.now();
    const identifier low = add_with(user, "default", -5, due::at(now - 50ms));
    const identifier later = add_with(user, "default", 0, due::at(now - 10ms));
    const identifier earlier = add_with(user, "default", 0, due::at(now - 20ms));
    const identifier same_a = add_with(user, "default", 7, due::at(now - 5ms));
    const identifier same_b = add_with(user, "default", 7, due::at(now - 5ms));
    const identifier high = add_with(user, "default", 1000, due::at(now - 1ms));
    add_with(user, "default", 2000, due::after(1h));
    check_equal(user.claim_ids(2), std::vector{high, same_a}, "first by priority, then by id");
    check_equal(user.claim_ids(10), std::vector{same_b, earlier, later, low}, "then by due time");
}

void queues_in_order_of_preference(store_lab& in) {
    const job_user user(in);
    const identifier a = add_with(user, "a", 0);
    const identifier b = add_with(user, "b", 100);
    const identifier b2 = add_with(user, "b", 0);
    const identifier c = add_with(user, "c", 1000);
    check_equal(user.claim_ids(3, {"b", "a"}), std::vector{b, b2, a}, "all of b before a, nothing of c");
    check_equal(user.claim_ids(3, {"a", "b"}), std::vector<identifier>{}, "what is left in a and b");
    check_equal(user.claim_ids(3, {"nowhere", "c"}), std::vector{c}, "what is in c");
    check_equal(user.claim_ids(3, {}), std::vector<identifier>{}, "a claim from no queue");
}

void attempt_and_worker(store_lab& in) {
    const job_user user(in);
    const identifier id = user.add();
    const store_time before = in.now();
    const auto claimed = user.claim(1, long_lease, {"default"}, "worker-1");
    check_equal(claimed.size(), std::size_t{1}, "jobs claimed");
    check_equal(claimed[0].attempt, 1, "attempt");
    check(claimed[0].lease.token() > 0, "tokens start above zero");
    const job_view seen = user.view(id);
    check_equal(seen.state, job_state::processing, "state");
    check_equal(seen.attempts, 1, "attempts");
    check_equal(seen.worker, std::string("worker-1"), "worker");
    check(seen.leased_until && *seen.leased_until >= before + long_lease && *seen.leased_until <= in.now() + long_lease,
          "leased until, by the store's clock");
    check_equal(seen.history.size(), std::size_t{1}, "entries in the history");
    check_equal(seen.history[0].worker, std::string("worker-1"), "worker in the history");
    check_equal(seen.history[0].token, claimed[0].lease.token(), "token in the history");
    check_equal(seen.history[0].number, 1, "number in the history");
    check_equal(seen.history[0].outcome, std::string("running"), "outcome in the history");
    check(!seen.history[0].ended, "not ended in the history");
}

void claimed_once(store_lab& in) {
    const job_user user(in);
    const auto ids = user.add(300);
    std::vector<task<result<std::vector<claimed_job>>>> calls;
    for (int i = 0; i < 100; ++i)
        calls.push_back(user.jobs().claim(
            {.queues = {"default"}, .limit = 5, .lease_for = long_lease, .worker = "w" + std::to_string(i)}));
    std::set<identifier> seen;
    for (auto& each : in.at_once(std::move(calls)))
        for (const auto& job : in.value_of(std::move(each), "claim"))
            check(seen.insert(job.id).second, "no job is claimed by two of 100 workers");
    for (const identifier& each : user.claim_ids(300)) check(seen.insert(each).second, "no job is claimed twice");
    check_equal(seen.size(), ids.size(), "jobs that were claimed");
}

void one_job_for_a_hundred(store_lab& in) {
    const job_user user(in);
    const identifier id = user.add();
    std::vector<task<result<std::vector<claimed_job>>>> calls;
    for (int i = 0; i < 100; ++i)
        calls.push_back(user.jobs().claim({.queues = {"default"}, .limit = 1, .lease_for = long_lease, .worker = "w"}));
    std::size_t given = 0;
    for (auto& each : in.at_once(std::move(calls))) given += in.value_of(std::move(each), "claim").size();
    check_equal(given, std::size_t{1}, "claimants out of 100 that got the job");
    check_equal(user.view(id).history.size(), std::size_t{1}, "entries in its history");
}

void two_instances_share_the_work(store_lab& in) {
    const job_user here(in);
    const job_user there(in, *in.other().jobs());
    const auto ids = here.add(200);
    std::vector<task<result<std::vector<claimed_job>>>> calls;
    for (int i = 0; i < 40; ++i)
        calls.push_back((i % 2 == 0 ? here : there)
                            .jobs()
                            .claim({.queues = {"default"}, .limit = 10, .lease_for = long_lease, .worker = "w"}));
    std::set<identifier> seen;
    for (auto& each : in.at_once(std::move(calls)))
        for (const auto& job : in.value_of(std::move(each), "claim"))
            check(seen.insert(job.id).second, "no job is claimed through both instances");
    for (const identifier& each : there.claim_ids(200)) check(seen.insert(each).second, "no job is claimed twice");
    check_equal(seen.size(), ids.size(), "jobs that were claimed");
}

void paused_queues(store_lab& in) {
    const job_user user(in);
    const identifier a = add_with(user, "a", 0);
    const identifier b = add_with(user, "b", 0);
    in.ok(user.jobs().pause("a"), "pause");
    in.ok(user.jobs().pause("a"), "pause again");
    in.ok(user.jobs().pause("empty"), "pause of a queue without jobs");
    check_equal(user.claim_ids(10, {"a", "b"}), std::vector{b}, "what can be claimed while a is paused");
    const identifier more = add_with(user, "a", 0);
    check_equal(user.claim_ids(10, {"a"}), std::vector<identifier>{}, "what was enqueued while paused");
    const auto paused = [&](std::string_view name) {
        for (const auto& each : in.ok(user.jobs().queues(), "queues"))
            if (each.name == name) return std::optional(each.paused);
        return std::optional<bool>();
    };
    check_equal(paused("a"), std::optional(true), "a is shown as paused");
    check_equal(paused("b"), std::optional(false), "b is shown as not paused");
    check_equal(paused("empty"), std::optional(true), "a paused queue without jobs is shown");
    in.ok(user.jobs().resume("a"), "resume");
    in.ok(user.jobs().resume("a"), "resume again");
    check_equal(user.claim_ids(10, {"a"}), std::vector{a, more}, "what can be claimed afterwards");
    check_equal(paused("a"), std::optional(false), "a is shown as not paused");
}

void pause_lets_running_work_end(store_lab& in) {
    const job_user user(in);
    user.add();
    const claimed_job mine = user.claim_one();
    in.ok(user.jobs().pause("default"), "pause");
    check_equal(user.heartbeat(mine.lease).answer, write_answer::done, "heartbeat while paused");
    check_equal(user.settle(mine.lease, settlement::kind::succeed).answer, write_answer::done, "settle while paused");
}

void wrong_claims(store_lab& in) {
    const job_user user(in);
    user.add();
    const auto claim = [&](int limit, duration lease_for) {
        return user.jobs().claim({.queues = {"default"}, .limit = limit, .lease_for = lease_for, .worker = "w"});
    };
    in.refused(claim(0, 1s), {errc::invalid_argument}, "a claim of none");
    in.refused(claim(-1, 1s), {errc::invalid_argument}, "a claim of less than none");
    in.refused(claim(1, 0s), {errc::invalid_argument}, "a lease for no time");
    in.refused(claim(1, -1s), {errc::invalid_argument}, "a lease that has ended");
    check_equal(user.claim_ids(1).size(), std::size_t{1}, "jobs to claim afterwards");
}

void next_due(store_lab& in) {
    const job_user user(in);
    const auto next = [&](std::vector<std::string> queues) {
        return in.ok(user.jobs().next_due(std::move(queues)), "next_due");
    };
    check(!next({"default"}), "nothing is due in an empty store");
    add_with(user, "default", 0, due::after(1h));
    add_with(user, "default", 9, due::after(2h));
    add_with(user, "far", 0, due::after(100h));
    const auto hour = next({"default", "far"});
    check(hour && *hour > 50min && *hour <= 1h, "the next is due in an hour");
    const auto far = next({"far"});
    check(far && *far > 99h && *far <= 100h, "only the queues that were asked for count");
    check(!next({"nowhere"}), "nothing is due in a queue without jobs");
    add_with(user, "default", 0);
    const auto at_once = next({"default", "far"});
    check(at_once && *at_once <= duration::zero(), "something is due now");
    in.ok(user.jobs().pause("default"), "pause");
    const auto other = next({"default", "far"});
    check(other && *other > 99h, "a paused queue does not count");
}

// A store may remember where it is in a queue that is worked off in large batches.
void nothing_is_left_behind(store_lab& in) {
    const job_user user(in);
    std::set<identifier> waiting;
    for (int i = 0; i < 300; ++i) waiting.insert(add_with(user, "default", i % 3));
    const auto take = [&](int limit) {
        auto claimed = user.claim(limit);
        for (const claimed_job& each : claimed) check(waiting.erase(each.id) == 1, "a job that was waiting is claimed");
        return claimed;
    };
    const auto first = take(80); // all of the highest priority
    for (const claimed_job& each : first) check_equal(each.priority, 2, "priority of the first");
    for (std::size_t i = 0; i < 5; ++i) {
        user.settle(first[i].lease, settlement::kind::release);
        waiting.insert(first[i].id);
    }
    check_equal(take(80).size(), std::size_t{80}, "jobs of a full claim");
    const identifier urgent = add_with(user, "default", 9);
    waiting.insert(urgent);
    const auto next = take(80);
    check(!next.empty() && next.front().id == urgent, "a more urgent one comes first");
    waiting.insert(add_with(user, "default", 0, due::at(in.now() - 1h)));
    while (!take(80).empty()) {
    }
    check_equal(waiting.size(), std::size_t{0}, "jobs that nobody could claim");
}

void given_back_is_not_forgotten(store_lab& in) {
    const job_user user(in);
    user.add(3000);
    const auto first = user.claim(50);
    user.settle(first.front().lease, settlement::kind::release);
    for (int n = 1; n < 50; ++n) { // some 2500 of 3000: the queue never runs dry
        for (const claimed_job& each : user.claim(50))
            if (each.id == first.front().id) return;
        std::this_thread::sleep_for(20ms);
    }
    check(false, "a job that was given back is claimed within a second, before the rest of its queue");
}

} // namespace

store_case_list job_claim_cases() {
    return {
        {"claims go by priority, then due time, then id", &order_in_a_queue},
        {"queues are served in the order that was asked for", &queues_in_order_of_preference},
        {"a claim counts an attempt and opens an entry in the history", &attempt_and_worker},
        {"a hundred workers never get the same job", &claimed_once},
        {"of a hundred claimants of one job, one gets it", &one_job_for_a_hundred},
        {"two instances never get the same job", &two_instances_share_the_work},
        {"in a queue that is worked off, nothing is left behind", &nothing_is_left_behind},
        {"a job that is given back need not wait for the whole queue", &given_back_is_not_forgotten},
        {"a paused queue gives nothing until it is resumed", &paused_queues},
        {"what is running in a paused queue goes on", &pause_lets_running_work_end},
        {"a claim of nothing, or for no time, is refused", &wrong_claims},
        {"the store tells when the next job is due", &next_due},
    };
}

} // namespace holdfast::conformance
