// Timeouts, hard deadlines, policies, cancellation.
#include <set>

#include "catch.hpp"
#include "faulty_jobs.hpp"
#include "worker_lab.hpp"

using namespace std::chrono_literals;
using namespace holdfast;
using Catch::Matchers::ContainsSubstring;
using test::worker_lab;

namespace {

constexpr auto twice_more = policy(
    {.name = "twice-more", .retry = {.max_attempts = 2, .delay = 1s, .backoff = backoff::constant, .jitter = false}});
constexpr auto impatient = policy({.name = "impatient", .timeout = 2s});

// As a blocking handler is run when no thread of the pool is free.
task<result<void>> waited_for_a_thread(job_context& c, duration wait, duration work) {
    c.handler_waits();
    co_await sleep_for(c.runtime(), wait);
    c.handler_begins();
    auto working = test::slept(c, work);
    co_return co_await std::move(working);
}

task<result<void>> fails(std::string why) {
    throw std::runtime_error(why);
    co_return result<void>{};
}

} // namespace

TEST_CASE("intervals may be for ever: nothing is done then that nobody asked for") {
    worker_lab lab;
    test::faulty_jobs store(*lab.held->jobs());
    lab.over = &store;
    lab.add({.name = "work"}, [](payload, job_context&) { return test::ended_well(); });
    lab.enqueue_many(10);
    lab.start({.poll = forever, .sweep = forever, .progress_every = forever});
    lab.on.advance(1h);
    CHECK(lab.count_of(job_state::succeeded) == 10);
    CHECK(store.count(test::store_call::claim) < 10);
    CHECK(store.count(test::store_call::recover_stale) <= 1);
    lab.stop(); // while the store is there
}

TEST_CASE("an attempt that is out of time is asked to stop and tried again later") {
    worker_lab lab;
    lab.add({.name = "work", .timeout = 2s}, [](payload, job_context& c) { return test::slept(c, 1h); });
    const auto id = lab.enqueue();
    lab.start();
    lab.on.advance(1900ms);
    CHECK(lab.worker->snapshot().running.size() == 1);
    lab.on.advance(200ms);
    CHECK(lab.state(id) == job_state::waiting_retry);
    CHECK(lab.look(id).last_error.type == "timed_out");
    CHECK_THAT(lab.look(id).last_error.message, ContainsSubstring("2s"));
}

TEST_CASE("the time of an attempt begins when its handler has a thread") {
    worker_lab lab;
    duration work = 1s;
    lab.add({.name = "work", .timeout = 2s, .hard_deadline = 3s},
            [&](payload, job_context& c) { return waited_for_a_thread(c, 10s, work); });
    const auto in_time = lab.enqueue();
    lab.start();
    lab.on.advance(12s);
    CHECK(lab.state(in_time) == job_state::succeeded);
    CHECK(lab.worker->snapshot().stuck == 0);

    work = 1h;
    const auto late = lab.enqueue();
    lab.on.advance(11900ms);
    CHECK(lab.state(late) == job_state::processing);
    lab.on.advance(200ms);
    CHECK(lab.state(late) == job_state::waiting_retry);
    CHECK(lab.look(late).last_error.type == "timed_out");
}

TEST_CASE("a further call within the run gets no more time than the run has left") {
    worker_lab lab;
    lab.made.add(twice_more);
    int calls = 0;
    const auto fails_once = [](job_context& c, bool fail) -> task<result<void>> {
        auto running = waited_for_a_thread(c, 1s, fail ? 1s : 1h);
        auto ended = co_await std::move(running);
        if (fail) throw std::runtime_error("not yet");
        co_return ended;
    };
    lab.add({.name = "work", .timeout = 3s, .policy = "twice-more"},
            [&](payload, job_context& c) { return fails_once(c, ++calls == 1); });
    const auto id = lab.enqueue();
    lab.start();
    lab.on.advance(3900ms); // its time began after 1s, and the second call after 3s
    CHECK(calls == 2);
    CHECK(lab.state(id) == job_state::processing);
    lab.on.advance(200ms);
    CHECK(lab.state(id) == job_state::waiting_retry);
    CHECK(lab.look(id).last_error.type == "timed_out");
}

TEST_CASE("what an attempt achieves after its timeout still counts") {
    worker_lab lab;
    lab.add({.name = "work", .timeout = 2s}, [](payload, job_context& c) { return test::slept_deaf(c, 5s); });
    const auto id = lab.enqueue();
    lab.start();
    lab.on.advance(6s);
    CHECK(lab.state(id) == job_state::succeeded);
}

