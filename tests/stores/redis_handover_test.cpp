// Jobs that are handed to idle workers, over connections and processes that come and go.
#include <atomic>
#include <chrono>
#include <filesystem>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include <fcntl.h>

#include "stores/redis_support.hpp"

using namespace holdfast;
using namespace std::chrono_literals;
using test::redis::desk;
using test::redis::soon;

namespace {

// It listens, and has said that it waits.
struct idle {
    explicit idle(desk& at, duration lease = 1min)
        : on(at.jobs().attend(
              {"default"}, [this] { ++hints; },
              [this](claimed_job job) {
                  const std::lock_guard lock(mutex);
                  got.push_back(std::move(job));
              })) {
        REQUIRE(soon([&] { return hints > 0; }));
        say(at, lease);
    }
    // Claims; it waits when it has found less than ten.
    void say(desk& at, duration lease = 1min) {
        found += at.await(at.jobs().claim({{"default"}, 10, lease, "idle", on->address()})).size();
    }
    std::size_t count() {
        const std::lock_guard lock(mutex);
        return got.size();
    }
    std::mutex mutex;
    std::vector<claimed_job> got;
    std::atomic<int> hints = 0;
    std::size_t found = 0; // by claims
    std::unique_ptr<job_watch> on;
};

// Those that a program gets which is started here.
std::set<std::string> inherited_sockets() {
    std::set<std::string> all;
    for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) {
        std::error_code gone;
        const std::string what = std::filesystem::read_symlink(each.path(), gone).string();
        const int flags = ::fcntl(std::stoi(each.path().filename().string()), F_GETFD);
        if (what.starts_with("socket:") && flags >= 0 && (flags & FD_CLOEXEC) == 0) all.insert(what);
    }
    return all;
}

} // namespace

TEST_CASE("redis: an idle worker is handed what another process enqueues, and one job at a time") {
    NEEDS_REDIS();
    harness::redis_server server;
    desk d(server.url());
    desk other(server.url(), {}, d.space());
    idle worker(d);
    const identifier first = other.add();
    REQUIRE(soon([&] { return worker.count() == 1; }));
    CHECK(worker.got.front().id == first);
    const identifier second = other.add(); // it has not said again that it waits
    CHECK(other.claim_one().id == second);
    worker.say(d);
    const auto some = other.add(3); // many at once are for a claim
    CHECK(d.claim(10).size() == some.size());
    CHECK(worker.count() == 1);
}

TEST_CASE("redis: a worker whose connection has ended is handed nothing, and others are") {
    NEEDS_REDIS();
    harness::redis_server server;
    harness::tcp_proxy proxy(server.port());
    desk d("redis://127.0.0.1:" + std::to_string(proxy.port()));
    desk other(server.url(), {}, d.space());
    idle gone(d);
    proxy.refuse(true);
    proxy.cut();
    REQUIRE(soon([&] { return server.lines("PUBSUB CHANNELS").empty(); }));
    const identifier first = other.add();
    CHECK(other.claim_one().id == first);
    idle here(other);
    const identifier second = other.add();
    REQUIRE(soon([&] { return here.count() == 1; }));
    CHECK(here.got.front().id == second);
    CHECK(gone.count() == 0);
    proxy.refuse(false);
}

TEST_CASE("redis: who listens to patterns is not taken for a worker that has gone") {
    NEEDS_REDIS();
    harness::redis_server server;
    harness::tcp_proxy proxy(server.port());
    desk d("redis://127.0.0.1:" + std::to_string(proxy.port()));
    desk other(server.url(), {}, d.space());
    const auto command = (harness::redis_binary()->parent_path() / "redis-cli").string();
    const harness::child_process monitor(
        {.arguments = {command, "-p", std::to_string(server.port()), "PSUBSCRIBE", "*"}});
    REQUIRE(soon([&] { return server.tell("PUBSUB NUMPAT") == ":1"; }));
    idle gone(d);
    proxy.refuse(true);
    proxy.cut();
    REQUIRE(soon([&] { return server.lines("PUBSUB CHANNELS").empty(); }));
    const identifier id = other.add();
    CHECK(other.claim_one().id == id);
    proxy.refuse(false);
}

