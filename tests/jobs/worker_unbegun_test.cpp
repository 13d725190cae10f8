// Jobs that have a slot, but whose handlers have not begun: they wait for a thread, a probe, a mark in the store.
#include "catch.hpp"
#include "faulty_jobs.hpp"
#include "worker_lab.hpp"

using namespace std::chrono_literals;
using namespace holdfast;
using Catch::Matchers::ContainsSubstring;
using test::store_call;
using test::worker_lab;

namespace {

// As a blocking handler is run when no thread of the pool is free for a while.
task<result<void>> after_a_wait(job_context& c, duration wait, int& begun) {
    c.handler_waits();
    co_await sleep_for(c.runtime(), wait);
    c.handler_begins();
    ++begun;
    co_return result<void>{};
}

task<result<void>> without_room(job_context& c, int& refused, int times) {
    c.handler_waits();
    if (refused < times) {
        ++refused;
        throw failed({errc::overloaded, "the blocking pool's queue is full", std::nullopt});
    }
    c.handler_begins();
    co_return result<void>{};
}

// Its probe takes a while, and says that nothing happened.
class probed_job final : public job_type {
public:
    const job_options& options() const noexcept override { return how_; }
    holdfast::restart restart() const noexcept override { return restart::probe; }
    task<result<void>> run(payload, job_context&) override {
        ++ran;
        return test::ended_well();
    }
    task<happened> probe(payload, job_context& context) override {
        ++asked;
        co_await sleep_for(context.runtime(), 10s); // deaf to its token
        co_return happened::no;
    }
    int asked = 0;
    int ran = 0;

private:
    job_options how_{.name = "probed", .restart = restart::probe};
};

// A job whose first worker died over it, so that its probe is asked.
identifier enqueue_crashed(worker_lab& lab) {
    const auto id = lab.enqueue("probed");
    lab.get(lab.held->jobs()->claim({.queues = {"default"}, .limit = 1, .lease_for = 1s, .worker = "dead"}));
    lab.on.advance(2s);
    lab.get(lab.held->jobs()->recover_stale(10));
    return id;
}

} // namespace

TEST_CASE("a stop gives back at once what waits for a thread, unburnt, and it does not begin any more") {
    worker_lab lab;
    int begun = 0;
    lab.add({.name = "work"}, [&](payload, job_context& c) { return after_a_wait(c, 1min, begun); });
    const auto id = lab.enqueue();
    new_job fragile = lab.job();
    fragile.may_restart = false;
    const auto fragile_id = lab.enqueue(std::move(fragile));
    lab.start();
    lab.on.advance(1s);
    REQUIRE(lab.worker->snapshot().running.size() == 2);

    const auto asked = lab.on.now();
    lab.stop(30s);
    CHECK(lab.on.now() - asked < 1s);
    for (const auto& each : {id, fragile_id}) {
        CHECK(lab.state(each) == job_state::pending);
        CHECK(lab.look(each).attempts == 0);
    }
    lab.on.advance(2min); // the thread is there at last
    CHECK(begun == 0);
    CHECK(lab.log.count("ignored the request to stop") == 0);
}

TEST_CASE("a handler that gets its thread while the worker stops goes back instead of beginning") {
    worker_lab lab;
    int begun = 0;
    lab.add({.name = "work"}, [&](payload, job_context& c) -> task<result<void>> {
        // It comes to wait for its thread only after the stop has looked who waits.
        auto later = [](job_context& in, int& count) -> task<result<void>> {
            co_await sleep_for(in.runtime(), 5s);
            auto waiting = after_a_wait(in, 1s, count);
            co_return co_await std::move(waiting);
        };
        return later(c, begun);
    });
    new_job fragile = lab.job();
    fragile.may_restart = false;
    const auto id = lab.enqueue(std::move(fragile));
    lab.start();
    lab.on.advance(1s);
    lab.stop(30s);
    CHECK(begun == 0);
    CHECK(lab.state(id) == job_state::pending);
    CHECK(lab.look(id).attempts == 0);
}

TEST_CASE("a job that is cancelled while it waits for a thread is not begun") {
    worker_lab lab;
    int begun = 0;
    lab.add({.name = "work"}, [&](payload, job_context& c) { return after_a_wait(c, 1min, begun); });
    const auto id = lab.enqueue();
    lab.start({.lease = 30s});
    lab.on.advance(1s);
    lab.get(lab.held->jobs()->cancel({id}));
    lab.on.advance(2min);
    CHECK(begun == 0);
    CHECK(lab.state(id) == job_state::cancelled);
}

TEST_CASE("a full blocking pool puts a job off, and burns no attempt") {
    worker_lab lab;
    int refused = 0;
    lab.add({.name = "work", .attempts = 1}, [&](payload, job_context& c) { return without_room(c, refused, 3); });
    const auto id = lab.enqueue();
    lab.start();
    lab.on.advance(500ms);
    CHECK(refused == 1);
    CHECK(lab.state(id) == job_state::scheduled);
    CHECK(lab.look(id).attempts == 0);
    lab.on.advance(10s);
    CHECK(lab.state(id) == job_state::succeeded);
    CHECK(lab.log.count("blocking_threads") == 1); // told once a minute
}

