// What becomes of attempts that fail.
#include "catch.hpp"
#include "worker_lab.hpp"

using namespace std::chrono_literals;
using namespace holdfast;
using Catch::Matchers::ContainsSubstring;
using test::worker_lab;

namespace {

struct bad_address : std::runtime_error {
    using std::runtime_error::runtime_error;
};

task<result<void>> throws_runtime(std::string what) {
    throw std::runtime_error(what);
    co_return result<void>{};
}
task<result<void>> throws_bad_address() {
    throw bad_address("550 no such mailbox");
    co_return result<void>{};
}
task<result<void>> throws_a_number() {
    throw 42;
    co_return result<void>{};
}
task<result<void>> throws_undecodable() {
    throw undecodable_job("\"work\" version 1 does not decode: items[3]: expected a number");
    co_return result<void>{};
}
task<result<void>> gives_up() {
    throw operation_cancelled("nobody needs it any more");
    co_return result<void>{};
}
task<result<void>> returns_error(error e) {
    co_return std::unexpected(std::move(e));
}

duration wait_of(worker_lab& lab, identifier id) {
    const auto view = lab.look(id);
    return view.due_at - *view.history.back().ended;
}

} // namespace

TEST_CASE("a failed attempt comes again after 60s, 120s and so on with jitter, then goes to the dead letters") {
    worker_lab lab;
    std::vector<bool> last;
    lab.add({.name = "work"}, [&](payload, job_context& c) {
        last.push_back(c.last_attempt());
        return throws_runtime("smtp is down");
    });
    const auto id = lab.enqueue();
    lab.start();
    lab.on.advance(1s);
    CHECK(lab.state(id) == job_state::waiting_retry);
    CHECK(lab.look(id).last_error.type == "std::runtime_error");
    CHECK(lab.look(id).last_error.message == "smtp is down");
    CHECK(wait_of(lab, id) >= 30s);
    CHECK(wait_of(lab, id) <= 60s);
    lab.on.advance(60s);
    CHECK(lab.look(id).attempts == 2);
    CHECK(wait_of(lab, id) >= 60s);
    CHECK(wait_of(lab, id) <= 120s);
    lab.on.advance(130s);
    CHECK(lab.state(id) == job_state::dead_letter);
    CHECK(last == std::vector{false, false, true});
    CHECK(lab.look(id).history.size() == 3);
    CHECK(lab.worker->snapshot().retried == 2);
    CHECK(lab.worker->snapshot().dead_lettered == 1);
    CHECK(lab.log.count("goes to the dead letters at attempt 3 of 3: std::runtime_error: smtp is down") == 1);
}

TEST_CASE("the slot is free while a job waits for its next attempt") {
    worker_lab lab;
    lab.add({.name = "work"}, [](payload, job_context&) { return throws_runtime("no"); });
    lab.add({.name = "other"}, [](payload, job_context&) { return test::ended_well(); });
    lab.enqueue("work");
    lab.start({.concurrency = 1});
    lab.on.advance(1s);
    const auto other = lab.enqueue("other");
    lab.on.advance(1s);
    CHECK(lab.state(other) == job_state::succeeded);
}

TEST_CASE("a job's own waits and intervals are kept, the last interval for all further attempts") {
    worker_lab lab;
    lab.add({.name = "work", .retry = {.intervals = {1s, 5s}}},
            [](payload, job_context&) { return throws_runtime("no"); });
    auto job = lab.job();
    job.max_attempts = 5;
    const auto id = lab.enqueue(std::move(job));
    lab.start();
    lab.on.advance(100ms);
    CHECK(wait_of(lab, id) == 1s);
    lab.on.advance(1s);
    CHECK(wait_of(lab, id) == 5s);
    lab.on.advance(5s);
    CHECK(wait_of(lab, id) == 5s);
    CHECK(lab.look(id).attempts == 3);
}

TEST_CASE("a handler, or the failure itself, may say when to come again") {
    worker_lab lab;
    lab.add({.name = "asks"}, [](payload, job_context& c) {
        c.retry_after(17s);
        return throws_runtime("busy");
    });
    lab.add({.name = "told"}, [](payload, job_context&) { return returns_error({errc::unavailable, "429", 90s}); });
    const auto asks = lab.enqueue("asks");
    const auto told = lab.enqueue("told");
    lab.start();
    lab.on.advance(100ms);
    CHECK(wait_of(lab, asks) == 17s);
    CHECK(wait_of(lab, told) == 90s);
    CHECK(lab.look(told).last_error.type == "unavailable");
    CHECK(lab.look(told).last_error.message == "429");
}

