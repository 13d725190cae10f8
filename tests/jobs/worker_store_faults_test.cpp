// The store is away, does not answer, or refuses one of many.
#include "catch.hpp"
#include "faulty_jobs.hpp"
#include "worker_lab.hpp"

using namespace std::chrono_literals;
using namespace holdfast;
using test::store_call;
using test::worker_lab;

namespace {

std::optional<error> away() {
    return error{errc::unavailable, "connection refused", std::nullopt};
}

} // namespace

TEST_CASE("while the store is away a worker keeps trying, backs off, and says so once") {
    worker_lab lab;
    test::faulty_jobs store(*lab.held->jobs());
    bool down = true;
    store.before = [&](store_call) { return down ? away() : std::nullopt; };
    lab.over = &store;
    lab.add({.name = "work"}, [](payload, job_context&) { return test::ended_well(); });
    const auto id = lab.enqueue();
    lab.start();
    lab.on.advance(1min);
    CHECK(store.count(store_call::claim) > 5);
    CHECK(store.count(store_call::claim) < 50);
    CHECK(lab.log.count("keeps trying: unavailable: connection refused") == 1);
    CHECK(lab.worker->snapshot().store_down);
    down = false;
    lab.on.advance(10s);
    CHECK(lab.state(id) == job_state::succeeded);
    CHECK(lab.log.count("the store is back after 1.") == 1);
    CHECK(!lab.worker->snapshot().store_down);
    lab.stop(); // while the store is there
}

TEST_CASE("a settlement that could not be written is written when the store is back, and the job runs once") {
    worker_lab lab;
    test::faulty_jobs store(*lab.held->jobs());
    bool down = false;
    store.before = [&](store_call) { return down ? away() : std::nullopt; };
    lab.over = &store;
    int ran = 0;
    lab.add({.name = "work"}, [&](payload, job_context&) {
        ++ran;
        down = true;
        return test::ended_well();
    });
    const auto id = lab.enqueue();
    lab.start();
    lab.on.advance(30s);
    CHECK(lab.state(id) == job_state::processing);
    CHECK(lab.worker->snapshot().unsettled == 1);
    down = false;
    lab.on.advance(10s);
    CHECK(lab.state(id) == job_state::succeeded);
    CHECK(ran == 1);
    lab.stop(); // while the store is there
}

TEST_CASE("a settlement whose outcome is unknown is made again, whether or not it was applied") {
    worker_lab lab;
    test::faulty_jobs store(*lab.held->jobs());
    const bool applied = GENERATE(true, false);
    int lost = 3;
    const auto lose = [&](store_call which) -> std::optional<error> {
        if (which != store_call::settle || lost == 0) return std::nullopt;
        --lost;
        return error{errc::unknown_outcome, "connection lost", std::nullopt};
    };
    if (applied) store.after = lose;
    else store.before = lose;
    lab.over = &store;
    int ran = 0;
    lab.add({.name = "work"}, [&](payload, job_context&) {
        ++ran;
        return test::ended_well();
    });
    lab.enqueue_many(20);
    lab.start();
    lab.on.advance(10s);
    CHECK(lab.count_of(job_state::succeeded) == 20);
    CHECK(ran == 20);
    CHECK(lab.worker->snapshot().succeeded == 20);
    CHECK(lab.worker->snapshot().lost == 0);
    lab.stop(); // while the store is there
}

TEST_CASE("one settlement that the store refuses does not hold up the other 499") {
    worker_lab lab;
    test::faulty_jobs store(*lab.held->jobs());
    lab.over = &store;
    lab.add({.name = "work"}, [](payload what, job_context& c) {
        if (what.body == "poison") c.output("poison");
        return test::ended_well();
    });
    lab.enqueue_many(250);
    const auto poison = lab.enqueue("work", "poison");
    lab.enqueue_many(249);
    store.on_settle = [](std::span<const settlement> which) -> std::optional<error> {
        for (const settlement& each : which)
            if (each.output == "poison") return error{errc::too_large, "the job's output has 11 MB", std::nullopt};
        return std::nullopt;
    };
    lab.start({.concurrency = 500});
    lab.on.advance(100ms);
    CHECK(lab.count_of(job_state::succeeded) == 500);
    CHECK(lab.look(poison).output.empty());
    CHECK(lab.log.count("the store refuses how it ended, so its output is left out: the job's output has 11 MB") == 1);
    lab.stop(); // while the store is there
}

