#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

#include <holdfast/job_lab.hpp>
#include <holdfast/json.hpp>

#include "catch.hpp"

using namespace std::chrono_literals;
using namespace holdfast;
using Catch::Matchers::ContainsSubstring;

namespace jobs_lab_test {

struct step {
    static constexpr job_options options{.name = "lab.step", .attempts = 4, .retry = {.delay = 1h, .jitter = false}};
    int number = 0;
};
BOOST_DESCRIBE_STRUCT(step, (), (number))

struct plain {
    static constexpr job_options options{.name = "lab.plain"};
};
BOOST_DESCRIBE_STRUCT(plain, (), ())

struct ask {
    static constexpr job_options options{.name = "lab.ask", .policy = "lab-policy"};
};
BOOST_DESCRIBE_STRUCT(ask, (), ())

inline constexpr auto lab_policy =
    policy({.name = "lab-policy", .retry = {.max_attempts = 3, .delay = 1s, .jitter = false}});

template <class Job>
enqueued add(job_lab& lab, Job job, enqueue_options options = {}) {
    auto queued = lab.wait(lab.jobs().enqueue(job, std::move(options)));
    REQUIRE(queued);
    return *queued;
}

task<void> sleep_three_hours(step, job_context& c) {
    auto sleeping = c.sleep_for(3h);
    co_await std::move(sleeping);
}

} // namespace jobs_lab_test

using namespace jobs_lab_test;

TEST_CASE("draining a lab runs what is due and leaves the rest, and time stands still") {
    job_lab lab;
    std::vector<int> ran;
    lab.add<step>([&](step s) { ran.push_back(s.number); });
    const time_point began = lab.time().now();
    CHECK(lab.drain() == drained{});
    add(lab, step{1});
    add(lab, step{2}, {.after = 1min});
    CHECK(lab.drain() == drained{.succeeded = 1});
    CHECK(ran == std::vector{1});
    CHECK(lab.time().now() == began);
    CHECK(lab.enqueued<step>().size() == 1);
    CHECK(lab.advance(1min) == drained{.succeeded = 1});
    CHECK(ran == std::vector{1, 2});
}

TEST_CASE("draining a lab also runs what handlers enqueue") {
    job_lab lab;
    int ran = 0;
    lab.add<step>([&](step s, job_context& c) {
        ++ran;
        if (s.number > 0) REQUIRE(sync_wait(c.runtime(), c.jobs().enqueue(step{s.number - 1})));
    });
    add(lab, step{5});
    CHECK(lab.drain() == drained{.succeeded = 6});
    CHECK(ran == 6);
}

TEST_CASE("a handler that waits takes its time, and no more passes") {
    job_lab lab;
    lab.add<step>(sleep_three_hours);
    const time_point began = lab.time().now();
    add(lab, step{});
    CHECK(lab.drain().succeeded == 1);
    CHECK(lab.time().now() - began == 3h);
}

TEST_CASE("retries of hours pass at once, and their history is there") {
    job_lab lab;
    lab.add<step>([](step, job_context& c) {
        if (!c.last_attempt()) throw std::runtime_error("not yet");
    });
    const auto id = add(lab, step{}).id;
    const time_point began = lab.time().now();
    CHECK(lab.run_until_done(90min) == drained{.retried = 2});
    CHECK(lab.run_until_done() == drained{.succeeded = 1, .retried = 1});
    CHECK(lab.time().now() - began == 1h + 2h + 4h);
    const job_view job = lab.look(id);
    CHECK(job.state == job_state::succeeded);
    REQUIRE(job.history.size() == 4);
    CHECK(job.history[3].started - job.history[2].started == 4h);
    CHECK(job.history[0].error.message == "not yet");
}

TEST_CASE("a handler that never ends is an error of the test, not an endless one") {
    job_lab lab;
    lab.add<step>([](step, job_context& c) { return c.sleep_for(std::chrono::hours{24 * 400}); });
    add(lab, step{});
    CHECK_THROWS_WITH(lab.drain(), "jobs are still running after 7d of virtual time: lab.step");
}

TEST_CASE("a lab serves queues that come later, and leaves paused ones alone") {
    job_lab lab;
    lab.add<step>([](step) {});
    CHECK(lab.drain().total() == 0);
    add(lab, step{}, {.queue = "surprise"});
    CHECK(lab.drain().succeeded == 1);
    REQUIRE(lab.wait(lab.store().jobs()->pause("surprise")));
    add(lab, step{}, {.queue = "surprise"});
    CHECK(lab.run_until_done().total() == 0);
    REQUIRE(lab.wait(lab.store().jobs()->resume("surprise")));
    CHECK(lab.drain().succeeded == 1);
}