TEST_CASE("a rule sends a job to the dead letters at once, so does what never retries, and what does not decode") {
    worker_lab lab;
    lab.add({.name = "rule", .rules = {stop_on<bad_address>()}},
            [](payload, job_context&) { return throws_bad_address(); });
    lab.add({.name = "named", .rules = {retry_on<bad_address>()}},
            [](payload, job_context&) { return throws_runtime("not the one named"); });
    lab.add({.name = "undecodable"}, [](payload, job_context&) { return throws_undecodable(); });
    const auto rule = lab.enqueue("rule");
    const auto named = lab.enqueue("named");
    const auto undecodable = lab.enqueue("undecodable");
    lab.start();
    lab.on.advance(100ms);
    CHECK(lab.state(rule) == job_state::dead_letter);
    CHECK(lab.look(rule).attempts == 1);
    CHECK_THAT(lab.look(rule).last_error.type, ContainsSubstring("bad_address"));
    CHECK(lab.look(rule).last_error.message == "550 no such mailbox");
    CHECK(lab.state(named) == job_state::dead_letter);
    CHECK(lab.state(undecodable) == job_state::dead_letter);
    CHECK_THAT(lab.look(undecodable).last_error.type, ContainsSubstring("undecodable_job"));
    CHECK_THAT(lab.look(undecodable).last_error.message, ContainsSubstring("items[3]"));
}

TEST_CASE("anything may be thrown, and a message that is no text is made one") {
    worker_lab lab;
    lab.add({.name = "number"}, [](payload, job_context&) { return throws_a_number(); });
    lab.add({.name = "bytes"},
            [](payload, job_context&) { return throws_runtime("bad \xff\xfe bytes " + std::string(100'000, 'x')); });
    const auto number = lab.enqueue("number");
    const auto bytes = lab.enqueue("bytes");
    lab.start();
    lab.on.advance(100ms);
    CHECK(lab.state(number) == job_state::waiting_retry);
    CHECK(lab.look(number).last_error.type == "int");
    CHECK_THAT(lab.look(bytes).last_error.message, ContainsSubstring("bad ?? bytes xxx"));
    CHECK(lab.look(bytes).last_error.message.size() < 10'000);
}

TEST_CASE("a handler that gives up by itself ends its job as cancelled") {
    worker_lab lab;
    lab.add({.name = "work"}, [](payload, job_context&) { return gives_up(); });
    const auto id = lab.enqueue();
    lab.start();
    lab.on.advance(100ms);
    CHECK(lab.state(id) == job_state::cancelled);
}

TEST_CASE("a snoozed job comes again without having burnt an attempt") {
    worker_lab lab;
    int runs = 0;
    lab.add({.name = "work"}, [&](payload, job_context& c) {
        if (++runs < 5) c.snooze(1min);
        return test::ended_well();
    });
    const auto id = lab.enqueue();
    lab.start();
    lab.on.advance(1s);
    CHECK(lab.state(id) == job_state::scheduled);
    CHECK(lab.look(id).attempts == 0);
    lab.on.advance(5min);
    CHECK(runs == 5);
    CHECK(lab.state(id) == job_state::succeeded);
    CHECK(lab.worker->snapshot().snoozed == 4);
}

TEST_CASE("a job of a kind that is not registered is put off, not burnt, and complained of once") {
    worker_lab lab;
    const auto id = lab.enqueue("tomorrow");
    lab.enqueue("tomorrow");
    lab.start();
    lab.on.advance(1s);
    CHECK(lab.state(id) == job_state::scheduled);
    CHECK(lab.look(id).attempts == 0);
    CHECK(lab.log.count("this worker has no handler for \"tomorrow\" of queue \"default\"") == 1);
    lab.on.advance(40s);
    CHECK(lab.look(id).history.size() >= 2);
    lab.on.advance(24h);
    CHECK(lab.look(id).history.size() < 600); // the longer nobody knows it, the longer it waits
    CHECK(lab.look(id).attempts == 0);
}

TEST_CASE("of more kinds than a worker remembers, those beyond are put off together") {
    worker_lab lab;
    for (int i = 0; i < 1100; ++i) lab.enqueue("kind " + std::to_string(i));
    lab.start();
    lab.on.advance(1s);
    CHECK(lab.count_of(job_state::scheduled) == 1100);
    CHECK(lab.log.count("this worker has no handler for") == 1001);
}
