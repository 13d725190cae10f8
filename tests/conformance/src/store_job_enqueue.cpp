// Jobs: how they come into the store.
#include <algorithm>
#include <set>

#include "store_jobs.hpp"

namespace holdfast::conformance {

namespace {

void comes_back_as_it_was(store_lab& in) {
    const job_user user(in);
    new_job j = user.make("mail");
    j.what = {.type = "invoice.send", .version = 7, .content_type = "text/plain", .body = "a body"};
    j.priority = 5;
    j.max_attempts = 9;
    j.max_crashes = 7;
    j.may_restart = false;
    j.unique_key = "INV-7";
    j.extra = {{"traceparent", "00-a-b-01"}, {"empty", ""}};
    const store_time before = in.now();
    const identifier id = user.add(j);
    const store_time after = in.now();

    const job_view seen = user.view(id);
    check_equal(seen.id, id, "id");
    check(seen.what == j.what, "payload");
    check_equal(seen.queue, std::string("mail"), "queue");
    check_equal(seen.priority, 5, "priority");
    check_equal(seen.state, job_state::pending, "state");
    check(before <= seen.created && seen.created <= after, "created by the store's clock");
    check(before <= seen.due_at && seen.due_at <= after, "due at once");
    check(!seen.ended, "not ended");
    check_equal(seen.attempts, 0, "attempts");
    check_equal(seen.max_attempts, 9, "max_attempts");
    check_equal(seen.crash_count, 0, "crash_count");
    check_equal(seen.max_crashes, 7, "max_crashes");
    check_equal(seen.generation, 1, "generation");
    check_equal(seen.may_restart, false, "may_restart");
    check_equal(seen.unique_key, std::optional<std::string>("INV-7"), "unique key");
    check(!seen.parent, "no parent");
    check(seen.extra == j.extra, "headers");
    check(seen.history.empty(), "no history");

    const claimed_job mine = user.claim_one(long_lease, "mail");
    check(mine.what == j.what, "payload of the claim");
    check(mine.extra == j.extra, "headers of the claim");
    check_equal(mine.queue, std::string("mail"), "queue of the claim");
    check_equal(mine.priority, 5, "priority of the claim");
    check_equal(mine.attempt, 1, "attempt of the claim");
    check_equal(mine.max_attempts, 9, "max_attempts of the claim");
    check_equal(mine.generation, 1, "generation of the claim");
    check_equal(mine.may_restart, false, "may_restart of the claim");
}

void same_id_changes_nothing(store_lab& in) {
    const job_user user(in);
    new_job j = user.make();
    user.add(j);
    j.what.body = "another";
    j.queue = "elsewhere";
    const enqueued again = user.enqueue(j);
    check_equal(again.created, false, "created, of the same id");
    check_equal(again.id, j.id, "id of the job there is");
    check_equal(user.view(j.id).what.body, std::string("{}"), "body after enqueueing the id again");
    check_equal(user.claim_ids(10).size(), std::size_t{1}, "jobs to claim");
    check_equal(user.claim_ids(10, {"elsewhere"}).size(), std::size_t{0}, "jobs in the other queue");
    check_equal(user.enqueue(j).created, false, "created, while the job is being worked on");
}

void same_id_within_a_batch(store_lab& in) {
    const job_user user(in);
    const new_job j = user.make();
    const auto answers = in.ok(user.jobs().enqueue({j, user.make(), j}), "enqueue");
    check_equal(answers.size(), std::size_t{3}, "answers");
    check(answers[0].created && answers[1].created && !answers[2].created, "the second of the same id is not created");
    check_equal(answers[2].id, j.id, "id of the job there is");
    check_equal(user.claim_ids(10).size(), std::size_t{2}, "jobs to claim");
}

void some_of_a_bulk_are_there(store_lab& in) {
    const job_user user(in);
    std::vector<new_job> jobs;
    for (int i = 0; i < 60; ++i) jobs.push_back(user.make());
    user.add(jobs[7]);
    jobs[40].id = jobs[3].id;
    jobs[40].what.body = "another";
    const auto answers = in.ok(user.jobs().enqueue(jobs), "enqueue");
    check_equal(answers.size(), jobs.size(), "answers");
    for (std::size_t i = 0; i < jobs.size(); ++i) {
        check_equal(answers[i].created, i != 7 && i != 40, "created, of number " + std::to_string(i));
        check_equal(answers[i].id, jobs[i].id, "id of number " + std::to_string(i));
    }
    check_equal(user.view(jobs[3].id).what.body, std::string("{}"), "body of the first of two with one id");
    for (const enqueued& again : in.ok(user.jobs().enqueue(jobs), "enqueue again"))
        check_equal(again.created, false, "created, the second time");
    check_equal(user.claim_ids(100).size(), jobs.size() - 1, "jobs to claim");
}

void same_id_at_once(store_lab& in) {
    const job_user user(in);
    const new_job j = user.make();
    std::vector<task<result<std::vector<enqueued>>>> calls;
    for (int i = 0; i < 50; ++i) calls.push_back(user.jobs().enqueue({j}));
    int created = 0;
    for (auto& each : in.at_once(std::move(calls)))
        created += in.value_of(std::move(each), "enqueue").at(0).created ? 1 : 0;
    check_equal(created, 1, "callers out of 50 with one id that created the job");
    check_equal(user.claim_ids(10).size(), std::size_t{1}, "jobs to claim");
}

new_job with_key(const job_user& user, std::string key) {
    new_job j = user.make();
    j.unique_key = std::move(key);
    return j;
}

void unique_key(store_lab& in) {
    const job_user user(in);
    const identifier first = user.add(with_key(user, "k"));
    const enqueued second = user.enqueue(with_key(user, "k"));
    check_equal(second.created, false, "created, with a key that is taken");
    check_equal(second.id, first, "id of the job that has the key");
    user.add(with_key(user, "K"));
    user.add(user.make());
    new_job other_type = with_key(user, "k");
    other_type.what.type = "test.other";
    user.add(other_type);
    const auto claimed = user.claim(10);
    check_equal(claimed.size(), std::size_t{4}, "jobs to claim");
    check_equal(user.enqueue(with_key(user, "k")).created, false, "created, while its holder is being worked on");
}

void unique_key_is_freed(store_lab& in) {
    const job_user user(in);
    using kind = settlement::kind;
    for (const kind how : {kind::succeed, kind::fail, kind::dead_letter, kind::cancel, kind::indeterminate}) {
        user.add(with_key(user, "k"));
        const claimed_job mine = user.claim_one();
        check_equal(user.settle(mine.lease, how).answer, write_answer::done, "settle");
    }
    for (const kind how : {kind::retry, kind::snooze, kind::release}) {
        new_job j = with_key(user, "open");
        const identifier id = user.enqueue(j).id;
        const claimed_job mine = user.claim_one();
        user.settle({.held = &mine.lease, .how = how, .when = due::now(), .error = {}, .output = {}});
        const enqueued again = user.enqueue(with_key(user, "open"));
        check(!again.created && again.id == id, "a job that will run again keeps its unique key");
    }
}

void unique_within_a_batch(store_lab& in) {
    const job_user user(in);
    const new_job first = with_key(user, "k");
    const auto answers = in.ok(user.jobs().enqueue({first, with_key(user, "k"), with_key(user, "l")}), "enqueue");
    check(answers.at(0).created && !answers.at(1).created && answers.at(2).created, "one per key is created");
    check_equal(answers[1].id, first.id, "id of the job that has the key");
}

void unique_behind_a_known_id(store_lab& in) {
    const job_user user(in);
    new_job known = user.make();
    user.add(known);
    user.settle(user.claim_one().lease, settlement::kind::succeed);
    known.unique_key = "k";
    new_job next = user.make();
    next.unique_key = "k";
    const auto answers = in.ok(user.jobs().enqueue({known, next}), "enqueue");
    check_equal(answers.at(0).created, false, "created, of a job that was there");
    check_equal(answers.at(1).created, true, "created, of a job whose key nobody has");
    check_equal(user.state_of(next.id), job_state::pending, "state");
}

void unique_among_children_of_the_dead(store_lab& in) {
    const job_user user(in);
    const identifier dead = user.ended_as(settlement::kind::dead_letter);
    const identifier holder = user.add(with_key(user, "k"));
    new_job child = with_key(user, "k");
    child.parent = dead;
    const enqueued answer = user.enqueue(child);
    check(!answer.created && answer.id == holder,
          "a child that would be cancelled at once is not made beside the holder");
    check(user.absence(child.id) == job_absence::never_known, "the child is not there");
}

void unique_at_once(store_lab& in) {
    const job_user user(in);
    std::vector<task<result<std::vector<enqueued>>>> calls;
    for (int i = 0; i < 100; ++i) calls.push_back(user.jobs().enqueue({with_key(user, "k")}));
    int created = 0;
    std::set<identifier> ids;
    for (auto& each : in.at_once(std::move(calls))) {
        const enqueued answer = in.value_of(std::move(each), "enqueue").at(0);
        created += answer.created ? 1 : 0;
        ids.insert(answer.id);
    }
    check_equal(created, 1, "callers out of 100 with one unique key that created a job");
    check_equal(ids.size(), std::size_t{1}, "ids that the callers were given");
    check_equal(user.claim_ids(200).size(), std::size_t{1}, "jobs to claim");
}

void due_times(store_lab& in) {
    const job_user user(in);
    new_job after = user.make();
    after.when = due::after(short_lease);
    new_job at = user.make();
    at.when = due::at(in.now() + std::chrono::hours{1});
    new_job past = user.make();
    past.when = due::at(in.now() - std::chrono::hours{1});
    for (const new_job* each : {&after, &at, &past}) user.add(*each);
    check_equal(user.state_of(at.id), job_state::scheduled, "state of a job that is due in an hour");
    check_equal(user.claim_ids(10), std::vector{past.id}, "what is due");
    in.pass(short_lease);
    check_equal(user.state_of(after.id), job_state::pending, "state of a job that fell due");
    check_equal(user.claim_ids(10), std::vector{after.id}, "what fell due");
    check_equal(user.state_of(at.id), job_state::scheduled, "state of a job that is due in an hour");
    check(user.view(at.id).due_at == at.when.time, "a due time comes back as it was given");
}

void due_by_the_stores_clock(store_lab& in) {
    const job_user user(in);
    new_job soon = user.make();
    soon.when = due::at(in.now() + short_lease);
    user.add(soon);
    in.pass(short_lease);
    check_equal(user.claim_ids(10), std::vector{soon.id}, "what fell due at a time of the store's clock");
    new_job later = user.make();
    const store_time before = in.now();
    later.when = due::after(std::chrono::hours{2});
    user.add(later);
    const store_time at = user.view(later.id).due_at;
    check(at >= before + std::chrono::hours{2} && at <= in.now() + std::chrono::hours{2},
          "a delay counts from the store's present");
}

void in_bulk(store_lab& in) {
    const job_user user(in);
    const auto ids = user.add(1000);
    std::set<identifier> claimed;
    for (int i = 0; i < 20 && claimed.size() < 1000; ++i)
        for (const identifier& each : user.claim_ids(100)) check(claimed.insert(each).second, "claimed once");
    check(claimed == std::set<identifier>(ids.begin(), ids.end()), "all thousand jobs are claimed, each once");
    check_equal(user.count("default", job_state::processing), std::uint64_t{1000}, "jobs that are processing");
    check_equal(in.ok(user.jobs().enqueue({}), "enqueue of nothing").size(), std::size_t{0}, "answers for nothing");
}

void out_of_range_is_refused(store_lab& in) {
    const job_user user(in);
    const auto refuse = [&](new_job wrong, std::string_view what) {
        const identifier good = in.next_id();
        new_job fine = user.make();
        fine.id = good;
        in.refused(user.jobs().enqueue({fine, std::move(wrong)}), {errc::invalid_argument}, what);
        check(user.absence(good) == job_absence::never_known, "a batch is refused whole");
    };
    for (const int attempts : {0, -1, 101}) {
        new_job wrong = user.make();
        wrong.max_attempts = attempts;
        refuse(wrong, "max_attempts out of 1 to 100");
    }
    new_job crashes = user.make();
    crashes.max_crashes = -1;
    refuse(crashes, "a negative max_crashes");
    new_job nameless = user.make();
    nameless.id = {};
    refuse(nameless, "a job without an id");
    new_job nowhere = user.make("");
    refuse(nowhere, "a queue without a name");
}

} // namespace

store_case_list job_enqueue_cases() {
    return {
        {"a job comes back as it was enqueued", &comes_back_as_it_was},
        {"enqueueing the same id again changes nothing", &same_id_changes_nothing},
        {"the same id twice in one batch makes one job", &same_id_within_a_batch},
        {"a bulk says which of its jobs were there already", &some_of_a_bulk_are_there},
        {"the same id 50 times in parallel makes one job", &same_id_at_once},
        {"of one type, one unfinished job has a unique key", &unique_key},
        {"a unique key is free again when its job has ended, and not before", &unique_key_is_freed},
        {"the same unique key twice in one batch makes one job", &unique_within_a_batch},
        {"a job that was there already takes no unique key from another of its batch", &unique_behind_a_known_id},
        {"a unique key that is taken keeps out the child of a dead parent too", &unique_among_children_of_the_dead},
        {"the same unique key 100 times in parallel makes one job", &unique_at_once},
        {"a job is claimed when it is due and not before", &due_times},
        {"due times are judged by the store's clock", &due_by_the_stores_clock},
        {"a thousand jobs in one call", &in_bulk},
        {"what is out of range is refused, the whole batch of it", &out_of_range_is_refused},
    };
}

} // namespace holdfast::conformance