TEST_CASE("what was lost, cancelled or is to stop while its probe was asked does not run") {
    worker_lab lab;
    auto kind = std::make_unique<probed_job>();
    probed_job& probed = *kind;
    lab.kinds.add(std::move(kind)).value();
    const auto id = enqueue_crashed(lab);
    test::faulty_jobs faulty(*lab.held->jobs());
    lab.over = &faulty;
    lab.start({.lease = 6s, .sweep = 1h});
    lab.on.advance(1s);
    REQUIRE(probed.asked == 1);
    REQUIRE(lab.state(id) == job_state::processing);

    SECTION("lost") {
        faulty.before =
            [](store_call which) -> std::optional<error> { // no heartbeat gets through for longer than a lease
            if (which != store_call::heartbeat) return std::nullopt;
            return error{errc::unavailable, "away", std::nullopt};
        };
        lab.on.advance(7s);
        lab.get(lab.held->jobs()->recover_stale(10));
        sync_wait(lab.on, lab.held->jobs()->pause("default")).value(); // so that it does not come back here
        faulty.before = [](store_call) { return std::nullopt; };
        lab.on.advance(20s);
        CHECK(probed.ran == 0);
        CHECK(lab.state(id) == job_state::pending);
    }
    SECTION("cancelled") {
        lab.get(lab.held->jobs()->cancel({id}));
        lab.on.advance(20s);
        CHECK(probed.ran == 0);
        CHECK(lab.state(id) == job_state::cancelled);
    }
    SECTION("the worker stops") {
        lab.stop(30s);
        CHECK(probed.ran == 0);
        CHECK(lab.state(id) == job_state::pending);
    }
    SECTION("nothing of this") {
        lab.on.advance(20s);
        CHECK(probed.ran == 1);
        CHECK(lab.state(id) == job_state::succeeded);
    }
    lab.stop();
    lab.over = nullptr;
}

TEST_CASE("deadlines and heartbeats do not wait for a store that does not answer") {
    worker_lab lab;
    test::faulty_jobs slow(*lab.held->jobs());
    slow.on = &lab.on;
    bool hangs = false;
    store_call now = store_call::other;
    store_call which_hangs = store_call::heartbeat;
    slow.before = [&](store_call which) {
        now = which;
        return std::nullopt;
    };
    slow.lag = [&] { return hangs && now == which_hangs ? duration(40s) : duration::zero(); };
    lab.over = &slow;
    std::optional<time_point> asked_to_stop;
    lab.add({.name = "work", .timeout = 15s}, [&](payload, job_context& c) -> task<result<void>> {
        auto waits = [](job_context& in, std::optional<time_point>& when) -> task<result<void>> {
            in.progress(1);
            co_await sleep_for(in.runtime(), 1h, in.stop_token());
            when = in.runtime().now();
            throw operation_cancelled();
        };
        return waits(c, asked_to_stop);
    });
    SECTION("heartbeats hang") {
        which_hangs = store_call::heartbeat;
    }
    SECTION("progress hangs") {
        which_hangs = store_call::progress;
    }
    lab.enqueue();
    lab.start({.lease = 30s});
    lab.on.advance(10ms);
    const auto began = lab.on.now();
    hangs = true;
    lab.on.advance(39s);
    REQUIRE(asked_to_stop);
    CHECK(*asked_to_stop - began <= 15s);
    if (which_hangs == store_call::progress) CHECK(slow.count(store_call::heartbeat) >= 1);
    hangs = false;
    lab.on.advance(2min);
    lab.stop();
    lab.over = nullptr;
}

TEST_CASE("what the hedged attempt says that won is kept, not what its rivals said") {
    constexpr auto hedging = policy({.name = "hedging", .hedge = {.max_hedges = 1, .after = 1s}});
    worker_lab lab;
    lab.made.add(hedging);
    int calls = 0;
    lab.add({.name = "work", .policy = "hedging"}, [&](payload, job_context& c) {
        auto run = [](job_context& in, int number) -> task<result<void>> {
            in.output("attempt " + std::to_string(number));
            co_await sleep_for(in.runtime(), number == 1 ? 2s : 1h, in.stop_token());
            co_return result<void>{};
        };
        return run(c, ++calls);
    });
    const auto id = lab.enqueue();
    lab.start();
    lab.on.advance(1min);
    CHECK(calls == 2);
    CHECK(lab.look(id).output == "attempt 1");
}

TEST_CASE("queues with limits of their own are claimed from only as far as the worker has room") {
    worker_lab lab;
    lab.add({.name = "work"}, [](payload, job_context& c) { return test::slept(c, 1h); });
    for (const std::string queue : {"a", "b", "c"}) lab.enqueue_many(50, "work", queue);
    lab.start({.queues = {{.name = "a", .concurrency = 10},
                          {.name = "b", .concurrency = 10},
                          {.name = "c", .concurrency = 10}},
               .concurrency = 10,
               .prefetch = 0});
    lab.on.advance(5s);
    CHECK(lab.count_of(job_state::processing) == 10);
    CHECK(lab.worker->snapshot().prefetched == 0);
}

TEST_CASE("a worker that goes away without a stop leaves nothing behind that touches it") {
    worker_lab lab;
    lab.add({.name = "work"}, [](payload, job_context& c) { return test::slept(c, 1h); });
    lab.enqueue_many(20);
    lab.start({.concurrency = 5});
    lab.on.advance(1s);
    lab.worker.reset();
    lab.on.advance(2h);
    CHECK(lab.count_of(job_state::processing) > 0); // its leases run out, and others recover them
}
