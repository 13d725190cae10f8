// What a crash may cost: the restart rule, marks and probes.
#include "catch.hpp"
#include "faulty_jobs.hpp"
#include "worker_lab.hpp"

using namespace std::chrono_literals;
using namespace holdfast;
using test::store_call;
using test::worker_lab;

namespace {

// Claimed by a worker that died, and recovered.
identifier crashed(worker_lab& lab, new_job job) {
    const auto id = lab.enqueue(std::move(job));
    lab.get(lab.store().claim({.queues = {"default"}, .limit = 1, .lease_for = 1s, .worker = "dead"}));
    lab.on.advance(2s);
    lab.get(lab.store().recover_stale(10));
    return id;
}

} // namespace

TEST_CASE("a job that may not restart is marked before its handler runs, and settled at once") {
    worker_lab lab;
    test::faulty_jobs store(*lab.held->jobs());
    lab.over = &store;
    int marks = 0;
    int marks_when_run = -1;
    store.after = [&](store_call which) -> std::optional<error> {
        if (which == store_call::started) ++marks;
        return std::nullopt;
    };
    lab.add({.name = "once"}, [&](payload, job_context&) {
        marks_when_run = marks;
        return test::ended_well();
    });
    lab.add({.name = "work"}, [](payload, job_context& c) { return test::slept(c, 1s); });
    auto once_only = lab.job("once");
    once_only.may_restart = false;
    once_only.priority = 1;
    const auto id = lab.enqueue(std::move(once_only));
    lab.enqueue_many(50);
    lab.start({.concurrency = 2, .settle_wait = 10min});
    lab.on.run_ready();
    CHECK(marks_when_run == 1);
    CHECK(lab.state(id) == job_state::succeeded);
    lab.stop(); // while the store is there
}

TEST_CASE("a job that may not restart waits until the store has taken the mark, and does not run without it") {
    worker_lab lab;
    test::faulty_jobs store(*lab.held->jobs());
    bool down = true;
    store.before = [&](store_call which) -> std::optional<error> {
        if (which == store_call::started && down) return error{errc::unavailable, "away", std::nullopt};
        return std::nullopt;
    };
    lab.over = &store;
    int ran = 0;
    lab.add({.name = "work"}, [&](payload, job_context&) {
        ++ran;
        return test::ended_well();
    });
    auto once_only = lab.job();
    once_only.may_restart = false;
    const auto id = lab.enqueue(std::move(once_only));
    lab.start();
    lab.on.advance(10s);
    CHECK(ran == 0);
    down = false;
    lab.on.advance(10s);
    CHECK(ran == 1);
    CHECK(lab.state(id) == job_state::succeeded);
    lab.stop(); // while the store is there
}

TEST_CASE("after a crash the probe decides: it happened, it did not, or nobody knows") {
    const auto said = GENERATE(happened::yes, happened::no, happened::unknown);
    worker_lab lab;
    int ran = 0;
    int asked = 0;
    lab.add(
        {.name = "work", .restart = restart::probe},
        [&](payload, job_context&) {
            ++ran;
            return test::ended_well();
        },
        [&](const payload&) {
            ++asked;
            return said;
        });
    const auto id = crashed(lab, lab.job());
    lab.start();
    lab.on.advance(1s);
    CHECK(asked == 1);
    CHECK(ran == (said == happened::no ? 1 : 0));
    CHECK(lab.state(id) == (said == happened::unknown ? job_state::indeterminate : job_state::succeeded));
}

TEST_CASE("the probe is not asked about a first run, nor after a failure that is known") {
    worker_lab lab;
    int asked = 0;
    int ran = 0;
    lab.add(
        {.name = "work", .retry = {.delay = 1s}, .restart = restart::probe},
        [&](payload, job_context&) -> task<result<void>> {
            if (++ran == 1) throw std::runtime_error("no");
            return test::ended_well();
        },
        [&](const payload&) {
            ++asked;
            return happened::unknown;
        });
    const auto id = lab.enqueue();
    lab.start();
    lab.on.advance(10s);
    CHECK(ran == 2);
    CHECK(asked == 0);
    CHECK(lab.state(id) == job_state::succeeded);
}

TEST_CASE("restart allowed, said for one job of a probed type, runs it again without a question") {
    worker_lab lab;
    int ran = 0;
    lab.add(
        {.name = "work", .restart = restart::probe},
        [&](payload, job_context&) {
            ++ran;
            return test::ended_well();
        },
        [](const payload&) { return happened::unknown; });
    jobs client(lab.store(), lab.ids);
    auto made = client.make_record({.name = "work"}, restart::probe, lab.job().what, {.restart = restart::allowed});
    const auto id = crashed(lab, std::move(*made));
    lab.start();
    lab.on.advance(1s);
    CHECK(ran == 1);
    CHECK(lab.state(id) == job_state::succeeded);
}

