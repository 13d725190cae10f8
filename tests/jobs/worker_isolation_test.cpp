// What a worker makes of handlers that run in processes of their own; the processes are played.
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include <holdfast/job_isolation.hpp>

#include "catch.hpp"
#include "faulty_jobs.hpp"
#include "worker_lab.hpp"

using namespace std::chrono_literals;
using namespace holdfast;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;
using test::worker_lab;

namespace {

// A process that ends as the test says.
class played_process final : public isolated_process {
public:
    using play = std::function<task<isolated_ending>(isolated_job, job_context&, std::stop_token killed)>;
    played_process(play how, int& taken) : how_(std::move(how)), taken_(taken) { ++taken_; }
    ~played_process() override { --taken_; }
    task<isolated_ending> run(isolated_job job, job_context& context) override {
        return how_(std::move(job), context, killed_.get_token());
    }
    void kill() noexcept override { killed_.request_stop(); }

private:
    play how_;
    int& taken_;
    std::stop_source killed_;
};

class played_isolation final : public job_isolation {
public:
    bool takes(const job_type& kind) const noexcept override { return kind.options().isolate; }
    task<std::unique_ptr<isolated_process>> acquire(std::stop_token stop) override {
        if (wait_for > 0s && co_await sleep_for(*on, wait_for, std::move(stop)) != sleep_end::due)
            throw operation_cancelled();
        if (!refusal.empty()) throw failed({errc::unavailable, refusal, std::nullopt});
        co_return std::make_unique<played_process>(how, taken);
    }

    played_process::play how;
    runtime* on = nullptr;
    duration wait_for{};
    std::string refusal;
    int taken = 0;
};

task<isolated_ending> ends(isolated_ending how) {
    co_return how;
}
task<isolated_ending> crashes(std::string how, std::string stack = {}) {
    throw job_crashed(std::move(how), std::move(stack), false);
    co_return isolated_ending{};
}
// Until it is killed.
task<isolated_ending> spins(runtime& on, std::stop_token killed) {
    co_await sleep_for(on, 1h, killed);
    throw job_crashed("SIGKILL", "", killed.stop_requested());
}

struct isolation_lab : worker_lab {
    isolation_lab() { isolation.on = &on; }
    job_worker& start_isolated(worker_options how = {}) {
        how.name = "lab";
        worker.emplace(worker_parts{on, store(), kinds, log, &made.policies(), nullptr, nullptr, &isolation},
                       std::move(how), 11);
        if (auto started = worker->start(); !started) throw failed(started.error());
        return *worker;
    }
    void add_isolated(job_options how) {
        how.isolate = true;
        add(how, [](payload, job_context&) -> task<result<void>> {
            throw std::runtime_error("it ran in the worker");
            co_return result<void>{};
        });
    }
    played_isolation isolation;
};

job_options retried() {
    return {.name = "work", .retry = {.delay = 1s, .backoff = backoff::constant, .jitter = false}};
}

} // namespace

TEST_CASE("what an isolated handler returns and says is the job's") {
    isolation_lab lab;
    lab.add_isolated(retried());
    isolated_job seen;
    lab.isolation.how = [&](isolated_job job, job_context&, std::stop_token) {
        seen = std::move(job);
        return ends({.output = "done there"});
    };
    auto made = lab.job("work", "body");
    made.extra["color"] = "green";
    const auto id = lab.enqueue(made);
    lab.start_isolated();
    lab.on.advance(1s);
    CHECK(lab.state(id) == job_state::succeeded);
    CHECK(lab.look(id).output == "done there");
    CHECK(seen.what == made.what);
    CHECK(seen.id == id);
    CHECK(seen.extra == made.extra);
    CHECK(seen.max_attempts == 3);
    CHECK(lab.isolation.taken == 0); // given back
}

