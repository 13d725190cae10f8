#include <algorithm>

#include "catch.hpp"
#include "faulty_jobs.hpp"
#include "worker_lab.hpp"

using namespace std::chrono_literals;
using namespace holdfast;
using test::worker_lab;

TEST_CASE("a worker runs a job and settles it") {
    worker_lab lab;
    std::string seen;
    lab.add({.name = "work"}, [&](payload what, job_context& c) {
        seen = what.body + " " + std::to_string(c.attempt()) + "/" + std::to_string(c.max_attempts());
        c.output("done");
        return test::ended_well();
    });
    const auto id = lab.enqueue("work", "hello");
    lab.start();
    lab.on.advance(100ms);
    CHECK(seen == "hello 1/3");
    CHECK(lab.state(id) == job_state::succeeded);
    CHECK(lab.look(id).output == "done");
    CHECK(lab.worker->snapshot().succeeded == 1);
    CHECK(lab.worker->snapshot().running.empty());
}

TEST_CASE("a job that is enqueued while the worker is idle starts at once, by the store's hint") {
    worker_lab lab;
    std::optional<time_point> began;
    lab.add({.name = "work"}, [&](payload, job_context& c) {
        began = c.runtime().now();
        return test::ended_well();
    });
    lab.start({.poll = 1h});
    lab.on.advance(10s);
    const time_point asked = lab.on.now();
    lab.enqueue();
    lab.on.run_ready();
    REQUIRE(began);
    CHECK(*began - asked < 1ms);
}

TEST_CASE("a job that falls due without a hint starts when it is due, not at the next poll") {
    worker_lab lab;
    std::optional<time_point> began;
    lab.add({.name = "work"}, [&](payload, job_context& c) {
        began = c.runtime().now();
        return test::ended_well();
    });
    lab.start({.poll = 1s});
    lab.on.advance(10s);
    auto later = lab.job();
    later.when = due::after(7300ms);
    const time_point asked = lab.on.now();
    lab.enqueue(std::move(later));
    lab.on.advance(1min);
    REQUIRE(began);
    CHECK(*began - asked >= 7300ms);
    CHECK(*began - asked < 7310ms);
}

TEST_CASE("the attempts that were made in process before count in the context") {
    worker_lab lab;
    std::string seen;
    lab.add({.name = "work"}, [&](payload, job_context& c) {
        seen = std::to_string(c.attempt()) + "/" + std::to_string(c.max_attempts());
        return test::ended_well();
    });
    auto one = lab.job();
    one.extra["attempts-before"] = "4";
    one.max_attempts = 2;
    lab.enqueue(std::move(one));
    lab.start();
    lab.on.advance(100ms);
    CHECK(seen == "5/6");
}

TEST_CASE("ten thousand short jobs drain in batches, and nothing is left behind") {
    worker_lab lab(GENERATE(0, 1, 2));
    int ran = 0;
    lab.add({.name = "work"}, [&](payload, job_context&) {
        ++ran;
        return test::ended_well();
    });
    lab.enqueue_many(10'000);
    lab.start();
    lab.on.advance(1s);
    CHECK(ran == 10'000);
    CHECK(lab.count_of(job_state::succeeded) == 10'000);
    const auto seen = lab.worker->snapshot();
    CHECK(seen.claimed == 10'000);
    CHECK(seen.succeeded == 10'000);
    CHECK(seen.prefetched == 0);
    CHECK(seen.unsettled == 0);
}

TEST_CASE("two claims are under way at once while there is room for both") {
    struct given {
        int batch;
        int limit; // of the queue
        int expected;
    };
    for (const auto [batch, limit, expected] : {given{10, 0, 2}, given{100, 0, 1}, given{10, 50, 1}}) {
        worker_lab lab;
        test::faulty_jobs slow(*lab.held->jobs());
        slow.on = &lab.on;
        slow.lag = [] { return duration(1ms); };
        int under_way = 0;
        int most = 0;
        slow.before = [&](test::store_call which) -> std::optional<error> {
            if (which == test::store_call::claim) most = std::max(most, ++under_way);
            return std::nullopt;
        };
        slow.after = [&](test::store_call which) -> std::optional<error> {
            if (which == test::store_call::claim) --under_way;
            return std::nullopt;
        };
        lab.over = &slow;
        int ran = 0;
        lab.add({.name = "work"}, [&](payload, job_context&) {
            ++ran;
            return test::ended_well();
        });
        lab.enqueue_many(500);
        lab.start(
            {.queues = {{.name = "default", .concurrency = limit}}, .concurrency = 100, .prefetch = 0, .batch = batch});
        lab.on.advance(5s);
        CHECK(ran == 500);
        CHECK(most == expected);
        lab.stop();
    }
}

TEST_CASE("a worker without a name calls itself after its host, its process and chance") {
    worker_lab lab;
    const job_worker one({lab.on, lab.store(), lab.kinds, lab.log});
    const job_worker other({lab.on, lab.store(), lab.kinds, lab.log});
    CHECK(std::ranges::count(one.name(), ':') == 2);
    CHECK(one.name() != other.name());
    const job_worker named({lab.on, lab.store(), lab.kinds, lab.log}, {.name = "desk-3"});
    CHECK(named.name() == "desk-3");
}
