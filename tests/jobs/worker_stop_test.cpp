// Graceful stop, and less graceful ones.
#include <holdfast/task_scope.hpp>

#include "catch.hpp"
#include "faulty_jobs.hpp"
#include "worker_lab.hpp"

using namespace std::chrono_literals;
using namespace holdfast;
using test::store_call;
using test::worker_lab;

TEST_CASE("a stop lets running jobs end, and gives back those that were not begun, unburnt") {
    worker_lab lab;
    lab.add({.name = "work"},
            [n = 0](payload, job_context& c) mutable { return test::slept(c, ++n > 100 ? 5s : 2ms); });
    lab.enqueue_many(1000);
    lab.start({.concurrency = 10});
    lab.on.advance(100ms);
    const auto before = lab.worker->snapshot();
    CHECK(before.prefetched > 0);
    CHECK(before.running.size() == 10);
    const time_point asked = lab.on.now();
    sync_wait(lab.on, lab.worker->stop());
    CHECK(lab.on.now() - asked <= 5s);
    CHECK(lab.count_of(job_state::processing) == 0);
    CHECK(lab.count_of(job_state::succeeded) + lab.count_of(job_state::pending) == 1000);
    for (const auto& each : lab.get(lab.store().list({.state = job_state::pending}, 1000)).jobs)
        REQUIRE(each.attempts == 0);
    CHECK(lab.worker->snapshot().released >= static_cast<std::uint64_t>(before.prefetched));
}

TEST_CASE("when the grace is over tokens fire, and what was interrupted comes back unburnt") {
    worker_lab lab;
    lab.add({.name = "work"}, [](payload, job_context& c) { return test::slept(c, 10h); });
    const auto id = lab.enqueue();
    auto once_only = lab.job();
    once_only.may_restart = false;
    const auto once = lab.enqueue(std::move(once_only));
    lab.start();
    lab.on.advance(1s);
    const time_point asked = lab.on.now();
    lab.stop(20s);
    CHECK(lab.on.now() - asked >= 20s);
    CHECK(lab.on.now() - asked < 21s);
    CHECK(lab.state(id) == job_state::pending);
    CHECK(lab.look(id).attempts == 0);
    CHECK(lab.state(once) == job_state::failed);
    CHECK(lab.look(once).last_error.type == "interrupted");
}

TEST_CASE("a second signal cuts the grace short") {
    worker_lab lab;
    lab.add({.name = "work"}, [](payload, job_context& c) { return test::slept(c, 10h); });
    const auto id = lab.enqueue();
    lab.start();
    lab.on.advance(1s);
    const time_point asked = lab.on.now();
    task_scope scope;
    scope.spawn(lab.worker->stop(1h));
    lab.on.advance(3s);
    lab.worker->stop_now();
    sync_wait(lab.on, scope.join());
    CHECK(lab.on.now() - asked < 4s);
    CHECK(lab.state(id) == job_state::pending);
}

TEST_CASE("a handler that ignores its token does not hold up a stop for ever, and writes nothing afterwards") {
    worker_lab lab;
    lab.add({.name = "work"}, [](payload, job_context& c) { return test::slept_deaf(c, 2min); });
    const auto id = lab.enqueue();
    lab.start();
    lab.on.advance(1s);
    const time_point asked = lab.on.now();
    sync_wait(lab.on, lab.worker->stop(10s));
    CHECK(lab.on.now() - asked <= 21s);
    CHECK(lab.worker->snapshot().running.size() == 1);
    CHECK(lab.log.count("1 handler ignored the request to stop") == 1);
    lab.worker.reset(); // the handler still runs
    lab.on.advance(5min);
    CHECK(lab.state(id) == job_state::processing);
    CHECK(lab.get(lab.store().recover_stale(10)).requeued == 1);
}

TEST_CASE("a stop ends although the store is away, and recovery finds what could not be written") {
    worker_lab lab;
    test::faulty_jobs store(*lab.held->jobs());
    bool down = false;
    store.before = [&](store_call) -> std::optional<error> {
        if (!down) return std::nullopt;
        return error{errc::unavailable, "gone", std::nullopt};
    };
    lab.over = &store;
    lab.add({.name = "work"}, [](payload, job_context& c) { return test::slept(c, 3s); });
    lab.enqueue_many(30);
    lab.start({.concurrency = 10});
    lab.on.advance(1s);
    down = true;
    const time_point asked = lab.on.now();
    lab.stop(30s);
    CHECK(lab.on.now() - asked < 40s);
    CHECK(lab.log.count("could not be written") >= 1);
    lab.on.advance(2min);
    CHECK(lab.get(lab.held->jobs()->recover_stale(100)).requeued == 10);
}

TEST_CASE("jobs that a claim under way brings after the stop go straight back") {
    worker_lab lab;
    test::faulty_jobs store(*lab.held->jobs());
    task_scope scope;
    bool stopping = false;
    store.after = [&](store_call which) -> std::optional<error> {
        if (which == store_call::claim && !std::exchange(stopping, true)) scope.spawn(lab.worker->stop());
        return std::nullopt;
    };
    lab.over = &store;
    int ran = 0;
    lab.add({.name = "work"}, [&](payload, job_context&) {
        ++ran;
        return test::ended_well();
    });
    lab.enqueue_many(20);
    lab.start();
    lab.on.run_ready();
    sync_wait(lab.on, scope.join());
    CHECK(ran == 0);
    CHECK(lab.count_of(job_state::pending) == 20);
    lab.worker.reset();
    lab.stop(); // while the store is there
}

TEST_CASE("a worker can be stopped before it has done anything, and its runtime afterwards") {
    worker_lab lab;
    lab.start();
    lab.stop();
    lab.on.stop();
}

TEST_CASE("a runtime that stops under a worker ends it") {
    simulated_runtime on;
    test::kept_log log;
    job_registry kinds;
    auto store = memory::make_store({}, &on);
    job_worker worker({on, *store->jobs(), kinds, log});
    REQUIRE(worker.start());
    on.advance(1s);
    on.stop();
    sync_wait(on, worker.stop());
}