TEST_CASE("a snooze, a failure and a verdict from elsewhere count as if they came from here") {
    isolation_lab lab;
    lab.add_isolated(retried());
    std::deque<isolated_ending> plan;
    using kind = isolated_ending::kind;
    plan.push_back({.snooze = 5s});
    plan.push_back({.how = kind::failed, .failure = {errc::unavailable, "later", std::nullopt}});
    settlement again;
    again.how = settlement::kind::retry;
    again.when = due::after(20s);
    again.error = {"smtp_error", "busy"};
    plan.push_back({.how = kind::threw, .verdict = {again}});
    again.how = settlement::kind::dead_letter;
    again.error = {"bad_address", "nowhere"};
    plan.push_back({.how = kind::threw, .verdict = {again}});
    lab.isolation.how = [&](isolated_job, job_context&, std::stop_token) {
        auto next = plan.front();
        plan.pop_front();
        return ends(std::move(next));
    };
    const auto id = lab.enqueue();
    lab.start_isolated();
    lab.on.advance(1s);
    CHECK(lab.look(id).attempts == 0); // snoozed
    lab.on.advance(4500ms);
    CHECK(lab.look(id).last_error.type == "unavailable");
    lab.on.advance(1s);
    CHECK(lab.look(id).last_error.type == "smtp_error");
    CHECK(lab.state(id) == job_state::waiting_retry);
    lab.on.advance(18s);
    CHECK(lab.look(id).attempts == 2);
    lab.on.advance(3s);
    CHECK(lab.state(id) == job_state::dead_letter);
    CHECK(lab.look(id).last_error.type == "bad_address");
    CHECK(lab.look(id).last_error.message == "nowhere");
    CHECK(lab.look(id).attempts == 3);
}

TEST_CASE("retries within the run happen elsewhere too, and their count goes along") {
    isolation_lab lab;
    lab.add_isolated(retried());
    std::vector<exception_history> seen;
    settlement later;
    later.how = settlement::kind::retry;
    later.when = due::after(1h);
    later.error = {"smtp_error", "busy"};
    lab.isolation.how = [&](isolated_job job, job_context&, std::stop_token) -> task<isolated_ending> {
        seen.push_back(job.so_far);
        if (seen.size() == 3) return crashes("SIGSEGV");
        isolated_ending again{.how = isolated_ending::kind::threw, .verdict = {later}};
        again.verdict.again = exception_decision{.what = exception_decision::action::retry, .after = 1s, .rule = 0};
        return ends(std::move(again));
    };
    const auto id = lab.enqueue();
    lab.start_isolated();
    lab.on.advance(2500ms);
    REQUIRE(seen.size() == 3);
    CHECK(seen[0].retries_by(0) == 0);
    CHECK(seen[2].retries_by(0) == 2);
    CHECK(seen[2].calls == 3);
    CHECK(lab.look(id).attempts == 1);
    CHECK(lab.look(id).last_error.type == "crashed: SIGSEGV");
    CHECK(lab.state(id) == job_state::waiting_retry);
}

TEST_CASE("a crash elsewhere is a failed attempt with its stack, until attempts or crashes are spent") {
    isolation_lab lab;
    lab.add_isolated(retried());
    lab.isolation.how = [](isolated_job, job_context&, std::stop_token) { return crashes("SIGSEGV", "main+0x12"); };
    auto often = lab.job();
    often.max_attempts = 50;
    often.max_crashes = 1; // as it was enqueued, whatever its type says here
    const auto capped = lab.enqueue(often);
    lab.start_isolated();
    lab.on.advance(500ms);
    CHECK(lab.state(capped) == job_state::waiting_retry);
    CHECK(lab.look(capped).last_error.type == "crashed: SIGSEGV");
    CHECK(lab.look(capped).last_error.message == "the handler's process ended: SIGSEGV\nmain+0x12");
    lab.on.advance(5s);
    CHECK(lab.state(capped) == job_state::dead_letter);
    CHECK(lab.look(capped).last_error.message == "crashed too often\nmain+0x12");
    CHECK(lab.look(capped).attempts == 2);
    CHECK(lab.look(capped).crash_count == 0);
    CHECK(lab.worker->snapshot().crashed == 2);
    CHECK(lab.worker->snapshot().dead_lettered == 1);
    CHECK(lab.log.count("crashed its process at attempt 1 of 50: SIGSEGV") == 1);
    CHECK(lab.get(lab.held->jobs()->requeue({capped})) == 1);
    lab.on.advance(500ms);
    CHECK(lab.state(capped) == job_state::waiting_retry); // a new generation begins at none
}