TEST_CASE("a run in doubt stays so while the job is put back and put off, until the probe has told") {
    worker_lab lab;
    int asked = 0;
    int ran = 0;
    auto how = job_options{.name = "work", .retry = {.delay = 1s}, .hard_deadline = 5s, .restart = restart::probe};
    lab.add(
        how,
        [&](payload, job_context& c) {
            ++ran;
            return test::slept_deaf(c, 1min);
        },
        [&](const payload&) {
            ++asked;
            return happened::yes;
        });
    const auto id = lab.enqueue();
    lab.start();
    lab.on.advance(5100ms);
    REQUIRE(lab.look(id).last_error.type == "stuck");
    lab.stop(0s);
    // Others take it and give it back, so that these are the newest in its history.
    for (const auto how_back : {settlement::kind::release, settlement::kind::snooze}) {
        lab.on.advance(2s);
        const auto taken = lab.get(lab.store().claim({.queues = {"default"}, .limit = 1, .worker = "other"}));
        REQUIRE(taken.size() == 1);
        settlement back;
        back.held = &taken.front().lease;
        back.how = how_back;
        const settlement one[] = {back};
        CHECK(lab.get(lab.store().settle(one)).front().answer == write_answer::done);
    }
    lab.start();
    lab.on.advance(1s);
    CHECK(asked == 1);
    CHECK(ran == 1);
    CHECK(lab.state(id) == job_state::succeeded);
}

TEST_CASE("a probe that throws leaves the job indeterminate, and a person who requeues it has it run") {
    worker_lab lab;
    int ran = 0;
    lab.add(
        {.name = "work", .restart = restart::probe},
        [&](payload, job_context&) {
            ++ran;
            return test::ended_well();
        },
        [](const payload&) -> happened { throw 42; });
    const auto id = crashed(lab, lab.job());
    lab.start();
    lab.on.advance(1s);
    CHECK(lab.state(id) == job_state::indeterminate);
    CHECK(lab.look(id).last_error.message == "the probe failed: an exception of type int");
    CHECK(lab.get(lab.store().requeue({id})) == 1);
    lab.on.advance(1s);
    CHECK(ran == 1);
    CHECK(lab.state(id) == job_state::succeeded);
}

TEST_CASE("an attempt that was given up as stuck is in doubt, so the probe is asked before the next") {
    worker_lab lab;
    int asked = 0;
    lab.add(
        {.name = "work", .retry = {.delay = 1s}, .hard_deadline = 5s, .restart = restart::probe},
        [&](payload, job_context& c) { return test::slept_deaf(c, 1min); },
        [&](const payload&) {
            ++asked;
            return happened::yes;
        });
    const auto id = lab.enqueue();
    lab.start();
    lab.on.advance(10s);
    CHECK(asked == 1);
    CHECK(lab.state(id) == job_state::succeeded);
    lab.on.advance(1min);
    CHECK(lab.look(id).history.size() == 2);
}

TEST_CASE("a job that kills its workers is dead after its crashes are spent, and the reason is kept") {
    worker_lab lab;
    lab.add({.name = "work"}, [](payload, job_context&) { return test::ended_well(); });
    auto job = lab.job();
    job.max_crashes = 2;
    const auto id = lab.enqueue(std::move(job));
    for (int i = 0; i < 3; ++i) {
        lab.get(lab.store().claim({.queues = {"default"}, .limit = 1, .lease_for = 1s, .worker = "dead"}));
        lab.on.advance(2s);
        lab.get(lab.store().recover_stale(10));
    }
    lab.start();
    lab.on.advance(1s);
    CHECK(lab.state(id) == job_state::dead_letter);
    CHECK(lab.look(id).last_error.message == "crashed too often");
}

TEST_CASE("a job of several crashes that is stuck does not hold up others of that sort") {
    worker_lab lab;
    lab.add({.name = "work", .hard_deadline = 5s}, [](payload what, job_context& c) {
        return what.body == "endless" ? test::slept_deaf(c, 24h * 365) : test::ended_well();
    });
    const auto endless = lab.enqueue("work", "endless");
    const auto other = lab.enqueue();
    for (int i = 0; i < 2; ++i) {
        lab.get(lab.store().claim({.queues = {"default"}, .limit = 2, .lease_for = 1s, .worker = "dead"}));
        lab.on.advance(2s);
        CHECK(lab.get(lab.store().recover_stale(10)).requeued == 2);
    }
    lab.start();
    lab.on.advance(20s);
    CHECK(lab.look(endless).last_error.type == "stuck");
    CHECK(lab.state(other) == job_state::succeeded);
}

TEST_CASE("jobs that were in several crashes run one at a time, so that the guilty one is alone, none is burnt") {
    worker_lab lab;
    int running = 0;
    int most = 0;
    lab.add({.name = "work"}, [&](payload, job_context& c) {
        return [](job_context& in, int& now, int& peak) -> task<result<void>> {
            peak = std::max(peak, ++now);
            co_await in.sleep_for(100ms);
            --now;
            co_return result<void>{};
        }(c, running, most);
    });
    lab.enqueue_many(5);
    for (int i = 0; i < 2; ++i) {
        lab.get(lab.store().claim({.queues = {"default"}, .limit = 5, .lease_for = 1s, .worker = "dead"}));
        lab.on.advance(2s);
        CHECK(lab.get(lab.store().recover_stale(10)).requeued == 5);
    }
    lab.start();
    lab.on.advance(200ms);
    CHECK(lab.count_of(job_state::succeeded) == 1);
    lab.on.advance(20s);
    CHECK(most == 1);
    CHECK(lab.count_of(job_state::succeeded) == 5);
    for (const auto& each : lab.get(lab.store().list({}, 10)).jobs) CHECK(each.attempts == 1);
}
