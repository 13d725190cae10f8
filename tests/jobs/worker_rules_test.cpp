// Jobs with exception policies: retries within the run, redelivery as a later attempt, discarding.
#include <holdfast/with_rules.hpp>

#include "catch.hpp"
#include "worker_lab.hpp"

using namespace std::chrono_literals;
using namespace holdfast;
using test::any_job;
using test::worker_lab;

namespace {

struct already_sent : std::runtime_error {
    already_sent() : std::runtime_error("sent on Monday") {}
};

task<result<void>> throws_runtime(std::string what) {
    throw std::runtime_error(what);
    co_return result<void>{};
}
task<result<void>> throws_already_sent() {
    throw already_sent();
    co_return result<void>{};
}
task<result<void>> returns_error(errc code) {
    co_return fail(code, "not now");
}

void add_ruled(worker_lab& lab, job_options how, exception_policy rules, any_job::handler run) {
    auto added = lab.kinds.add(with_rules(std::make_unique<any_job>(how, std::move(run)), std::move(rules)));
    if (!added) throw failed(added.error());
}

exception_policy retries(interval_list in_run) {
    exception_policy made;
    made.default_().retry(in_run);
    return made;
}

} // namespace

TEST_CASE("a retry is made in the run: same attempt, same slot, the payload again") {
    worker_lab lab;
    std::vector<std::string> bodies;
    std::vector<int> attempts;
    add_ruled(lab, {.name = "work"}, retries({1s, 2s}), [&](payload what, job_context& c) {
        bodies.push_back(what.body);
        attempts.push_back(c.attempt());
        return bodies.size() < 3 ? throws_runtime("busy") : test::ended_well();
    });
    lab.add({.name = "other"}, [](payload, job_context&) { return test::ended_well(); });
    const auto id = lab.enqueue("work", "INV-7");
    lab.start({.concurrency = 1});
    lab.on.advance(500ms);
    const auto other = lab.enqueue("other");
    lab.on.advance(2s);
    CHECK(lab.state(id) == job_state::processing);
    CHECK(lab.state(other) != job_state::succeeded); // there is no slot for it
    lab.on.advance(2s);
    CHECK(lab.state(id) == job_state::succeeded);
    CHECK(lab.state(other) == job_state::succeeded);
    CHECK(bodies == std::vector<std::string>{"INV-7", "INV-7", "INV-7"});
    CHECK(attempts == std::vector{1, 1, 1});
    CHECK(lab.look(id).history.size() == 1);
}

TEST_CASE("what the retries in the run do not cure is redelivered, with a fresh cycle, up to the job's attempts") {
    worker_lab lab;
    exception_policy rules;
    rules.default_().retry({1s}).then_redeliver({1min, 5min, 15min});
    int calls = 0;
    add_ruled(lab, {.name = "work"}, rules, [&](payload, job_context&) {
        ++calls;
        return throws_runtime("down");
    });
    const auto id = lab.enqueue(); // 3 attempts
    lab.start();
    CHECK(lab.log.count("default_() of the job redelivers 3 times, for which its 3 attempts are too few") == 1);
    lab.on.advance(2s);
    CHECK(calls == 2);
    CHECK(lab.state(id) == job_state::waiting_retry);
    CHECK(lab.look(id).due_at - *lab.look(id).history.back().ended == 1min);
    lab.on.advance(1min + 2s);
    CHECK(calls == 4);
    CHECK(lab.look(id).due_at - *lab.look(id).history.back().ended == 5min);
    lab.on.advance(5min + 2s);
    CHECK(calls == 6);
    CHECK(lab.state(id) == job_state::dead_letter);
    CHECK(lab.look(id).history.size() == 3);
}

TEST_CASE("a discarded job is cancelled with its reason, counted and logged") {
    worker_lab lab;
    exception_policy rules;
    rules.on<already_sent>().discard();
    add_ruled(lab, {.name = "work"}, rules, [](payload, job_context&) { return throws_already_sent(); });
    const auto id = lab.enqueue();
    lab.start();
    lab.on.advance(1s);
    CHECK(lab.state(id) == job_state::cancelled);
    CHECK(lab.look(id).last_error.message.starts_with("discarded by on<"));
    CHECK(lab.look(id).last_error.message.ends_with("already_sent>(): sent on Monday"));
    CHECK(lab.worker->snapshot().discarded == 1);
    CHECK(lab.worker->snapshot().cancelled == 1);
    CHECK(lab.log.count("info: job " + to_text(id) + " \"work\" is discarded by on<") == 1);
}