TEST_CASE("a handler past its hard deadline is given up as stuck, keeps its slot, and is visible") {
    worker_lab lab;
    lab.add({.name = "work", .timeout = 2s, .hard_deadline = 10s},
            [](payload, job_context& c) { return test::slept_deaf(c, 1h); });
    lab.add({.name = "other"}, [](payload, job_context&) { return test::ended_well(); });
    const auto id = lab.enqueue();
    lab.start({.concurrency = 1});
    lab.on.advance(10100ms);
    CHECK(lab.state(id) == job_state::waiting_retry);
    CHECK(lab.look(id).last_error.type == "stuck");
    auto seen = lab.worker->snapshot();
    CHECK(seen.stuck == 1);
    REQUIRE(seen.running.size() == 1);
    CHECK(seen.running[0].stuck);
    CHECK(seen.running[0].id == id);
    const auto other = lab.enqueue("other");
    lab.on.advance(10s);
    CHECK(lab.state(other) == job_state::pending); // the only slot is taken
    lab.on.advance(1h);
    seen = lab.worker->snapshot();
    CHECK(lab.state(other) == job_state::succeeded);
    CHECK(lab.look(id).history.front().outcome == "retry"); // the late end changed nothing
}

TEST_CASE("a job that may not restart is failed when its handler is given up, for that may still run") {
    worker_lab lab;
    int ran = 0;
    lab.add({.name = "work", .retry = {.delay = 1s}, .timeout = 2s, .hard_deadline = 10s},
            [&](payload, job_context& c) {
                ++ran;
                return test::slept_deaf(c, 1h);
            });
    auto once = lab.job();
    once.may_restart = false;
    const auto id = lab.enqueue(std::move(once));
    lab.start();
    lab.on.advance(1min);
    CHECK(ran == 1);
    CHECK(lab.state(id) == job_state::failed);
    CHECK(lab.look(id).last_error.type == "stuck");
    CHECK(lab.look(id).last_error.message ==
          "given up while it ran, restart not allowed: the handler did not end by its hard deadline of 10s, and may "
          "still be running");
    lab.on.advance(2h);
    CHECK(ran == 1);
    CHECK(lab.state(id) == job_state::failed);
}

TEST_CASE("a job under a policy is tried again within the run, with a token of its own for each attempt") {
    worker_lab lab;
    lab.made.add(twice_more, impatient);
    int calls = 0;
    lab.add({.name = "retried", .policy = "twice-more"}, [&](payload what, job_context& c) {
        CHECK(what.body == "bytes");
        CHECK(c.attempt() == 1);
        c.output("call " + std::to_string(++calls));
        return calls < 3 ? fails("not yet") : test::ended_well();
    });
    lab.add({.name = "timed", .policy = "impatient"}, [](payload, job_context& c) { return test::slept(c, 1h); });
    const auto retried = lab.enqueue("retried", "bytes");
    const auto timed = lab.enqueue("timed");
    lab.start();
    lab.on.advance(2500ms);
    CHECK(lab.state(retried) == job_state::succeeded);
    CHECK(lab.look(retried).attempts == 1);
    CHECK(lab.look(retried).output == "call 3");
    CHECK(lab.state(timed) == job_state::waiting_retry);
    CHECK(lab.look(timed).last_error.type == "timed out");
}

TEST_CASE("a worker does not start with a kind whose policy it does not know") {
    worker_lab lab;
    lab.add({.name = "work", .policy = "nowhere"}, [](payload, job_context&) { return test::ended_well(); });
    job_worker worker({lab.on, lab.store(), lab.kinds, lab.log, &lab.made.policies()});
    const auto started = worker.start();
    REQUIRE(!started);
    CHECK(started.error().code == errc::unknown_policy);
    CHECK_THAT(started.error().message, ContainsSubstring("\"work\"") && ContainsSubstring("\"nowhere\""));

    job_worker without({lab.on, lab.store(), lab.kinds, lab.log});
    CHECK(without.start().error().code == errc::unknown_policy);
}

TEST_CASE("a second kind of the same name is refused, and so are options that make no sense") {
    worker_lab lab;
    lab.add({.name = "work"}, [](payload, job_context&) { return test::ended_well(); });
    const auto again = lab.kinds.add(std::make_unique<test::any_job>(
        job_options{.name = "work"}, [](payload, job_context&) { return test::ended_well(); }));
    REQUIRE(!again);
    CHECK(again.error().code == errc::duplicate);
    const auto wrong = lab.kinds.add(std::make_unique<test::any_job>(
        job_options{.name = "wrong", .attempts = 101}, [](payload, job_context&) { return test::ended_well(); }));
    CHECK(wrong.error().code == errc::invalid_argument);

    const auto refused = [&](worker_options how) {
        job_worker worker({lab.on, lab.store(), lab.kinds, lab.log}, std::move(how));
        return !worker.start();
    };
    CHECK(refused({.queues = {}}));
    CHECK(refused({.queues = {{"a"}, {"a"}}}));
    CHECK(refused({.queues = {{"a", 0}}}));
    CHECK(refused({.concurrency = 0}));
    CHECK(refused({.lease = 10s, .heartbeat = 10s}));
    CHECK(refused({.poll = 0s}));
}