TEST_CASE("a settlement that the store never takes is given up, and recovery finds the job") {
    worker_lab lab;
    test::faulty_jobs store(*lab.held->jobs());
    lab.over = &store;
    lab.add({.name = "work"}, [](payload, job_context&) { return test::ended_well(); });
    const auto poison = lab.enqueue();
    const std::string subject = to_text(poison);
    bool refuses = true;
    store.on_settle = [&](std::span<const settlement> which) -> std::optional<error> {
        for (const settlement& each : which)
            if (refuses && each.held->subject() == subject) return error{errc::internal, "no", std::nullopt};
        return std::nullopt;
    };
    lab.enqueue_many(10);
    lab.start();
    lab.on.advance(1s);
    CHECK(lab.count_of(job_state::succeeded) == 10);
    CHECK(lab.log.count("could not be written") == 1);
    refuses = false;
    lab.on.advance(3min);
    CHECK(lab.state(poison) == job_state::succeeded);
    CHECK(lab.look(poison).crash_count == 1);
    CHECK(lab.log.count("recovered 1 stale job: 1 requeued, 0 failed, 0 deleted") == 1);
    lab.stop(); // while the store is there
}

TEST_CASE("a sweep recovers what a dead worker left, and says what became of it") {
    worker_lab lab;
    int ran = 0;
    lab.add({.name = "work"}, [&](payload, job_context& c) {
        CHECK(c.crash_count() == 1);
        ++ran;
        return test::ended_well();
    });
    for (int i = 0; i < 2; ++i) lab.enqueue();
    auto once_only = lab.job();
    once_only.may_restart = false;
    lab.enqueue(std::move(once_only));
    auto dead = lab.get(lab.store().claim({.queues = {"default"}, .limit = 3, .lease_for = 60s, .worker = "dead"}));
    std::vector<const job_lease*> leases;
    for (const auto& each : dead) leases.push_back(&each.lease);
    lab.get(lab.store().started(leases));
    lab.start();
    lab.on.advance(59s);
    CHECK(ran == 0);
    lab.on.advance(40s);
    CHECK(ran == 2);
    CHECK(lab.log.count("info: recovered 3 stale jobs: 2 requeued, 1 failed, 0 deleted") == 1);
    CHECK(lab.count_of(job_state::failed) == 1);
    const auto seen = lab.worker->snapshot();
    CHECK(seen.last_recovery.requeued == 2);
    CHECK(seen.last_recovery_ago);
    lab.on.advance(10min);
    CHECK(lab.log.count("recovered") == 1);
}

TEST_CASE("workers that were started together do not sweep together") {
    worker_lab lab;
    test::faulty_jobs one(*lab.held->jobs());
    test::faulty_jobs other(*lab.held->jobs());
    std::vector<time_point> first;
    std::vector<time_point> second;
    one.before = [&](store_call which) -> std::optional<error> {
        if (which == store_call::recover_stale) first.push_back(lab.on.now());
        return std::nullopt;
    };
    other.before = [&](store_call which) -> std::optional<error> {
        if (which == store_call::recover_stale) second.push_back(lab.on.now());
        return std::nullopt;
    };
    job_worker a({lab.on, one, lab.kinds, lab.log}, {}, 1);
    job_worker b({lab.on, other, lab.kinds, lab.log}, {}, 2);
    REQUIRE(a.start());
    REQUIRE(b.start());
    lab.on.advance(10min);
    CHECK(first.size() >= 14);
    CHECK(first.size() <= 28);
    CHECK(first != second);
    for (const time_point each : first) CHECK(std::ranges::find(second, each) == second.end());
    sync_wait(lab.on, a.stop());
    sync_wait(lab.on, b.stop());
}