TEST_CASE("rules for the host are for jobs that have none of their own") {
    worker_lab lab;
    exception_policy of_host;
    of_host.on(errc::not_found).dead_letter();
    of_host.inherit();
    lab.add({.name = "plain"}, [](payload, job_context&) { return returns_error(errc::not_found); });
    lab.add({.name = "other"}, [](payload, job_context&) { return returns_error(errc::unavailable); });
    lab.add({.name = "own", .retry = {.delay = 1min}},
            [](payload, job_context&) { return returns_error(errc::not_found); });
    const auto plain = lab.enqueue("plain"), other = lab.enqueue("other"), own = lab.enqueue("own");
    lab.rules = &of_host;
    lab.start();
    lab.on.advance(1s);
    CHECK(lab.state(plain) == job_state::dead_letter);
    CHECK(lab.state(other) == job_state::waiting_retry);
    CHECK(lab.state(own) == job_state::waiting_retry);
}

TEST_CASE("a job that is cancelled while it waits within its run is cancelled at once") {
    worker_lab lab;
    int calls = 0;
    add_ruled(lab, {.name = "work"}, retries({1h}), [&](payload, job_context&) {
        ++calls;
        return throws_runtime("busy");
    });
    const auto id = lab.enqueue();
    lab.start();
    lab.on.advance(1s);
    lab.get(lab.store().cancel({id}));
    lab.on.advance(1min);
    CHECK(lab.state(id) == job_state::cancelled);
    CHECK(calls == 1);
}

TEST_CASE("a worker that stops gives back a job that waits within its run") {
    worker_lab lab;
    add_ruled(lab, {.name = "work"}, retries({1h}), [](payload, job_context&) { return throws_runtime("busy"); });
    const auto id = lab.enqueue();
    lab.start();
    lab.on.advance(1s);
    lab.stop(0s);
    CHECK(lab.state(id) == job_state::pending);
    CHECK(lab.look(id).attempts == 0);
}

TEST_CASE("a timeout in the middle of a wait within the run makes it a later attempt, with the error itself") {
    worker_lab lab;
    add_ruled(lab, {.name = "work", .timeout = 10s}, retries({1min}),
              [](payload, job_context&) { return throws_runtime("busy"); });
    const auto id = lab.enqueue();
    lab.start();
    lab.on.advance(20s);
    CHECK(lab.state(id) == job_state::waiting_retry);
    CHECK(lab.look(id).last_error.message == "busy");
    CHECK(lab.look(id).due_at - *lab.look(id).history.back().ended == 1min);
}

TEST_CASE("a job that is given up while it waits within its run is not called again") {
    worker_lab lab;
    int calls = 0;
    add_ruled(lab, {.name = "work", .hard_deadline = 10s}, retries({1min}), [&](payload, job_context&) {
        ++calls;
        return throws_runtime("busy");
    });
    auto job = lab.job();
    job.max_attempts = 1;
    const auto id = lab.enqueue(std::move(job));
    lab.start();
    lab.on.advance(5min);
    CHECK(calls == 1);
    CHECK(lab.state(id) == job_state::dead_letter);
    CHECK(lab.worker->snapshot().running.empty());
}

TEST_CASE("rules run around a resilience policy: its attempts are spent in every call") {
    worker_lab lab;
    static constexpr auto twice = policy({.name = "twice", .retry = {.max_attempts = 1, .delay = 0s}});
    lab.made.add(twice);
    int calls = 0;
    add_ruled(lab, {.name = "work", .policy = "twice"}, retries({1s, 1s}), [&](payload, job_context&) {
        ++calls;
        return throws_runtime("busy");
    });
    const auto id = lab.enqueue();
    lab.start();
    lab.on.advance(1min);
    CHECK(calls == 6);
    CHECK(lab.state(id) == job_state::dead_letter);
}

TEST_CASE("what the handler wishes for the next wait counts within the run too") {
    worker_lab lab;
    int calls = 0;
    exception_policy rules;
    rules.default_().retry(1, 20s);
    add_ruled(lab, {.name = "work"}, rules, [&](payload, job_context& c) {
        ++calls;
        c.retry_after(3s);
        return throws_runtime("busy");
    });
    lab.enqueue();
    lab.start();
    lab.on.advance(2900ms);
    CHECK(calls == 1);
    lab.on.advance(200ms);
    CHECK(calls == 2);
}

TEST_CASE("a kind with rules in its options and others that replace them is refused at registration") {
    job_registry kinds;
    const auto added =
        kinds.add(with_rules(std::make_unique<any_job>(job_options{.name = "work", .rules = {stop_on(errc::not_found)}},
                                                       [](payload, job_context&) { return test::ended_well(); }),
                             retries({1s})));
    REQUIRE_FALSE(added);
    CHECK(added.error().code == errc::invalid_argument);
    CHECK(added.error().message ==
          "job \"work\" has .rules or .retry in its options, and rules at its registration that "
          "replace them: keep one of the two, or let the latter inherit()");
}
