// A store whose server changes: nodes of a cluster, a master and its sentinels.
#include <atomic>
#include <chrono>
#include <thread>

#include "harness/redis_cluster.hpp"
#include "harness/redis_sentinel.hpp"
#include "stores/redis_support.hpp"

using namespace holdfast;
using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;
using test::redis::desk;

TEST_CASE("redis: a slot that a cluster moves is refused as a whole meanwhile, and found again afterwards") {
    NEEDS_REDIS();
    harness::redis_cluster cluster;
    desk d(cluster.url());
    const std::size_t from = cluster.owner_of(d.space());
    const std::size_t to = (from + 1) % harness::redis_cluster::size;
    const int slot = cluster.slot_of(d.space());
    const identifier before = d.add();
    const claimed_job mine = d.claim_one();
    const identifier waits = d.add();
    const settlement done[] = {d.success(mine)};
    const auto refused = [&] {
        for (const error& each : {d.refusal(d.jobs().enqueue({d.job()})), d.refusal(d.jobs().settle(done)),
                                  d.refusal(d.jobs().claim({{"default"}, 1, 1min, "w"}))}) {
            CHECK(each.code == errc::unavailable);
            CHECK_THAT(each.message, ContainsSubstring("moving"));
        }
    };
    cluster.announce_move(slot, from, to);
    refused();
    cluster.move_keys(slot, from, to);
    refused();
    cluster.conclude_move(slot, to);
    CHECK(d.await(d.jobs().settle(done)).at(0).answer == write_answer::done);
    CHECK(d.state_of(before) == job_state::succeeded);
    CHECK(d.state_of(waits) == job_state::pending);
    CHECK(d.claim_one().id == waits);
    CHECK(cluster.node(from).tell("DBSIZE") == ":0");
    CHECK(d.await(d.jobs().counts()).size() == 2);
}

TEST_CASE("redis: on a cluster no job is handed over, so that a worker whose node has lost the slot gets none twice") {
    NEEDS_REDIS();
    harness::redis_cluster cluster;
    desk d(cluster.url());
    desk other(cluster.url(), {}, d.space());
    std::atomic<int> hints = 0;
    std::atomic<int> handed = 0;
    const auto worker = d.jobs().attend({"default"}, [&] { ++hints; }, [&](const claimed_job&) { ++handed; });
    const auto rings = [&](int more_than) {
        for (int i = 0; i < 5000 && hints <= more_than; ++i) std::this_thread::sleep_for(1ms);
        return hints > more_than;
    };
    REQUIRE(rings(0));
    CHECK(worker->address().empty());
    CHECK(d.await(d.jobs().claim({{"default"}, 10, 1min, "idle", worker->address()})).empty());
    const std::size_t from = cluster.owner_of(d.space());
    const std::size_t to = (from + 1) % harness::redis_cluster::size;
    const int slot = cluster.slot_of(d.space());
    cluster.announce_move(slot, from, to);
    cluster.move_keys(slot, from, to);
    cluster.conclude_move(slot, to);
    const int before = hints;
    const identifier id = other.add();
    CHECK(rings(before)); // a hint is no promise, and comes from any node
    CHECK(other.claim_one().id == id);
    CHECK(handed == 0);
}

TEST_CASE("redis: a cluster is found through any of its nodes that lives") {
    NEEDS_REDIS();
    harness::redis_cluster cluster;
    desk d(cluster.url());
    const std::size_t owner = cluster.owner_of(d.space());
    const identifier id = d.add();
    cluster.node((owner + 1) % 3).kill();
    desk second(cluster.url(), {}, d.space());
    CHECK(second.state_of(id) == job_state::pending);
    cluster.node(owner).kill();
    CHECK(d.refusal(d.jobs().enqueue({d.job()})).code == errc::unavailable);
}

TEST_CASE("redis: sentinels say where the master is, and where it is after it died") {
    NEEDS_REDIS();
    harness::redis_sentinels set;
    desk d(set.url());
    const identifier id = d.add();
    const claimed_job mine = d.claim_one();
    CHECK(set.master().tell("EXISTS {" + d.space() + "}:j") == ":1");
    CHECK(set.master().tell("WAIT 1 5000") == ":1");
    std::atomic<int> hints = 0;
    const auto watch = d.jobs().watch({"default"}, [&] { ++hints; });
    set.master().kill();
    const error meanwhile = d.refusal(d.jobs().enqueue({d.job()}));
    CHECK((meanwhile.code == errc::unavailable || meanwhile.code == errc::unknown_outcome));
    set.wait_for_failover();
    const settlement done[] = {d.success(mine)};
    CHECK(d.await(d.jobs().settle(done)).at(0).answer == write_answer::done);
    CHECK(d.state_of(id) == job_state::succeeded);
    for (int i = 0; i < 5000 && set.replica().lines("PUBSUB CHANNELS").empty(); ++i) std::this_thread::sleep_for(1ms);
    const int before = hints;
    d.add();
    for (int i = 0; i < 5000 && hints == before; ++i) std::this_thread::sleep_for(1ms);
    CHECK(hints > before);
}

TEST_CASE("redis: a master that lives on as a replica is left for the new one") {
    NEEDS_REDIS();
    harness::redis_sentinels set;
    desk d(set.url());
    const identifier id = d.add();
    set.fail_over();
    CHECK(d.state_of(d.add()) == job_state::pending);
    CHECK(d.state_of(id) == job_state::pending);
    CHECK(set.replica().lines("ROLE").at(0) == "master");
}

TEST_CASE("redis: sentinels that cannot help are named") {
    NEEDS_REDIS();
    harness::redis_server no_sentinel;
    asio_runtime on{asio_options{}};
    const std::string port = std::to_string(no_sentinel.port());
    const auto store = test::redis::open(on, {{"url", "redis-sentinel://127.0.0.1:" + port + ",127.0.0.1:1/desk"}});
    const auto answer = sync_wait(on, store->prepare());
    REQUIRE(!answer);
    CHECK(answer.error().code == errc::unavailable);
    CHECK_THAT(answer.error().message,
               ContainsSubstring("\"desk\"") && ContainsSubstring(port) && ContainsSubstring(":1/"));
    CHECK_THROWS_WITH(test::redis::open(on, {{"url", "redis-sentinel://h"}}), ContainsSubstring("master"));
}

TEST_CASE("redis: files for TLS are refused where the url does not ask for it") {
    asio_runtime on{asio_options{}};
    CHECK_THROWS_WITH(test::redis::open(on, {{"url", "redis://h"}, {"tls_ca", "ca.pem"}}),
                      ContainsSubstring("rediss://"));
}
