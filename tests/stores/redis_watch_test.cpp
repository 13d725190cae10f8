// Hints over connections that come and go.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "harness/redis_cluster.hpp"
#include "stores/redis_support.hpp"

using namespace holdfast;
using namespace std::chrono_literals;
using test::redis::desk;
using test::redis::soon;
using test::redis::subscriber;

namespace {

struct watched {
    explicit watched(desk& at) : on(at.jobs().watch({"default"}, [this] { ++count; })) {}
    // Whether one more than `before` comes.
    bool hears(int before, std::chrono::milliseconds at_most = 10s) const {
        const auto give_up = std::chrono::steady_clock::now() + at_most;
        while (count <= before && std::chrono::steady_clock::now() < give_up) std::this_thread::sleep_for(100us);
        return count > before;
    }
    std::atomic<int> count = 0;
    std::unique_ptr<job_watch> on;
};

// As the server counts them.
bool has_subscriber(const harness::redis_server& server) {
    return !server.lines("PUBSUB CHANNELS").empty();
}

} // namespace

TEST_CASE("redis: a subscription that was cut off is made again, and tells of what was missed") {
    NEEDS_REDIS();
    harness::redis_server server;
    harness::tcp_proxy proxy(server.port());
    desk d("redis://127.0.0.1:" + std::to_string(proxy.port()));
    desk other(server.url(), {}, d.space());
    watched w(d);
    REQUIRE(w.hears(0));
    for (int round = 0; round < 3; ++round) {
        proxy.refuse(true);
        proxy.cut();
        REQUIRE(soon([&] { return !has_subscriber(server); }));
        const int before = w.count;
        other.add(); // nobody listens
        proxy.refuse(false);
        CHECK(w.hears(before));
        const int again = w.count;
        other.add();
        CHECK(w.hears(again));
    }
}

TEST_CASE("redis: a subscription outlives a restart of the server") {
    NEEDS_REDIS();
    harness::redis_server server;
    desk d(server.url());
    watched w(d);
    REQUIRE(w.hears(0));
    server.kill();
    server.start();
    REQUIRE(soon([&] { return has_subscriber(server); }));
    const int before = w.count;
    d.add();
    CHECK(w.hears(before));
}

TEST_CASE("redis: a subscription that is silently dead is noticed") {
    NEEDS_REDIS();
    harness::redis_server server;
    harness::tcp_proxy proxy(server.port());
    desk d("redis://127.0.0.1:" + std::to_string(proxy.port()), {{"timeout", "200ms"}});
    watched w(d);
    REQUIRE(w.hears(0));
    const auto first = subscriber(server);
    proxy.drop_replies(true); // and nobody says that the connection has ended
    REQUIRE(soon([&] { return subscriber(server) != first; }));
    const int before = w.count;
    proxy.drop_replies(false);
    CHECK(w.hears(before));
    const int again = w.count;
    d.add();
    CHECK(w.hears(again));
}

TEST_CASE("redis: hints cross the nodes of a cluster, and two stores of one server do not hear each other") {
    NEEDS_REDIS();
    harness::redis_cluster cluster;
    desk here(cluster.url());
    desk there(cluster.node(2).url(), {}, here.space());
    desk stranger(cluster.url());
    watched w(here);
    watched s(stranger);
    REQUIRE(w.hears(0));
    REQUIRE(s.hears(0));
    const int before = w.count;
    const int silent = s.count;
    there.add();
    CHECK(w.hears(before));
    CHECK(!s.hears(silent, 20ms));
}

TEST_CASE("redis: who may not publish works without hints") {
    NEEDS_REDIS();
    harness::redis_server server;
    CHECK(server.tell("ACL SETUSER mute on >pw ~* +@all resetchannels") == "+OK");
    desk d("redis://mute:pw@127.0.0.1:" + std::to_string(server.port()));
    const identifier id = d.add();
    CHECK(d.claim_one().id == id);
}

TEST_CASE("redis: a hint comes soon, also to a queue that is busy") {
    NEEDS_REDIS();
    harness::redis_server server;
    desk d(server.url());
    desk other(server.url(), {}, d.space());
    watched w(d);
    REQUIRE(w.hears(0));
    std::vector<std::chrono::nanoseconds> took;
    for (int i = 0; i < 200; ++i) {
        const int before = w.count;
        other.add();
        const auto done = std::chrono::steady_clock::now();
        while (w.count == before && std::chrono::steady_clock::now() - done < 5s) std::this_thread::yield();
        took.push_back(std::chrono::steady_clock::now() - done);
    }
    std::ranges::sort(took);
    INFO("median " << took[100].count() / 1000 << " us");
    CHECK(took[100] < 5ms); // a machine with nothing else to do takes some 50 us
}
