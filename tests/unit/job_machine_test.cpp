#include <string>
#include <vector>

#include <holdfast/backoff.hpp>
#include <holdfast/job_machine.hpp>

#include "catch.hpp"

using namespace std::chrono_literals;
using namespace holdfast;
using job_machine::record;
using kind = settlement::kind;

namespace {

constexpr store_time noon{std::chrono::hours{500'000}};

new_job plain() {
    new_job j;
    j.id.bytes[0] = 1;
    return j;
}

settlement as(kind how, due when = {}) {
    settlement s;
    s.how = how;
    s.when = when;
    return s;
}

record running(const new_job& from = plain()) {
    record r = job_machine::make(from, noon);
    job_machine::claim(r, 1, "w", 10s, noon);
    return r;
}

bool same(const record& a, const record& b) {
    return a.token == b.token && a.job.state == b.job.state && a.job.attempts == b.job.attempts &&
           a.job.crash_count == b.job.crash_count && a.job.history.size() == b.job.history.size() &&
           a.job.leased_until == b.job.leased_until && a.job.due_at == b.job.due_at && a.job.ended == b.job.ended;
}

} // namespace

TEST_CASE("a new job is pending when due, scheduled when not, cancelled when its parent is dead") {
    new_job later = plain();
    later.when = due::after(1h);
    CHECK(job_machine::make(plain(), noon).job.state == job_state::pending);
    CHECK(job_machine::make(later, noon).job.state == job_state::scheduled);
    CHECK(job_machine::make(plain(), noon, job_machine::parent_is::open).job.state == job_state::scheduled);
    CHECK(job_machine::make(plain(), noon, job_machine::parent_is::succeeded).job.state == job_state::pending);
    const record dead = job_machine::make(plain(), noon, job_machine::parent_is::dead);
    CHECK(dead.job.state == job_state::cancelled);
    CHECK(dead.job.ended == noon);
}

TEST_CASE("a job is claimable from its due time on, unless it waits for its parent") {
    new_job later = plain();
    later.when = due::after(1h);
    const record r = job_machine::make(later, noon);
    CHECK_FALSE(job_machine::claimable(r, noon + 59min));
    CHECK(job_machine::claimable(r, noon + 1h));
    CHECK(job_machine::seen_state(r, noon) == job_state::scheduled);
    CHECK(job_machine::seen_state(r, noon + 1h) == job_state::pending);
    CHECK_FALSE(job_machine::claimable(job_machine::make(plain(), noon, job_machine::parent_is::open), noon + 1h));
    CHECK_FALSE(job_machine::claimable(running(), noon + 1h));
}

TEST_CASE("a claim counts an attempt, takes the token it is given and opens an entry") {
    record r = running();
    CHECK(r.token == 1);
    CHECK(r.job.attempts == 1);
    CHECK(r.job.leased_until == noon + 10s);
    REQUIRE(r.job.history.size() == 1);
    CHECK(r.job.history[0].outcome == "running");
    job_machine::settle(r, 1, as(kind::retry), noon);
    job_machine::claim(r, 2, "x", 10s, noon + 1s);
    CHECK(r.token == 2);
    CHECK(r.job.history[1].number == 2);
    CHECK(r.job.history[1].worker == "x");
}

TEST_CASE("with any other token nothing can be written and nothing changes") {
    const std::uint64_t token = GENERATE(0u, 1u, 3u);
    record r = running();
    job_machine::settle(r, 1, as(kind::release), noon);
    job_machine::claim(r, 2, "w", 10s, noon);
    const record before = r;
    CHECK(job_machine::may_write(r, token) == write_answer::stale);
    CHECK(job_machine::heartbeat(r, token, 1h, noon).answer == write_answer::stale);
    for (const kind how : {kind::succeed, kind::retry, kind::dead_letter, kind::fail, kind::cancel, kind::release,
                           kind::snooze, kind::indeterminate})
        CHECK(job_machine::settle(r, token, as(how), noon).answer == write_answer::stale);
    CHECK(same(r, before));
}

TEST_CASE("a retry is a dead letter when the attempts are spent, and a cancellation when that was asked for") {
    new_job two = plain();
    two.max_attempts = 2;
    record r = running(two);
    CHECK(job_machine::settle(r, 1, as(kind::retry, due::after(1min)), noon).now == job_state::waiting_retry);
    CHECK(r.job.due_at == noon + 1min);
    job_machine::claim(r, 2, "w", 10s, noon + 1min);
    record other = r;
    CHECK(job_machine::settle(r, 2, as(kind::retry), noon).now == job_state::dead_letter);
    CHECK(job_machine::cancel(other, noon) == cancel_answer::requested);
    CHECK(job_machine::settle(other, 2, as(kind::retry), noon).now == job_state::cancelled);
}

TEST_CASE("release and snooze give the attempt back") {
    record released = running();
    CHECK(job_machine::settle(released, 1, as(kind::release), noon).now == job_state::pending);
    CHECK(released.job.attempts == 0);
    record snoozed = running();
    CHECK(job_machine::settle(snoozed, 1, as(kind::snooze, due::after(1h)), noon).now == job_state::scheduled);
    CHECK(snoozed.job.attempts == 0);
    CHECK(snoozed.job.due_at == noon + 1h);
}

TEST_CASE("recovery follows the wish to cancel, then the restart rule, then the cap") {
    const store_time later = noon + 1min;
    record early = running();
    CHECK(job_machine::recover(early, noon + 9s) == job_machine::recovered::not_stale);

    record wished = running();
    wished.started = true;
    wished.job.may_restart = false;
    job_machine::cancel(wished, noon);
    CHECK(job_machine::recover(wished, later) == job_machine::recovered::deleted);
    CHECK(wished.job.state == job_state::cancelled);

    record barred = running();
    barred.job.may_restart = false;
    barred.started = true;
    CHECK(job_machine::recover(barred, later) == job_machine::recovered::failed);
    CHECK(barred.job.last_error.message == job_machine::crash_not_allowed);

    record unstarted = running();
    unstarted.job.may_restart = false;
    unstarted.job.max_crashes = 0;
    CHECK(job_machine::recover(unstarted, later) == job_machine::recovered::requeued);
    CHECK(unstarted.job.crash_count == 0);

    record capped = running();
    capped.job.max_crashes = 0;
    CHECK(job_machine::recover(capped, later) == job_machine::recovered::dead_letter);
    CHECK(capped.job.last_error.message == job_machine::crashed_too_often);

    record again = running();
    CHECK(job_machine::recover(again, later) == job_machine::recovered::requeued);
    CHECK(again.job.crash_count == 1);
    CHECK(again.job.attempts == 0);
    CHECK(job_machine::may_write(again, 1) == write_answer::stale);
}

TEST_CASE("a new generation keeps the history and the token, and nothing else that was spent") {
    record r = running();
    r.job.crash_count = 2;
    job_machine::settle(r, 1, as(kind::dead_letter), noon);
    CHECK(job_machine::requeue(r, noon + 1h));
    CHECK(r.job.generation == 2);
    CHECK(r.job.attempts == 0);
    CHECK(r.job.crash_count == 0);
    CHECK(r.job.history.size() == 1);
    CHECK(r.job.state == job_state::pending);
    CHECK_FALSE(r.job.ended);
    job_machine::claim(r, 2, "w", 10s, noon + 1h);
    CHECK(r.token == 2);
    CHECK_FALSE(job_machine::requeue(r, noon));
    job_machine::settle(r, 2, as(kind::succeed), noon);
    CHECK_FALSE(job_machine::requeue(r, noon));
}

TEST_CASE("a child shares its parent's fate while it waits, and no longer") {
    record child = job_machine::make(plain(), noon, job_machine::parent_is::open);
    record freed = child;
    CHECK(job_machine::parent_ended(freed, true, noon));
    CHECK(freed.job.state == job_state::pending);
    CHECK_FALSE(job_machine::parent_ended(freed, false, noon));
    CHECK(job_machine::parent_ended(child, false, noon));
    CHECK(child.job.state == job_state::cancelled);
    CHECK(job_machine::parent_requeued(child));
    CHECK(child.job.state == job_state::scheduled);
    CHECK(child.waits_for_parent);
    CHECK_FALSE(job_machine::parent_requeued(child));
    job_machine::cancel(child, noon);
    CHECK_FALSE(job_machine::parent_requeued(child));
}

TEST_CASE("whatever is done to a job in whatever order, its rules hold") {
    for (std::uint64_t seed = 1; seed <= 300; ++seed) {
        random_series random(seed);
        new_job j = plain();
        j.max_attempts = 1 + static_cast<int>(random.next() % 4);
        j.max_crashes = static_cast<int>(random.next() % 3);
        j.may_restart = random.next() % 2 == 0;
        record r = job_machine::make(j, noon);
        store_time now = noon;
        for (int step = 0; step < 60; ++step) {
            now += std::chrono::seconds(random.next() % 20);
            const record before = r;
            switch (random.next() % 6) {
            case 0:
                if (job_machine::claimable(r, now)) job_machine::claim(r, r.token + 1, "w", 10s, now);
                break;
            case 1: r.started = r.started || r.job.state == job_state::processing; break;
            case 2:
                job_machine::settle(r, r.token - random.next() % 2,
                                    as(static_cast<kind>(random.next() % 8), due::after(5s)), now);
                break;
            case 3: job_machine::recover(r, now); break;
            case 4:
                if (random.next() % 5 == 0) job_machine::cancel(r, now);
                break;
            case 5:
                if (random.next() % 5 == 0) job_machine::requeue(r, now);
                break;
            }
            INFO("seed " << seed << ", step " << step);
            REQUIRE(r.token >= before.token);
            REQUIRE(r.job.history.size() >= before.job.history.size());
            REQUIRE(r.job.attempts >= 0);
            REQUIRE(r.job.attempts <= r.job.max_attempts);
            REQUIRE(r.job.crash_count <= r.job.max_crashes + 1);
            REQUIRE(is_final(r.job.state) == r.job.ended.has_value());
            REQUIRE((r.job.state == job_state::processing) == r.job.leased_until.has_value());
            REQUIRE((r.job.history.empty() ||
                     (r.job.history.back().outcome == "running") == (r.job.state == job_state::processing)));
        }
    }
}
