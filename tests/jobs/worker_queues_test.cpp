// Which jobs run next, how many at once, and how far ahead they are claimed.
#include <map>

#include "catch.hpp"
#include "faulty_jobs.hpp"
#include "worker_lab.hpp"

using namespace std::chrono_literals;
using namespace holdfast;
using test::worker_lab;

TEST_CASE("a thousand coroutine handlers run at the same time") {
    worker_lab lab;
    int running = 0;
    int most = 0;
    lab.add({.name = "work"}, [&](payload, job_context& c) {
        return [](job_context& in, int& now, int& peak) -> task<result<void>> {
            peak = std::max(peak, ++now);
            co_await in.sleep_for(1s);
            --now;
            co_return result<void>{};
        }(c, running, most);
    });
    lab.enqueue_many(3000);
    lab.start({.concurrency = 1000});
    lab.on.advance(10s);
    CHECK(most == 1000);
    CHECK(lab.count_of(job_state::succeeded) == 3000);
}

TEST_CASE("a queue's own limit holds, and the other queues go on beside it") {
    worker_lab lab;
    std::map<std::string, int> running;
    std::map<std::string, int> most;
    lab.add({.name = "work"}, [&](payload, job_context& c) {
        return [](job_context& in, std::map<std::string, int>& now,
                  std::map<std::string, int>& peak) -> task<result<void>> {
            const std::string queue(in.queue());
            peak[queue] = std::max(peak[queue], ++now[queue]);
            co_await in.sleep_for(10ms);
            --now[queue];
            co_return result<void>{};
        }(c, running, most);
    });
    lab.enqueue_many(200, "work", "mail");
    lab.enqueue_many(200, "work", "reports");
    lab.start({.queues = {{"mail", 1, 3}, {"reports"}}, .concurrency = 20});
    lab.on.advance(5s);
    CHECK(most["mail"] == 3);
    CHECK(most["reports"] > 10);
    CHECK(most["mail"] + most["reports"] >= 20);
    CHECK(lab.count_of(job_state::succeeded) == 400);
}

TEST_CASE("queues share the slots by their weights, and a light queue is not starved") {
    worker_lab lab;
    std::map<std::string, int> ran;
    lab.add({.name = "work"}, [&](payload, job_context& c) {
        ++ran[std::string(c.queue())];
        return test::slept(c, 100ms);
    });
    lab.enqueue_many(2000, "work", "heavy");
    lab.enqueue_many(2000, "work", "light");
    lab.start({.queues = {{"heavy", 3}, {"light", 1}}, .concurrency = 10});
    lab.on.advance(8s);
    const double share = static_cast<double>(ran["heavy"]) / (ran["heavy"] + ran["light"]);
    CAPTURE(ran["heavy"], ran["light"]);
    CHECK(share > 0.65);
    CHECK(share < 0.85);
}

TEST_CASE("within a queue higher priorities run first, also before what was claimed earlier") {
    worker_lab lab;
    std::string order;
    lab.add({.name = "work"}, [&](payload what, job_context& c) {
        order += what.body;
        return test::slept(c, 1ms);
    });
    for (const char* each : {"a", "b", "c"}) {
        auto low = lab.job("work", each);
        lab.enqueue(std::move(low));
    }
    auto high = lab.job("work", "H");
    high.priority = 10;
    lab.enqueue(std::move(high));
    lab.start({.concurrency = 1});
    lab.on.advance(1s);
    CHECK(order == "Habc");

    order.clear();
    for (const char* each : {"1", "2", "3", "4"}) lab.enqueue("work", each);
    lab.on.run_ready();
    CHECK(order == "1");
    REQUIRE(lab.worker->snapshot().prefetched == 3); // quick ones are claimed ahead
    high = lab.job("work", "H");
    high.priority = 10;
    lab.enqueue(std::move(high));
    lab.on.advance(1s);
    CHECK(order == "1H234");
}