TEST_CASE("a running job that is cancelled elsewhere is asked to stop with the next heartbeat") {
    worker_lab lab;
    lab.add({.name = "work"}, [](payload, job_context& c) { return test::slept(c, 10h); });
    const auto id = lab.enqueue();
    lab.start();
    lab.on.advance(1s);
    CHECK(lab.get(lab.store().cancel({id})).front() == cancel_answer::requested);
    lab.on.advance(21s);
    CHECK(lab.state(id) == job_state::cancelled);
    CHECK(lab.worker->snapshot().cancelled == 1);
}

TEST_CASE("a claimed job that is cancelled before it begins does not begin") {
    worker_lab lab;
    std::set<identifier> began;
    lab.add({.name = "work"}, [&](payload, job_context& c) {
        began.insert(c.job_id());
        return test::slept(c, 70ms * (began.size() > 10 ? 1000 : 1));
    });
    lab.enqueue_many(15);
    lab.start({.concurrency = 10, .prefetch = 100});
    lab.on.advance(500ms); // the first are short, so more were fetched than can run
    lab.enqueue_many(60);
    lab.on.advance(1s);
    std::vector<identifier> all;
    for (const auto& each : lab.get(lab.store().list({.state = job_state::processing}, 1000)).jobs)
        all.push_back(each.id);
    std::vector<identifier> held; // claimed and not begun
    std::ranges::copy_if(all, std::back_inserter(held), [&](const identifier& id) { return !began.contains(id); });
    REQUIRE(!held.empty());
    CHECK(static_cast<int>(held.size()) == lab.worker->snapshot().prefetched);
    lab.get(lab.store().cancel(all));
    lab.on.advance(25s);
    CHECK(lab.worker->snapshot().cancelled == all.size());
    CHECK(std::ranges::none_of(held, [&](const identifier& id) { return began.contains(id); }));
}

TEST_CASE("a long job keeps its lease by heartbeats, many jobs by one call") {
    worker_lab lab;
    test::faulty_jobs store(*lab.held->jobs());
    lab.over = &store;
    lab.add({.name = "work"}, [](payload, job_context& c) { return test::slept(c, 10min); });
    lab.enqueue_many(50);
    lab.start({.lease = 60s});
    lab.on.advance(9min);
    CHECK(lab.count_of(job_state::processing) == 50);
    CHECK(store.count(test::store_call::heartbeat) <= 9 * 3 + 1);
    lab.on.advance(2min);
    CHECK(lab.count_of(job_state::succeeded) == 50);
    CHECK(lab.log.count("recovered") == 0);
    lab.stop(); // while the store is there
}

TEST_CASE("a run that has lost its lease is told so, and nothing of it is written") {
    worker_lab lab;
    test::faulty_jobs store(*lab.held->jobs());
    bool silent = false;
    store.before = [&](test::store_call which) -> std::optional<error> {
        if (silent && which == test::store_call::heartbeat) return error{errc::unavailable, "cut off", std::nullopt};
        return std::nullopt;
    };
    lab.over = &store;
    bool told = false;
    lab.add({.name = "work"}, [&](payload, job_context& c) {
        c.progress(10, "begun");
        return [](job_context& in, bool& fired) -> task<result<void>> {
            co_await sleep_for(in.runtime(), 10h, in.stop_token());
            fired = in.stop_token().stop_requested();
            in.output("must not be kept");
            co_return result<void>{};
        }(c, told);
    });
    const auto id = lab.enqueue();
    lab.start({.sweep = 10h});
    lab.on.advance(1s);
    silent = true;
    lab.on.advance(2min);
    CHECK(lab.get(lab.held->jobs()->recover_stale(10)).requeued == 1);
    // Somebody else has it now.
    const auto other = lab.get(lab.held->jobs()->claim({.queues = {"default"}, .limit = 1, .worker = "other"}));
    REQUIRE(other.size() == 1);
    silent = false;
    lab.on.advance(30s);
    CHECK(told);
    CHECK(lab.state(id) == job_state::processing);
    CHECK(lab.look(id).worker == "other");
    CHECK(lab.look(id).output.empty());
    CHECK(lab.worker->snapshot().lost == 1);
    CHECK(lab.log.count("cannot renew leases and keeps trying") == 1);
    CHECK(lab.log.count("the store is back") == 1);
    lab.stop(); // while the store is there
}

TEST_CASE("progress is passed on while a job runs, and its last word before it is settled") {
    worker_lab lab;
    lab.add({.name = "work"}, [](payload, job_context& c) {
        return [](job_context& in) -> task<result<void>> {
            in.progress(40, "almost half");
            co_await in.sleep_for(5s);
            in.progress(100, "done");
            co_return result<void>{};
        }(c);
    });
    const auto id = lab.enqueue();
    lab.start();
    lab.on.advance(2s);
    CHECK(lab.look(id).percent == 40);
    CHECK(lab.look(id).note == "almost half");
    lab.on.advance(5s);
    CHECK(lab.state(id) == job_state::succeeded);
    CHECK(lab.look(id).percent == 100);
}
