#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

#include <holdfast/engine.hpp>
#include <holdfast/job_lab.hpp>
#include <holdfast/json.hpp>
#include <holdfast/run_or_enqueue.hpp>

#include "catch.hpp"
#include "jobs_support.hpp"

using namespace std::chrono_literals;
using namespace holdfast;
using Catch::Matchers::ContainsSubstring;

namespace jobs_two_tiers_test {

inline constexpr auto smtp =
    policy({.name = "smtp", .retry = {.max_attempts = 2, .delay = 100ms, .jitter = false}, .timeout = 1s});
inline constexpr auto guarded = policy(
    {.name = "guarded", .breaker = {.consecutive_failures = 1, .break_for = 7min}, .rate = {.permits = 2, .per = 1h}});

struct mail {
    static constexpr job_options options{.name = "test.mail", .attempts = 4, .retry = {.delay = 90s, .jitter = false}};
    std::string to;
};
BOOST_DESCRIBE_STRUCT(mail, (), (to))

struct bad_address : non_retryable_error {
    using non_retryable_error::non_retryable_error;
};

// What the handler saw in each attempt.
struct seen {
    int attempt;
    int max;
    std::string key;
    std::string run;
};

struct bench : test::job_bench {
    bench() { made.add(smtp, guarded); }

    result<ran_or_enqueued> run(auto handler, enqueue_options options = {}, const policy& under = smtp,
                                std::stop_token stop = {}) {
        return wait(run_or_enqueue(client, made.policies().bind(under), handler, mail{"a"}, std::move(options),
                                   std::move(stop)));
    }
    std::size_t jobs_kept() { return get(kept->jobs()->list({}, 100)).jobs.size(); }

    engine made{on, 1};
};

} // namespace jobs_two_tiers_test

using namespace jobs_two_tiers_test;

TEST_CASE("work that succeeds in process never becomes a job") {
    bench b;
    int calls = 0;
    const auto ended = b.run([&](const mail& m) {
        ++calls;
        if (calls < 3) throw std::runtime_error("busy");
        CHECK(m.to == "a");
    });
    REQUIRE(ended);
    CHECK_FALSE(ended->later);
    CHECK(ended->here.attempt_count() == 3);
    CHECK(b.jobs_kept() == 0);
}

TEST_CASE("work that is to wait for a parent is not run here, and the caller is told so") {
    bench b;
    int calls = 0;
    const auto ended = b.run([&](mail) { ++calls; }, {.parent = b.ids.next()});
    REQUIRE_FALSE(ended);
    CHECK(ended.error().code == errc::invalid_argument);
    CHECK(calls == 0);
    CHECK(b.jobs_kept() == 0);
}

TEST_CASE("when the policy gives up, a job goes on with the same counter and key") {
    bench b;
    std::vector<seen> all;
    const auto ended = b.run([&](mail, job_context& c) {
        all.push_back({c.attempt(), c.max_attempts(), c.idempotency_key(), c.run_id()});
        throw std::runtime_error("busy");
    });
    REQUIRE(ended);
    REQUIRE(ended->later);
    CHECK(ended->later->created);
    CHECK(ended->here.stop_reason() == stop_reason::exhausted);

    const job_view job = b.look(ended->later->id);
    CHECK(job.what.body == R"({"to":"a"})");
    CHECK(job.extra.at(std::string(job_header::attempts_before)) == "3");
    CHECK(job.max_attempts == 4);
    CHECK(job.due_at == b.now() + 90s);
    REQUIRE(all.size() == 3);
    CHECK(all[0].attempt == 1);
    CHECK(all[2].attempt == 3);
    CHECK(all[2].max == 3 + 4);
    CHECK(all[0].run != all[1].run);
    null_logger nowhere;
    const job_context in_worker({.id = job.id, .extra = &job.extra}, b.on, nowhere, {}, nullptr);
    for (const seen& each : all) CHECK(each.key == in_worker.idempotency_key());
}

TEST_CASE("a key that the caller gives is the key in both tiers") {
    bench b;
    std::string key;
    const auto ended = b.run(
        [&](mail, job_context& c) {
            key = c.idempotency_key();
            throw std::runtime_error("busy");
        },
        {.extra = {{std::string(job_header::idempotency_key), "INV-7"}}});
    REQUIRE(ended);
    CHECK(key == "INV-7");
    CHECK(b.look(ended->later->id).extra.at(std::string(job_header::idempotency_key)) == "INV-7");
}

TEST_CASE("an error that is not tried again ends it in both tiers") {
    bench b;
    const auto thrown = b.run([](mail) { throw bad_address("no such mailbox"); });
    REQUIRE_FALSE(thrown);
    CHECK(thrown.error().message == "no such mailbox");
    const auto returned = b.run([](mail) -> result<void> { return fail(errc::invalid_argument, "no address"); });
    REQUIRE_FALSE(returned);
    CHECK(returned.error().code == errc::invalid_argument);
    CHECK(returned.error().message == "no address");
    CHECK(b.jobs_kept() == 0);
}