TEST_CASE("a lab runs what handlers enqueue into queues that nobody has named before") {
    job_lab lab;
    std::vector<std::string> ran_in;
    lab.add<step>([&](step s, job_context& c) {
        ran_in.emplace_back(c.queue());
        if (s.number == 0) return;
        const std::string next = "tenant-" + std::to_string(s.number);
        REQUIRE(sync_wait(c.runtime(), c.jobs().enqueue(step{s.number - 1}, {.queue = next})));
    });
    const std::vector<std::string> all = {"default", "tenant-3", "tenant-2", "tenant-1"};
    add(lab, step{3});
    SECTION("when it is drained") {
        CHECK(lab.drain() == drained{.succeeded = 4});
        CHECK(lab.drain() == drained{});
    }
    SECTION("when it runs until all is done") {
        CHECK(lab.run_until_done() == drained{.succeeded = 4});
    }
    SECTION("when its time moves") {
        CHECK(lab.advance(1min) == drained{.succeeded = 4});
    }
    CHECK(ran_in == all);
}

TEST_CASE("a queue that comes up disturbs no handler that is in the middle of its work") {
    job_lab lab;
    lab.add<step>([](step s, job_context& c) -> task<void> {
        if (s.number == 0) co_return;
        auto enqueueing = c.jobs().enqueue(step{}, {.queue = "surprise"});
        if (!co_await std::move(enqueueing)) throw std::runtime_error("refused");
        auto sleeping = c.sleep_for(3h);
        co_await std::move(sleeping);
    });
    const auto id = add(lab, step{1}).id;
    CHECK(lab.advance(1min) == drained{.succeeded = 1});
    CHECK(lab.look(id).state == job_state::processing);
    CHECK(lab.drain() == drained{.succeeded = 1});
    CHECK(lab.look(id).history.size() == 1);
}

TEST_CASE("a job's policy is the lab's, and retries within the attempt") {
    job_lab lab;
    lab.add(lab_policy);
    int calls = 0;
    lab.add<ask>([&](ask) {
        if (++calls < 4) throw std::runtime_error("busy");
    });
    add(lab, ask{});
    CHECK(lab.drain() == drained{.succeeded = 1});
    CHECK(calls == 4);
}

TEST_CASE("rules for all jobs of a lab are for those that have none of their own") {
    job_lab lab;
    exception_policy rules;
    rules.on<std::invalid_argument>().discard();
    lab.use(rules);
    lab.add<plain>([](plain) { throw std::invalid_argument("no such customer"); });
    lab.add<step>([](step) { throw std::invalid_argument("no such step"); });
    const auto id = add(lab, plain{}).id;
    add(lab, step{});
    CHECK(lab.drain() == drained{.retried = 1, .cancelled = 1});
    CHECK_THAT(lab.look(id).last_error.message,
               ContainsSubstring("discarded by") && ContainsSubstring("no such customer"));
    CHECK_THROWS_AS(lab.use(rules), failed);
}

TEST_CASE("a handler can be run by itself, with what it says") {
    job_lab lab;
    lab.add<step>([](step s, job_context& c) -> result<void> {
        c.progress(40, "half");
        c.output("done");
        c.retry_after(5min);
        if (s.number == 1) throw std::invalid_argument("one");
        if (s.number == 2) return fail(errc::unavailable, "two");
        CHECK(c.attempt() == 3);
        CHECK(c.last_attempt() == false);
        return {};
    });
    const auto run = lab.run(step{0}, 3);
    CHECK(run.returned);
    CHECK(run.progress->percent == 40);
    CHECK(run.output == "done");
    CHECK(run.retry_after == 5min);
    CHECK_FALSE(run.snooze);
    CHECK_THROWS_AS(lab.run(step{1}), std::invalid_argument);
    const auto refused = lab.run(step{2}, 3);
    REQUIRE_FALSE(refused.returned);
    CHECK(refused.returned.error().message == "two");
    CHECK(lab.list().empty());
    CHECK_THROWS_WITH(lab.run(ask{}), ContainsSubstring("job \"lab.ask\" has no handler here"));
}

TEST_CASE("a lab says so when it is asked for what is not there") {
    job_lab lab;
    lab.add<step>([](step) {});
    CHECK_THROWS_AS(lab.add<step>([](step) {}), failed);
    CHECK_THROWS_WITH(lab.look(identifier{}), ContainsSubstring("there is no job"));
    job_lab other;
    other.add<ask>([](ask) {});
    add(other, ask{});
    CHECK_THROWS_WITH(other.drain(), ContainsSubstring("lab-policy"));
}