TEST_CASE("redis: a program that a handler starts gets none of the connections") {
    NEEDS_REDIS();
    harness::redis_server server;
    const std::set<std::string> before = inherited_sockets();
    desk d(server.url());
    idle worker(d);
    CHECK(d.add() != identifier());
    CHECK(inherited_sockets() == before);
}

TEST_CASE("redis: a worker that still listens to a master of the past is handed nothing") {
    NEEDS_REDIS();
    harness::redis_server old;
    harness::redis_server next;
    const auto follow = [](const harness::redis_server& who, const harness::redis_server& whom) {
        REQUIRE(who.tell("REPLICAOF 127.0.0.1 " + std::to_string(whom.port())) == "+OK");
        REQUIRE(soon([&] { return who.lines("ROLE").at(3) == "connected"; }));
    };
    desk d(old.url());
    idle worker(d);
    follow(next, old);
    REQUIRE(next.tell("REPLICAOF NO ONE") == "+OK");
    follow(old, next);
    desk other(next.url(), {}, d.space());
    const int before = worker.hints;
    const identifier id = other.add();
    CHECK(soon([&] { return worker.hints > before; })); // what is published goes on to replicas
    CHECK(other.claim_one().id == id);
    CHECK(worker.count() == 0);
}

TEST_CASE("redis: a job that was handed over and lost on the way comes back when its lease has run out") {
    NEEDS_REDIS();
    harness::redis_server server;
    harness::tcp_proxy proxy(server.port());
    desk d("redis://127.0.0.1:" + std::to_string(proxy.port()), {{"timeout", "200ms"}});
    desk other(server.url(), {}, d.space());
    idle worker(d, 50ms);
    proxy.drop_replies(true); // the server believes that it was heard
    const identifier id = other.add();
    CHECK(other.claim(1).empty());
    int back = 0;
    REQUIRE(soon([&] { return (back += other.await(other.jobs().recover_stale(10)).requeued) == 1; }));
    const claimed_job again = other.claim_one();
    CHECK(again.id == id);
    CHECK(again.crash_count == 1);
    CHECK(worker.count() == 0);
}

TEST_CASE("redis: a store that closes gives back what is on its way to it") {
    NEEDS_REDIS();
    harness::redis_server server;
    desk other(server.url());
    std::atomic<bool> stop = false;
    std::atomic<int> added = 0;
    std::thread adds([&] {
        for (; !stop; ++added) other.add();
    });
    std::size_t taken = 0;
    std::size_t handed = 0;
    for (int round = 0; round < 30; ++round) {
        desk d(server.url(), {}, other.space());
        idle worker(d);
        for (int i = 0; i < 20; ++i) worker.say(d);
        worker.on.reset(); // what is handed over from here on, the store gives back
        taken += worker.found;
        handed += worker.count();
    }
    stop = true;
    adds.join();
    const std::size_t left = other.claim(10'000'000).size();
    INFO(added << " added, " << taken << " claimed, " << handed << " handed over, " << left << " left");
    CHECK(handed > 0);
    CHECK(taken + handed + left == static_cast<std::size_t>(added));
}

TEST_CASE("redis: dead workers that had said that they wait are not kept in mind for ever") {
    NEEDS_REDIS();
    harness::redis_server server;
    desk other(server.url());
    for (int i = 0; i < 300; ++i) {
        claim_request request{{"default"}, 10, 1min, "gone", "nobody " + std::to_string(i)};
        CHECK(other.await(other.jobs().claim(std::move(request))).empty());
    }
    const std::string noted = server.tell("HLEN {" + other.space() + "}:a:default");
    CHECK(std::stoi(noted.substr(1)) <= 100);
    const identifier id = other.add(); // nobody hears of it
    CHECK(other.claim_one().id == id);
    CHECK(server.tell("EXISTS {" + other.space() + "}:a:default") == ":0");
}