TEST_CASE("a job that may not restart is failed after a crash elsewhere, also within its policy") {
    isolation_lab lab;
    static constexpr auto eager = policy({.name = "eager", .retry = {.max_attempts = 5, .delay = 1ms}});
    lab.made.add(eager);
    int ran = 0;
    auto options = retried();
    options.policy = "eager";
    lab.add_isolated(options);
    lab.isolation.how = [&](isolated_job, job_context&, std::stop_token) {
        ++ran;
        return crashes("SIGABRT");
    };
    auto once = lab.job();
    once.may_restart = false;
    const auto id = lab.enqueue(once);
    lab.start_isolated();
    lab.on.advance(1min);
    CHECK(lab.state(id) == job_state::failed);
    CHECK(lab.look(id).last_error.type == "crashed: SIGABRT");
    CHECK_THAT(lab.look(id).last_error.message, StartsWith("crash, restart not allowed"));
    CHECK(ran == 1);
}

TEST_CASE("an isolated handler is killed at its hard deadline, and its slot is free") {
    isolation_lab lab;
    auto options = retried();
    options.timeout = 2s;
    options.hard_deadline = 10s;
    lab.add_isolated(options);
    lab.isolation.how = [&](isolated_job, job_context&, std::stop_token killed) { return spins(lab.on, killed); };
    const auto id = lab.enqueue();
    lab.start_isolated({.concurrency = 1});
    lab.on.advance(9900ms);
    CHECK(lab.state(id) == job_state::processing);
    lab.on.advance(200ms);
    CHECK(lab.look(id).last_error.type == "stuck");
    CHECK_THAT(lab.look(id).last_error.message, ContainsSubstring("10s, so its process was ended"));
    CHECK(lab.worker->snapshot().running.empty());
    CHECK(lab.worker->snapshot().stuck == 1);
    CHECK(lab.isolation.taken == 0);
}

TEST_CASE("an isolated handler that ignores its token is killed a little later: timed out, cancelled or stopped") {
    isolation_lab lab;
    auto options = retried();
    options.timeout = 2s;
    lab.add_isolated(options);
    auto endless = retried();
    endless.name = "endless";
    lab.add_isolated(endless);
    lab.isolation.how = [&](isolated_job, job_context&, std::stop_token killed) { return spins(lab.on, killed); };
    const auto slow = lab.enqueue();
    const auto cancelled = lab.enqueue("endless");
    const auto stopped = lab.enqueue("endless");
    auto once = lab.job("endless");
    once.may_restart = false;
    const auto interrupted = lab.enqueue(once);
    lab.start_isolated({.lease = 3s, .kill_after = 500ms});
    lab.on.advance(2400ms);
    CHECK(lab.state(slow) == job_state::processing);
    lab.on.advance(200ms);
    CHECK(lab.look(slow).last_error.type == "timed_out");
    lab.get(lab.held->jobs()->cancel({slow, cancelled}));
    lab.on.advance(2s); // a heartbeat, and the grace
    CHECK(lab.state(cancelled) == job_state::cancelled);
    lab.stop(0s);
    CHECK(lab.state(stopped) == job_state::pending);
    CHECK(lab.look(stopped).attempts == 0);
    CHECK(lab.state(interrupted) == job_state::failed);
    CHECK(lab.look(interrupted).last_error.type == "interrupted");
    CHECK(lab.isolation.taken == 0);
}

