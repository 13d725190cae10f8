// The same on real threads: nothing is lost, nothing runs twice, memory stays flat, and a job begins soon.
#include <algorithm>
#include <atomic>
#include <thread>

#include "catch.hpp"
#include "jobs/faulty_jobs.hpp"
#include "jobs/worker_lab.hpp"
#include "runtimes/under_test.hpp"

using namespace std::chrono_literals;
using namespace holdfast;

namespace {

struct thread_lab {
    thread_lab() { sync_wait(store->prepare()).value(); }
    ~thread_lab() { on.stop(); }

    void enqueue(int n) {
        std::vector<new_job> batch;
        for (int i = 0; i < n; ++i) {
            new_job one;
            one.id = ids.next();
            one.what = {"work", 1, "text/plain", "body"};
            one.keep_for = 0s;
            batch.push_back(std::move(one));
        }
        sync_wait(store->jobs()->enqueue(std::move(batch))).value();
    }
    template <class Condition>
    static bool eventually(Condition met) {
        for (const auto end = std::chrono::steady_clock::now() + 30s; std::chrono::steady_clock::now() < end;) {
            if (met()) return true;
            std::this_thread::sleep_for(1ms);
        }
        return false;
    }

    testing::runtime_under_test on{{.threads = 2}};
    std::unique_ptr<holdfast::store> store = memory::make_store({}, &on);
    identifier_source ids;
    job_registry kinds;
    test::kept_log log;
};

} // namespace

TEST_CASE("two workers on two threads run each of many jobs once") {
    thread_lab lab;
    std::atomic<int> ran = 0;
    REQUIRE(lab.kinds.add(std::make_unique<test::any_job>(job_options{.name = "work"}, [&](payload, job_context& c) {
        const int n = ran.fetch_add(1);
        return n % 100 == 0 ? test::slept(c, 1ms) : test::ended_well();
    })));
    job_worker first({lab.on, *lab.store->jobs(), lab.kinds, lab.log}, {.concurrency = 50});
    job_worker second({lab.on, *lab.store->jobs(), lab.kinds, lab.log}, {.concurrency = 50});
    REQUIRE(first.start());
    REQUIRE(second.start());
    for (int i = 0; i < 40; ++i) lab.enqueue(500);
    CHECK(lab.eventually([&] { return first.snapshot().succeeded + second.snapshot().succeeded == 20'000; }));
    CHECK(ran == 20'000);
    sync_wait(first.stop());
    sync_wait(second.stop());
    CHECK(sync_wait(lab.store->jobs()->counts()).value().empty());
}

TEST_CASE("on a thread that the store lends with its hint the claim is made right there, and the handler is not run") {
    thread_lab lab;
    const auto here = std::this_thread::get_id();
    std::atomic<int> ran = 0;
    std::atomic<bool> ran_here = false;
    REQUIRE(lab.kinds.add(std::make_unique<test::any_job>(job_options{.name = "work"}, [&](payload, job_context&) {
        if (std::this_thread::get_id() == here) ran_here = true;
        ++ran;
        return test::ended_well();
    })));
    test::faulty_jobs store(*lab.store->jobs());
    std::atomic<int> claims = 0;
    std::atomic<int> claims_here = 0;
    store.before = [&](test::store_call which) -> std::optional<error> {
        if (which == test::store_call::claim) ++(std::this_thread::get_id() == here ? claims_here : claims);
        return std::nullopt;
    };
    job_worker worker({lab.on, store, lab.kinds, lab.log}, {.poll = 1h});
    REQUIRE(worker.start());
    for (int n = 1; n <= 50; ++n) {
        std::this_thread::sleep_for(5ms); // it is idle, most of the time
        const lent_thread lending(lab.on, n % 2 == 0 ? thread_loan::listener : thread_loan::none);
        lab.enqueue(1);
        REQUIRE(lab.eventually([&] { return ran == n; }));
    }
    CHECK(claims_here > 0);
    CHECK(claims_here <= 25);
    CHECK(claims > 0);
    CHECK_FALSE(ran_here);
    sync_wait(worker.stop());
}

TEST_CASE("a thousand coroutine handlers share two threads") {
    thread_lab lab;
    std::atomic<int> running = 0;
    std::atomic<int> most = 0;
    REQUIRE(lab.kinds.add(std::make_unique<test::any_job>(job_options{.name = "work"}, [&](payload, job_context& c) {
        return [](job_context& in, std::atomic<int>& now, std::atomic<int>& peak) -> task<result<void>> {
            const int mine = now.fetch_add(1) + 1;
            for (int seen = peak; seen < mine && !peak.compare_exchange_weak(seen, mine);) {
            }
            while (peak < 1000 && !in.stop_token().stop_requested()) co_await in.sleep_for(5ms);
            now.fetch_sub(1);
            co_return result<void>{};
        }(c, running, most);
    })));
    job_worker worker({lab.on, *lab.store->jobs(), lab.kinds, lab.log}, {.concurrency = 1000});
    REQUIRE(worker.start());
    lab.enqueue(2000);
    CHECK(lab.eventually([&] { return worker.snapshot().succeeded == 2000; }));
    CHECK(most == 1000);
    sync_wait(worker.stop());
}

TEST_CASE("a job that is enqueued on an idle worker begins within a few milliseconds, without the poll") {
    thread_lab lab;
    std::atomic<std::chrono::steady_clock::time_point> began{};
    REQUIRE(lab.kinds.add(std::make_unique<test::any_job>(job_options{.name = "work"}, [&](payload, job_context&) {
        began = std::chrono::steady_clock::now();
        return test::ended_well();
    })));
    job_worker worker({lab.on, *lab.store->jobs(), lab.kinds, lab.log}, {.poll = 1h});
    REQUIRE(worker.start());
    std::vector<duration> took;
    for (int i = 0; i < 50; ++i) {
        std::this_thread::sleep_for(2ms);
        const std::uint64_t before = worker.snapshot().succeeded;
        const auto asked = std::chrono::steady_clock::now();
        lab.enqueue(1);
        REQUIRE(lab.eventually([&] { return worker.snapshot().succeeded > before; }));
        took.push_back(began.load() - asked);
    }
    std::ranges::sort(took);
    CHECK(took[took.size() / 2] < 5ms); // some 100 us on a machine that is not busy
    sync_wait(worker.stop());
}

TEST_CASE("blocking handlers run on the blocking pool, and a stop while all is busy loses nothing") {
    thread_lab lab;
    std::atomic<int> ran = 0;
    REQUIRE(lab.kinds.add(std::make_unique<test::any_job>(job_options{.name = "work"}, [&](payload, job_context& c) {
        return [](job_context& in, std::atomic<int>& count) -> task<result<void>> {
            auto blocking = run_blocking(in.runtime(), [] { std::this_thread::sleep_for(1ms); });
            co_await std::move(blocking);
            ++count;
            co_return result<void>{};
        }(c, ran);
    })));
    lab.enqueue(500);
    for (int round = 0; round < 5; ++round) {
        job_worker worker({lab.on, *lab.store->jobs(), lab.kinds, lab.log}, {.concurrency = 8});
        REQUIRE(worker.start());
        std::this_thread::sleep_for(5ms);
        sync_wait(worker.stop());
    }
    int left = 0;
    for (const auto& each : sync_wait(lab.store->jobs()->counts()).value()) {
        CHECK(each.state == job_state::pending);
        left += static_cast<int>(each.count);
    }
    CHECK(ran + left == 500);
}
