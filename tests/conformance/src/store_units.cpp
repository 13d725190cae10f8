// Units of work: all of it or nothing.
#include "store_jobs.hpp"
#include "store_outbox.hpp"

namespace holdfast::conformance {

namespace {

using kind = settlement::kind;

// One write to each facet that the store offers, and whether they are there.
class traces {
public:
    explicit traces(store_lab& in) : in_(in), job_(in.next_id()), message_(in.next_id()), received_(in.next_id()) {}

    void write(unit_of_work& unit) {
        if (auto* jobs = in_.store().jobs()) {
            const new_job j{.id = job_, .what = {.type = "t", .body = "{}"}, .when = {}};
            check(in_.ok(jobs->enqueue({j}, &unit), "enqueue").at(0).created, "created, in a unit of work");
        }
        if (auto* outbox = in_.store().outbox()) {
            in_.ok(outbox->append({{message_, "topic", "", {.type = "t", .body = "{}"}, {}}}, &unit), "append");
            check(in_.ok(outbox->receive("c", received_, 1h, &unit), "receive"), "received, in a unit of work");
        }
        if (auto* keys = in_.store().idempotency())
            check(in_.ok(keys->try_claim("key", 1h, &unit), "try_claim"), "claimed, in a unit of work");
    }
    // Only what can be read without writing.
    void visible(bool expected) {
        if (auto* jobs = in_.store().jobs())
            check_equal(std::holds_alternative<job_view>(in_.ok(jobs->get(job_), "get")), expected, "the job is there");
        if (auto* outbox = in_.store().outbox())
            check_equal(in_.ok(outbox->unsent(), "unsent"), std::uint64_t{expected ? 1u : 0u}, "unsent");
    }
    void there(bool expected) {
        visible(expected);
        if (auto* jobs = in_.store().jobs()) {
            const auto claimed =
                in_.ok(jobs->claim({.queues = {"default"}, .limit = 5, .lease_for = 1h, .worker = "w"}), "claim");
            check_equal(claimed.size(), std::size_t{expected ? 1u : 0u}, "jobs to claim");
        }
        if (auto* outbox = in_.store().outbox()) {
            const auto leased = in_.ok(outbox->lease_batch(5, 1h, "relay"), "lease_batch");
            check_equal(leased.size(), std::size_t{expected ? 1u : 0u}, "messages to lease");
            check_equal(in_.ok(outbox->receive("c", received_, 1h), "receive"), !expected,
                        "received for the first time");
        }
        if (auto* keys = in_.store().idempotency())
            check_equal(in_.ok(keys->try_claim("key", 1h), "try_claim"), !expected, "claimed for the first time");
    }

private:
    store_lab& in_;
    identifier job_, message_, received_;
};

void committed(store_lab& in) {
    auto unit = in.begin();
    traces written(in);
    written.write(*unit);
    written.visible(false);
    in.ok(unit->commit(), "commit");
    unit.reset();
    written.there(true);
}

void rolled_back(store_lab& in) {
    auto unit = in.begin();
    traces written(in);
    written.write(*unit);
    in.ok(unit->rollback(), "rollback");
    written.there(false);
}

void dropped(store_lab& in) {
    auto unit = in.begin();
    traces written(in);
    written.write(*unit);
    unit.reset();
    written.there(false);
}

void seen_by_itself(store_lab& in) {
    auto unit = in.begin();
    if (auto* jobs = in.store().jobs()) {
        new_job j{.id = in.next_id(), .what = {.type = "t", .body = "{}"}, .when = {}};
        j.unique_key = "k";
        check(in.ok(jobs->enqueue({j}, unit.get()), "enqueue").at(0).created, "created");
        check(!in.ok(jobs->enqueue({j}, unit.get()), "enqueue").at(0).created, "created, by the same id");
        const identifier first = j.id;
        j.id = in.next_id();
        const enqueued again = in.ok(jobs->enqueue({j}, unit.get()), "enqueue").at(0);
        check(!again.created && again.id == first, "created, by the same unique key");
    }
    if (auto* outbox = in.store().outbox()) {
        const identifier id = in.next_id();
        check(in.ok(outbox->receive("c", id, 1h, unit.get()), "receive"), "received");
        check(!in.ok(outbox->receive("c", id, 1h, unit.get()), "receive"), "received again");
    }
    if (auto* keys = in.store().idempotency()) {
        check(in.ok(keys->try_claim("key", 1h, unit.get()), "try_claim"), "claimed");
        check(!in.ok(keys->try_claim("key", 1h, unit.get()), "try_claim"), "claimed again");
    }
    in.ok(unit->commit(), "commit");
}

void after_its_end(store_lab& in) {
    for (const bool commits : {true, false}) {
        auto unit = in.begin();
        if (commits) in.ok(unit->commit(), "commit of nothing");
        else in.ok(unit->rollback(), "rollback of nothing");
        const std::vector wrong = {errc::invalid_argument};
        in.refused(unit->commit(), wrong, "commit after the end");
        if (auto* jobs = in.store().jobs()) {
            const new_job j{.id = in.next_id(), .what = {.type = "t", .body = "{}"}, .when = {}};
            in.refused(jobs->enqueue({j}, unit.get()), wrong, "enqueue after the end");
        }
        if (auto* keys = in.store().idempotency())
            in.refused(keys->try_claim("k", 1h, unit.get()), wrong, "try_claim after the end");
        if (auto* outbox = in.store().outbox())
            in.refused(outbox->receive("c", in.next_id(), 1h, unit.get()), wrong, "receive after the end");
    }
}

void a_stranger_is_refused(store_lab& in) {
    class stranger final : public unit_of_work {
    public:
        task<result<void>> commit() override { co_return result<void>(); }
        task<result<void>> rollback() override { co_return result<void>(); }
    };
    in.needs_units();
    stranger unit;
    const std::vector wrong = {errc::invalid_argument};
    if (auto* jobs = in.store().jobs()) {
        const new_job j{.id = in.next_id(), .what = {.type = "t", .body = "{}"}, .when = {}};
        in.refused(jobs->enqueue({j}, &unit), wrong, "enqueue in another store's unit of work");
    }
    if (auto* keys = in.store().idempotency())
        in.refused(keys->try_claim("k", 1h, &unit), wrong, "try_claim in another store's unit of work");
    if (auto* outbox = in.store().outbox())
        in.refused(outbox->receive("c", in.next_id(), 1h, &unit), wrong, "receive in another store's unit of work");
}

void a_refused_call_spoils_nothing(store_lab& in) {
    auto unit = in.begin();
    const job_user user(in);
    in.refused(user.jobs().enqueue({user.make(std::string(2000, 'x'))}, unit.get()),
               {errc::too_large, errc::invalid_argument}, "a queue of 2000 bytes");
    const new_job fine = user.make();
    in.ok(user.jobs().enqueue({fine}, unit.get()), "enqueue");
    in.ok(unit->commit(), "commit");
    check_equal(user.claim_ids(5), std::vector{fine.id}, "jobs to claim");
}

settled settle_in(store_lab& in, unit_of_work& unit, const job_lease& held, kind how) {
    const settlement one[] = {{.held = &held, .how = how, .when = {}, .error = {}, .output = {}}};
    return in.ok(in.jobs().settle(one, &unit), "settle").at(0);
}

void settles_and_follows_up(store_lab& in) {
    const job_user user(in);
    const identifier id = user.add();
    new_job child = user.make("children");
    child.parent = id;
    user.add(child);
    const claimed_job mine = user.claim_one();
    const new_job follow_up = user.make("next");
    {
        auto unit = in.begin();
        const settled answer = settle_in(in, *unit, mine.lease, kind::succeed);
        check_equal(answer.answer, write_answer::done, "settle");
        check_equal(answer.now, job_state::succeeded, "state in the answer");
        check_equal(settle_in(in, *unit, mine.lease, kind::fail).answer, write_answer::stale, "settle again");
        in.ok(user.jobs().enqueue({follow_up}, unit.get()), "enqueue");
        in.ok(unit->rollback(), "rollback");
    }
    check_equal(user.state_of(id), job_state::processing, "state after the rollback");
    check_equal(user.view(id).history.at(0).outcome, std::string("running"), "outcome after the rollback");
    check_equal(user.state_of(child.id), job_state::scheduled, "state of the child after the rollback");
    check(user.absence(follow_up.id) == job_absence::never_known, "nothing was enqueued");
    auto unit = in.begin();
    settle_in(in, *unit, mine.lease, kind::succeed);
    in.ok(user.jobs().enqueue({follow_up}, unit.get()), "enqueue");
    check_equal(user.state_of(id), job_state::processing, "state before the commit");
    in.ok(unit->commit(), "commit");
    check_equal(user.state_of(id), job_state::succeeded, "state after the commit");
    check_equal(user.state_of(follow_up.id), job_state::pending, "state of the follow-up");
    check_equal(user.claim_ids(5, {"children"}), std::vector{child.id}, "children to claim");
}

void a_key_is_freed_within(store_lab& in) {
    const job_user user(in);
    new_job j = user.make();
    j.unique_key = "k";
    user.add(j);
    const claimed_job mine = user.claim_one();
    auto unit = in.begin();
    settle_in(in, *unit, mine.lease, kind::succeed);
    j.id = in.next_id();
    check(in.ok(user.jobs().enqueue({j}, unit.get()), "enqueue").at(0).created,
          "a job that ends in the unit frees its unique key for the next");
    in.ok(unit->commit(), "commit");
    check_equal(user.state_of(j.id), job_state::pending, "state of the next");
}

void stale_settlements_are_told(store_lab& in) {
    const job_user user(in);
    user.add();
    const claimed_job late = user.claim_one(short_lease);
    in.pass(short_lease);
    user.recover();
    auto unit = in.begin();
    check_equal(settle_in(in, *unit, late.lease, kind::succeed).answer, write_answer::stale, "settle by a stale lease");
    in.ok(unit->commit(), "commit of the rest");
    check_equal(user.state_of(late.id), job_state::pending, "state");
}

void completes_a_key(store_lab& in) {
    idempotency_store& keys = in.idempotency();
    const auto begin = [&] { return in.ok(keys.begin({"k", "f", 5min, default_idempotency_ttl}), "begin"); };
    const auto mine = std::get<idempotency_started>(begin());
    const payload answer{.type = "t", .body = "a"};
    {
        auto unit = in.begin();
        in.ok(keys.complete(mine.lease, answer, 1h, unit.get()), "complete");
        in.ok(unit->rollback(), "rollback");
    }
    check(std::holds_alternative<idempotency_in_progress>(begin()), "in progress after the rollback");
    auto unit = in.begin();
    in.ok(keys.complete(mine.lease, answer, 1h, unit.get()), "complete");
    in.ok(unit->commit(), "commit");
    check(std::holds_alternative<idempotency_completed>(begin()), "completed after the commit");
    auto late = in.begin();
    in.refused(keys.complete(idempotency_lease("k", mine.lease.token() + 1), answer, 1h, late.get()),
               {errc::stale_lease}, "complete with a stale lease");
}

} // namespace

store_case_list unit_cases() {
    return {
        {"what is committed is there, all of it, and not before", &committed},
        {"what is rolled back never was", &rolled_back},
        {"a unit that is dropped is rolled back", &dropped},
        {"a unit sees its own writes", &seen_by_itself},
        {"a unit that has ended takes nothing more", &after_its_end},
        {"a unit of another store is refused", &a_stranger_is_refused},
        {"a call that is refused spoils nothing", &a_refused_call_spoils_nothing},
        {"a job is settled together with what follows from it", &settles_and_follows_up},
        {"a unique key is free for the next job in the same unit", &a_key_is_freed_within},
        {"a stale settlement is told, and the rest can be committed", &stale_settlements_are_told},
        {"an idempotency key is completed with the rest", &completes_a_key},
    };
}

} // namespace holdfast::conformance