TEST_CASE("slow jobs are not claimed ahead of free slots, quick ones are") {
    worker_lab lab;
    lab.add({.name = "slow"}, [](payload, job_context& c) { return test::slept(c, 1min); });
    lab.add({.name = "quick"}, [](payload, job_context& c) { return test::slept(c, 2ms); });
    lab.enqueue_many(200, "slow");
    lab.start({.concurrency = 10});
    int most = 0;
    for (int i = 0; i < 180; ++i) {
        lab.on.advance(1s);
        most = std::max(most, lab.worker->snapshot().prefetched);
    }
    CHECK(most <= 1);
    CHECK(lab.count_of(job_state::processing) <= 11);
    lab.stop();

    worker_lab other;
    other.add({.name = "quick"}, [](payload, job_context& c) { return test::slept(c, 2ms); });
    other.enqueue_many(5000, "quick");
    other.start({.concurrency = 10, .prefetch = 300});
    most = 0;
    for (int i = 0; i < 100; ++i) {
        other.on.advance(1ms);
        most = std::max(most, other.worker->snapshot().prefetched);
    }
    CHECK(most > 100);
    CHECK(most <= 300);
}

TEST_CASE("slow jobs of a queue with a limit hold up no other queue, and are left to other workers") {
    worker_lab lab;
    lab.add({.name = "slow"}, [](payload, job_context& c) { return test::slept(c, 10min); });
    lab.add({.name = "quick"}, [](payload, job_context& c) { return test::slept(c, 1ms); });
    lab.enqueue_many(2000, "quick", "quick");
    lab.start({.queues = {{"quick"}, {.name = "slow", .concurrency = 4}}});
    lab.on.advance(10s);
    REQUIRE(lab.count_of(job_state::succeeded) == 2000);
    lab.enqueue_many(2000, "slow", "slow");
    lab.on.advance(10s);
    CHECK(lab.count_of(job_state::processing) == 4);
    lab.enqueue_many(2000, "quick", "quick");
    lab.on.advance(10s);
    CHECK(lab.count_of(job_state::succeeded) == 4000);
    lab.on.advance(1h);
    CHECK(lab.count_of(job_state::processing) <= 5);
}

