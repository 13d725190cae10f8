// Many at once, on servers and connections that do not hold.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <set>
#include <thread>

#include <holdfast/sleep.hpp>
#include <holdfast/when_all.hpp>

#include "stores/race.hpp"
#include "stores/redis_support.hpp"

using namespace holdfast;
using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;
using test::redis::desk;

namespace {

// Enqueues until it is acknowledged, as a client does that remembers the id.
task<void> enqueue_surely(runtime* on, job_store* jobs, std::vector<new_job> all, std::atomic<int>* trouble) {
    for (const new_job& each : all) {
        for (;;) {
            std::vector<new_job> one = {each};
            auto enqueueing = jobs->enqueue(std::move(one));
            const auto answer = co_await std::move(enqueueing);
            if (answer) break;
            if (answer.error().code != errc::unavailable && answer.error().code != errc::unknown_outcome)
                throw failed(answer.error());
            ++*trouble;
            co_await sleep_for(*on, 1ms);
        }
    }
}

} // namespace

TEST_CASE("redis: callers that are many more than connections and threads do not stand in each other's way") {
    NEEDS_REDIS();
    harness::redis_server server;
    desk d(server.url(), {{"connections", "4"}});
    std::atomic<int> trouble = 0;
    std::vector<task<void>> clients;
    for (int c = 0; c < 64; ++c) {
        std::vector<new_job> jobs;
        for (int i = 0; i < 50; ++i) jobs.push_back(d.job());
        auto one = enqueue_surely(&d.on, &d.jobs(), std::move(jobs), &trouble);
        clients.push_back(std::move(one));
    }
    sync_wait(d.on, when_all(std::move(clients)));
    CHECK(trouble == 0);
}

TEST_CASE("redis: a storm of cut connections loses no acknowledged job and doubles none") {
    NEEDS_REDIS();
    harness::redis_server server;
    harness::tcp_proxy proxy(server.port());
    desk d("redis://127.0.0.1:" + std::to_string(proxy.port()));
    std::atomic<bool> done = false;
    std::thread storm([&] {
        while (!done) {
            proxy.cut();
            std::this_thread::sleep_for(3ms);
        }
    });
    std::atomic<int> trouble = 0;
    std::vector<task<void>> clients;
    std::set<std::string> wanted;
    for (int c = 0; c < 8; ++c) {
        std::vector<new_job> jobs;
        for (int i = 0; i < 50; ++i) jobs.push_back(d.job());
        for (const new_job& each : jobs) wanted.insert(to_text(each.id));
        clients.push_back(enqueue_surely(&d.on, &d.jobs(), std::move(jobs), &trouble));
    }
    sync_wait(d.on, when_all(std::move(clients)));
    done = true;
    storm.join();
    CHECK(trouble > 0);
    desk calm(server.url(), {}, d.space());
    std::set<std::string> found;
    for (auto got = calm.await(calm.jobs().claim({{"default"}, 100, 1min, "w"})); !got.empty();
         got = calm.await(calm.jobs().claim({{"default"}, 100, 1min, "w"}))) {
        std::vector<settlement> all;
        for (const claimed_job& each : got) {
            CHECK(found.insert(to_text(each.id)).second);
            all.push_back(calm.success(each));
        }
        for (const settled& each : calm.await(calm.jobs().settle(all))) CHECK(each.answer == write_answer::done);
    }
    CHECK(found == wanted);
}

TEST_CASE("redis: of completion and recovery exactly one counts, whichever comes first") {
    NEEDS_REDIS();
    harness::redis_server server({.append_only = false});
    desk d(server.url());
    const auto other = test::redis::open(d.on, d.with);
    d.await(other->prepare());
    test::race_completion_against_recovery(d, *other, 100'000);
}

TEST_CASE("redis: too many connections are a reason to come later") {
    NEEDS_REDIS();
    harness::redis_server server({.arguments = {"--maxclients", "2"}});
    desk first(server.url());
    auto second = std::make_unique<desk>(server.url());
    asio_runtime on{asio_options{}};
    const auto third = test::redis::open(on, {{"url", server.url()}});
    const auto answer = sync_wait(on, third->prepare());
    REQUIRE(!answer);
    CHECK(answer.error().code == errc::unavailable);
    CHECK(first.state_of(first.add()) == job_state::pending);
    second.reset();
    for (int i = 0; i < 1000 && !sync_wait(on, third->prepare()); ++i) std::this_thread::sleep_for(1ms);
    CHECK(sync_wait(on, third->prepare()).has_value());
}

TEST_CASE("redis: a server that only reads is a reason to come later") {
    NEEDS_REDIS();
    harness::redis_server server;
    desk d(server.url());
    const identifier id = d.add();
    CHECK(server.tell("REPLICAOF 127.0.0.1 1") == "+OK");
    const error refusal = d.refusal(d.jobs().enqueue({d.job()}));
    CHECK(refusal.code == errc::unavailable);
    CHECK_THAT(refusal.message, ContainsSubstring("READONLY"));
    CHECK(d.state_of(id) == job_state::pending);
    CHECK(server.tell("REPLICAOF NO ONE") == "+OK");
    CHECK(d.claim_one().id == id);
}

TEST_CASE("redis: a unit of work whose commit was cut off is there as a whole, and repeating it changes nothing") {
    NEEDS_REDIS();
    harness::redis_server server;
    harness::tcp_proxy proxy(server.port());
    desk d("redis://127.0.0.1:" + std::to_string(proxy.port()));
    const identifier id = d.add();
    const claimed_job mine = d.claim_one();
    const new_job next = d.job();
    const settlement done[] = {d.success(mine)};
    auto unit = d.await(d.kept->begin());
    CHECK(d.await(d.jobs().settle(done, unit.get())).at(0).now == job_state::succeeded);
    CHECK(d.await(d.jobs().enqueue({next}, unit.get())).at(0).created);
    CHECK(d.await(d.kept->idempotency()->try_claim("k", 1h, unit.get())));
    proxy.truncate_next_reply(0);
    CHECK(d.refusal(unit->commit()).code == errc::unknown_outcome);
    CHECK(d.state_of(id) == job_state::succeeded);
    CHECK(d.state_of(next.id) == job_state::pending);
    CHECK(!d.await(d.kept->idempotency()->try_claim("k", 1h)));
    CHECK(d.refusal(unit->commit()).code == errc::invalid_argument);
}

TEST_CASE("redis: a unit of work that no server was there for can be committed later") {
    NEEDS_REDIS();
    harness::redis_server server({.fsync = "always"});
    desk d(server.url());
    const new_job j = d.job();
    auto unit = d.await(d.kept->begin());
    d.await(d.jobs().enqueue({j}, unit.get()));
    server.kill();
    CHECK(d.refusal(unit->commit()).code == errc::unavailable);
    server.start();
    d.await(unit->commit());
    CHECK(d.state_of(j.id) == job_state::pending);
}