TEST_CASE("a cancelled call does not become a job") {
    bench b;
    std::stop_source stop;
    const auto ended = b.run(
        [&](mail) {
            stop.request_stop();
            throw std::runtime_error("busy");
        },
        {}, smtp, stop.get_token());
    REQUIRE_FALSE(ended);
    CHECK(ended.error().code == errc::cancelled);
    CHECK(b.jobs_kept() == 0);
}

TEST_CASE("work that the policy does not even let in becomes a job with no attempt counted") {
    bench b;
    const auto fails = [](mail) { throw std::runtime_error("down"); };
    REQUIRE(b.run(fails, {}, guarded));
    const auto open = b.run(fails, {}, guarded);
    REQUIRE(open);
    REQUIRE(open->later);
    CHECK(open->here.stop_reason() == stop_reason::circuit_open);
    const job_view job = b.look(open->later->id);
    CHECK(job.extra.at(std::string(job_header::attempts_before)) == "0");
    CHECK(job.due_at == b.now() + 7min);
    const auto limited = b.run(fails, {}, guarded);
    REQUIRE(limited);
    CHECK(limited->here.stop_reason() == stop_reason::rejected);
    CHECK(limited->later);
}

TEST_CASE("coroutines run in both tiers too, and may snooze or say when to come back") {
    bench b;
    const auto snoozing = [](mail, job_context& c) -> task<void> {
        c.snooze(3h);
        co_return;
    };
    const auto ended = b.run(snoozing);
    REQUIRE(ended);
    REQUIRE(ended->later);
    CHECK(b.look(ended->later->id).due_at == b.now() + 3h);
    CHECK(b.look(ended->later->id).extra.at(std::string(job_header::attempts_before)) == "0");

    const auto began = b.on.now();
    const auto waiting = [](mail, job_context& c) -> task<void> {
        if (c.attempt() == 2) co_return;
        c.retry_after(20s);
        throw std::runtime_error("come back later");
    };
    const auto done = b.run(waiting);
    REQUIRE(done);
    CHECK_FALSE(done->later);
    CHECK(b.on.now() - began == 20s);
}

TEST_CASE("a wish to snooze counts only if the attempt that had it was the last") {
    bench b;
    const auto ended = b.run([](mail, job_context& c) {
        if (c.attempt() > 1) return;
        c.snooze(3h);
        throw std::runtime_error("busy");
    });
    REQUIRE(ended);
    CHECK_FALSE(ended->later);
}

TEST_CASE("a circuit that somebody holds open does not put the job off for ever") {
    bench b;
    b.made.policies().bind(guarded).isolate_circuit();
    const auto ended = b.run([](mail) {}, {}, guarded);
    REQUIRE(ended);
    REQUIRE(ended->later);
    CHECK(b.look(ended->later->id).due_at == b.now() + 90s);
}

TEST_CASE("options that make no sense are refused before anything runs") {
    bench b;
    bool ran = false;
    const auto ended = b.run([&](mail) { ran = true; }, {.attempts = 0});
    REQUIRE_FALSE(ended);
    CHECK_THAT(ended.error().message, ContainsSubstring("attempts is 0"));
    CHECK_FALSE(ran);
}

TEST_CASE("a call's own time, queue and unique key hold for the job that goes on") {
    bench b;
    const auto fails = [](mail) { throw std::runtime_error("down"); };
    const auto first = b.run(fails, {.after = 1min, .unique_key = "k", .queue = "mail"});
    REQUIRE(first);
    CHECK(b.look(first->later->id).due_at == b.now() + 1min);
    CHECK(b.look(first->later->id).queue == "mail");
    const auto second = b.run(fails, {.after = 1min, .unique_key = "k", .queue = "mail"});
    REQUIRE(second);
    CHECK(*second->later == enqueued{first->later->id, false});
}

TEST_CASE("a worker goes on where the first tier stopped: attempts count on, and the key is the same") {
    job_lab lab;
    lab.add(smtp);
    std::vector<seen> all;
    const auto fails_until_five = [&](mail, job_context& c) {
        all.push_back({c.attempt(), c.max_attempts(), c.idempotency_key(), c.run_id()});
        if (c.attempt() < 5) throw std::runtime_error("busy");
    };
    lab.add<mail>(fails_until_five);
    auto call = run_or_enqueue(lab.jobs(), lab.policies().bind(smtp), fails_until_five, mail{"a"});
    const auto ended = lab.wait(std::move(call));
    REQUIRE(ended);
    REQUIRE(ended->later);
    CHECK(lab.run_until_done() == drained{.succeeded = 1, .retried = 1});
    REQUIRE(all.size() == 5);
    for (std::size_t i = 0; i < all.size(); ++i) {
        CHECK(all[i].attempt == static_cast<int>(i) + 1);
        CHECK(all[i].max == 3 + 4);
        CHECK(all[i].key == all[0].key);
        for (std::size_t k = 0; k < i; ++k) CHECK(all[i].run != all[k].run);
    }
    CHECK(lab.look(ended->later->id).attempts == 2);
}