TEST_CASE("a long line of quick jobs leaves slow ones of a queue with a limit their slots") {
    worker_lab lab;
    int ended = 0;
    lab.add({.name = "slow"}, [&](payload, job_context& c) -> task<result<void>> {
        auto working = test::slept(c, 100ms);
        auto answer = co_await std::move(working);
        ++ended;
        co_return answer;
    });
    lab.add({.name = "quick"}, [](payload, job_context& c) { return test::slept(c, 1ms); });
    lab.enqueue_many(50'000, "quick", "quick");
    lab.enqueue_many(30, "slow", "slow");
    lab.start({.queues = {{"quick"}, {.name = "slow", .concurrency = 4}}, .concurrency = 20});
    lab.on.advance(1200ms);
    CHECK(ended >= 30);
    CHECK(lab.count_of(job_state::succeeded) < 40'000);
}

TEST_CASE("jobs that were claimed ahead and wait long for a slot go back to others, unburnt, and once") {
    worker_lab lab;
    bool slow = false;
    lab.add({.name = "work"}, [&](payload, job_context& c) { return test::slept(c, slow ? 10min : 1ms); });
    lab.enqueue_many(2000);
    lab.start({.concurrency = 10, .prefetch = 100, .lease = 30s});
    lab.on.advance(10s);
    REQUIRE(lab.count_of(job_state::succeeded) == 2000);
    slow = true;
    lab.enqueue_many(200);
    lab.on.advance(1s);
    REQUIRE(lab.count_of(job_state::processing) == 110);
    lab.on.advance(30s);
    CHECK(lab.count_of(job_state::processing) == 10);
    lab.on.advance(5min);
    CHECK(lab.count_of(job_state::processing) == 10);
    for (const auto& each : lab.get(lab.store().list({.state = job_state::pending}, 200)).jobs) {
        CHECK(each.attempts == 0);
        CHECK(lab.look(each.id).history.size() <= 1);
    }
}

TEST_CASE("claims and settlements go in batches") {
    worker_lab lab;
    test::faulty_jobs store(*lab.held->jobs());
    lab.over = &store;
    lab.add({.name = "work"}, [](payload, job_context&) { return test::ended_well(); });
    lab.enqueue_many(20'000);
    lab.start();
    lab.on.advance(1s);
    CHECK(lab.count_of(job_state::succeeded) == 20'000);
    CHECK(store.count(test::store_call::claim) < 100);
    CHECK(store.count(test::store_call::settle) < 100);
    lab.stop(); // while the store is there
}

TEST_CASE("an idle worker asks the store about once a poll, with hints or without") {
    worker_lab lab;
    test::faulty_jobs store(*lab.held->jobs());
    store.gives_hints = GENERATE(true, false);
    lab.over = &store;
    lab.add({.name = "work"}, [](payload, job_context&) { return test::ended_well(); });
    lab.start({.poll = 1s});
    lab.on.advance(100s);
    CHECK(store.count(test::store_call::claim) >= 95);
    CHECK(store.count(test::store_call::claim) <= 105);
    const auto id = lab.enqueue();
    lab.on.advance(1100ms); // the poll alone finds it
    CHECK(lab.state(id) == job_state::succeeded);
    lab.stop(); // while the store is there
}

TEST_CASE("a paused worker gives back what it has not begun, and goes on when it is resumed") {
    worker_lab lab;
    lab.add({.name = "work"}, [](payload, job_context& c) { return test::slept(c, 2ms); });
    lab.enqueue_many(2000);
    lab.start({.concurrency = 10});
    lab.on.advance(50ms);
    CHECK(lab.worker->snapshot().prefetched > 0);
    lab.worker->pause();
    lab.on.advance(100ms);
    CHECK(lab.worker->snapshot().paused);
    CHECK(lab.worker->snapshot().prefetched == 0);
    CHECK(lab.worker->snapshot().running.empty());
    CHECK(lab.count_of(job_state::processing) == 0);
    const auto before = lab.count_of(job_state::succeeded);
    lab.on.advance(10s);
    CHECK(lab.count_of(job_state::succeeded) == before);
    lab.worker->resume();
    lab.on.advance(10s);
    CHECK(lab.count_of(job_state::succeeded) == 2000);
    for (const auto& each : lab.get(lab.store().list({}, 3000)).jobs) REQUIRE(each.attempts == 1);
}

TEST_CASE("a queue that is paused in the store is left alone") {
    worker_lab lab;
    lab.add({.name = "work"}, [](payload, job_context&) { return test::ended_well(); });
    lab.start();
    sync_wait(lab.on, lab.store().pause("default")).value();
    const auto id = lab.enqueue();
    lab.on.advance(10s);
    CHECK(lab.state(id) == job_state::pending);
    sync_wait(lab.on, lab.store().resume("default")).value();
    lab.on.run_ready();
    CHECK(lab.state(id) == job_state::succeeded);
}

TEST_CASE("a handler enqueues other jobs through its context") {
    worker_lab lab;
    lab.add({.name = "child"}, [](payload, job_context&) { return test::ended_well(); });
    lab.add({.name = "work"}, [](payload, job_context& c) {
        return [](job_context& in) -> task<result<void>> {
            auto made = in.jobs().make_record({.name = "child"}, restart::unset, {"child", 1, "text/plain", ""}, {});
            std::vector<new_job> batch;
            batch.push_back(std::move(*made));
            auto enqueueing = in.jobs().store().enqueue(std::move(batch));
            const auto done = co_await std::move(enqueueing);
            if (!done) co_return std::unexpected(done.error());
            co_return result<void>{};
        }(c);
    });
    lab.enqueue();
    lab.start();
    lab.on.advance(1s);
    CHECK(lab.count_of(job_state::succeeded) == 2);
}