TEST_CASE("a job that may not restart is failed when its process was ended, whether late or stuck") {
    isolation_lab lab;
    auto late = retried();
    late.name = "late";
    late.timeout = 2s;
    auto stuck = retried();
    stuck.name = "stuck";
    stuck.hard_deadline = 3s;
    lab.add_isolated(late);
    lab.add_isolated(stuck);
    int ran = 0;
    lab.isolation.how = [&](isolated_job, job_context&, std::stop_token killed) {
        ++ran;
        return spins(lab.on, killed);
    };
    std::vector<identifier> ids;
    for (const char* each : {"late", "stuck"}) {
        auto once = lab.job(each);
        once.may_restart = false;
        ids.push_back(lab.enqueue(std::move(once)));
    }
    lab.start_isolated({.kill_after = 500ms});
    lab.on.advance(1min);
    CHECK(ran == 2);
    for (const auto& id : ids) {
        CHECK(lab.state(id) == job_state::failed);
        CHECK_THAT(lab.look(id).last_error.message, StartsWith("given up while it ran, restart not allowed: "));
        CHECK_THAT(lab.look(id).last_error.message, ContainsSubstring("its process was ended"));
    }
    CHECK(lab.look(ids[0]).last_error.type == "timed_out");
    CHECK(lab.look(ids[1]).last_error.type == "stuck");
}

TEST_CASE("after its process was ended an attempt is in doubt, also when the job was put back by a stop") {
    const bool by_stop = GENERATE(true, false);
    isolation_lab lab;
    int asked = 0;
    job_options how = retried();
    how.restart = restart::probe;
    how.isolate = true;
    how.timeout = 2s;
    lab.add(
        how, [](payload, job_context&) { return test::ended_well(); },
        [&](const payload&) {
            ++asked;
            return happened::yes;
        });
    lab.isolation.how = [&](isolated_job, job_context&, std::stop_token killed) { return spins(lab.on, killed); };
    const auto id = lab.enqueue();
    lab.start_isolated({.kill_after = 500ms});
    if (by_stop) {
        lab.on.advance(1s);
        lab.stop(0s);
        CHECK(lab.look(id).attempts == 0);
        lab.start_isolated();
    }
    lab.on.advance(5s);
    CHECK(asked == 1);
    CHECK(lab.state(id) == job_state::succeeded);
}

TEST_CASE("waiting for a process costs neither time nor an attempt") {
    isolation_lab lab;
    auto options = retried();
    options.timeout = 2s;
    lab.add_isolated(options);
    lab.isolation.how = [](isolated_job, job_context&, std::stop_token) { return ends({}); };
    lab.isolation.wait_for = 10s;
    const auto patient = lab.enqueue();
    lab.start_isolated();
    lab.on.advance(11s);
    CHECK(lab.state(patient) == job_state::succeeded);
    CHECK(lab.look(patient).history.size() == 1);

    lab.isolation.wait_for = {};
    lab.isolation.refusal = "out of processes";
    const auto put_off = lab.enqueue();
    lab.on.advance(12s);
    CHECK(lab.look(put_off).attempts == 0);
    CHECK(lab.look(put_off).history.size() >= 3);
    CHECK(lab.log.count("no process to run it in: out of processes") == 1);
    lab.on.advance(10min);
    CHECK(lab.look(put_off).history.size() <= 30); // the longer it lasts, the longer it waits
    lab.isolation.refusal.clear();
    lab.on.advance(1min);
    CHECK(lab.state(put_off) == job_state::succeeded);

    lab.isolation.wait_for = 1h;
    const auto waiting = lab.enqueue();
    lab.on.advance(1s);
    const auto asked = lab.on.now();
    lab.stop(); // what waits for a process does not get the grace of what runs
    CHECK(lab.on.now() - asked < 1s);
    CHECK(lab.state(waiting) == job_state::pending);
    CHECK(lab.look(waiting).attempts == 0);
}

TEST_CASE("an isolated job cannot be hedged: its policy is refused, or does without when it comes to hedge later") {
    constexpr auto hedging = policy({.name = "hedging", .hedge = {.max_hedges = 2, .after = 1s}});
    constexpr auto plain = policy({.name = "later", .timeout = 1h});
    isolation_lab lab;
    lab.made.add(hedging);
    lab.made.add(plain);
    auto options = retried();
    SECTION("refused at the start") {
        options.policy = "hedging";
        lab.add_isolated(options);
        CHECK_THROWS_WITH(lab.start_isolated(), ContainsSubstring("which hedges"));
    }
    SECTION("reloaded") {
        options.policy = "later";
        lab.add_isolated(options);
        int calls = 0;
        lab.isolation.how = [&](isolated_job, job_context& c, std::stop_token) {
            ++calls;
            auto slow = [](job_context& in) -> task<isolated_ending> {
                co_await sleep_for(in.runtime(), 10s);
                co_return isolated_ending{};
            };
            return slow(c);
        };
        lab.start_isolated();
        policy_options now = hedging.options();
        now.name = "later";
        lab.made.catalog().replace({now}).value();
        const auto id = lab.enqueue();
        lab.on.advance(12s);
        CHECK(lab.state(id) == job_state::succeeded);
        CHECK(calls == 1);
    }
}

TEST_CASE("after a crash elsewhere the probe is asked before the next attempt") {
    isolation_lab lab;
    int asked = 0;
    job_options how = retried();
    how.restart = restart::probe;
    how.isolate = true;
    lab.add(
        how, [](payload, job_context&) { return test::ended_well(); },
        [&](const payload&) {
            ++asked;
            return happened::yes;
        });
    lab.isolation.how = [](isolated_job, job_context&, std::stop_token) { return crashes("SIGSEGV"); };
    const auto id = lab.enqueue();
    lab.start_isolated();
    lab.on.advance(500ms);
    CHECK(asked == 0);
    lab.on.advance(2s);
    CHECK(asked == 1);
    CHECK(lab.state(id) == job_state::succeeded);
    CHECK(lab.look(id).history.size() == 2);
}

TEST_CASE("without processes isolated jobs run in the worker") {
    worker_lab lab;
    lab.add({.name = "work", .isolate = true}, [](payload, job_context&) { return test::ended_well(); });
    const auto id = lab.enqueue();
    lab.start();
    lab.on.advance(1s);
    CHECK(lab.state(id) == job_state::succeeded);
}

TEST_CASE("in its process a handler is run once, and what it throws is judged there") {
    worker_lab lab;
    const auto run = [&](job_options how, test::any_job::handler handler) {
        test::any_job kind(how, std::move(handler));
        std::stop_source stop;
        job_context context({.type = how.name}, lab.on, lab.log, stop.get_token(), nullptr);
        return sync_wait(lab.on,
                         run_isolated(kind, nullptr, {}, {.redeliveries = 1, .calls = 2}, context, random_series(1)));
    };
    using kind = isolated_ending::kind;
    auto ended = run(retried(), [](payload, job_context& c) {
        c.output("said");
        c.snooze(3s);
        return test::ended_well();
    });
    CHECK(ended.how == kind::returned);
    CHECK(ended.output == "said");
    CHECK(ended.snooze == 3s);
    ended = run(retried(), [](payload, job_context&) -> task<result<void>> { co_return fail(errc::not_found, "no"); });
    CHECK(ended.how == kind::failed);
    CHECK(ended.failure.code == errc::not_found);
    ended = run(retried(), [](payload, job_context&) -> task<result<void>> {
        throw std::runtime_error("busy");
        co_return result<void>{};
    });
    CHECK(ended.how == kind::threw);
    CHECK(ended.verdict.ending.how == settlement::kind::retry);
    CHECK(ended.verdict.ending.when.delay == 1s);
    CHECK(ended.verdict.ending.error.type == "std::runtime_error");
    ended = run(retried(), [](payload, job_context&) -> task<result<void>> {
        throw non_retryable_error("never");
        co_return result<void>{};
    });
    CHECK(ended.verdict.ending.how == settlement::kind::dead_letter);
    ended = run(retried(), [](payload, job_context&) -> task<result<void>> {
        throw operation_cancelled("had enough");
        co_return result<void>{};
    });
    CHECK(ended.how == kind::gave_up);
    CHECK(ended.failure.message == "had enough");
}
