// Locks on a majority of servers, some of which are away.
#include <chrono>
#include <thread>

#include "stores/redis_support.hpp"

using namespace holdfast;
using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;
using test::redis::desk;

namespace {

// Three servers, and a store whose locks are on them.
struct majority {
    majority() : d(jobs.url(), {{"lock_servers", servers()}}) {}

    std::string servers() const {
        std::string text;
        for (const auto& each : three) text += "127.0.0.1:" + std::to_string(each.port()) + ",";
        return text;
    }
    lock_store& locks() { return *d.kept->locks(); }
    std::optional<lock_lease> acquire(duration ttl = 1min) { return d.await(locks().try_acquire("r", ttl)); }

    harness::redis_server jobs; // the rest is elsewhere
    // A server that comes back without what it had last said breaks the rules of the game.
    harness::redis_options durable{.fsync = "always"};
    harness::redis_server three[3]{harness::redis_server(durable), harness::redis_server(durable),
                                   harness::redis_server(durable)};
    desk d;
};

} // namespace

TEST_CASE("redis locks: with one of three servers down all goes on, whichever it is, and tokens grow") {
    NEEDS_REDIS();
    majority m;
    std::uint64_t last = 0;
    for (auto& down : m.three) {
        down.kill();
        const auto mine = m.acquire();
        REQUIRE(mine);
        CHECK(mine->token() > last);
        last = mine->token();
        CHECK(!m.acquire());
        m.d.await(m.locks().renew(*mine, 1min));
        m.d.await(m.locks().release(*mine));
        down.start();
    }
    CHECK(m.acquire()->token() > last);
}

TEST_CASE("redis locks: with two of three servers down nobody gets a lock, and a holder is told that none can say") {
    NEEDS_REDIS();
    majority m;
    const auto mine = m.acquire();
    REQUIRE(mine);
    m.three[0].kill();
    m.three[2].kill();
    const error refusal = m.d.refusal(m.locks().try_acquire("other", 1min));
    CHECK(refusal.code == errc::unavailable);
    CHECK_THAT(refusal.message, ContainsSubstring("2 of the 3 lock_servers"));
    CHECK(m.d.refusal(m.locks().renew(*mine, 1min)).code == errc::unavailable);
    CHECK(m.d.refusal(m.locks().release(*mine)).code == errc::unavailable);
    CHECK(m.three[1].lines("KEYS *:k:other").empty()); // what was promised was taken back
    m.three[0].start();
    m.three[2].start();
    m.d.await(m.locks().renew(*mine, 1min)); // it was held all the time
    CHECK(!m.acquire());
}

TEST_CASE("redis locks: a server that comes up after the store has been prepared takes part") {
    NEEDS_REDIS();
    majority m;
    m.three[1].kill();
    desk late(m.jobs.url(), {{"lock_servers", m.servers()}});
    m.three[1].start();
    m.three[2].kill();
    CHECK(late.await(late.kept->locks()->try_acquire("r", 1min)));
}

TEST_CASE("redis locks: a lock that most servers have forgotten is lost, and the next token is larger all the same") {
    NEEDS_REDIS();
    majority m;
    const auto mine = m.acquire();
    REQUIRE(mine);
    for (int i : {0, 1}) CHECK(m.three[i].tell("DEL {" + m.d.space() + "}:k:r") == ":1");
    CHECK(m.d.refusal(m.locks().renew(*mine, 1min)).code == errc::stale_lease);
    const auto next = m.acquire();
    REQUIRE(next);
    CHECK(next->token() > mine->token());
}

TEST_CASE("redis locks: one of three servers that was erased gives no lock away, and no old token comes back") {
    NEEDS_REDIS();
    majority m;
    for (auto& erased : m.three) {
        const auto mine = m.acquire();
        REQUIRE(mine);
        CHECK(erased.tell("FLUSHALL") == "+OK");
        CHECK(!m.acquire()); // the others know who has it
        m.d.await(m.locks().renew(*mine, 1min));
        m.d.await(m.d.kept->prepare()); // it starts anew, and would give it away
        CHECK(!m.acquire());
        m.d.await(m.locks().renew(*mine, 1min));
        m.d.await(m.locks().release(*mine));
        const auto next = m.acquire();
        REQUIRE(next);
        CHECK(next->token() > mine->token());
        CHECK(m.d.refusal(m.locks().renew(*mine, 1min)).code == errc::stale_lease);
        m.d.await(m.locks().release(*next));
    }
}

TEST_CASE("redis locks: the token is larger than any that a server knows, however far its clock or count is ahead") {
    NEEDS_REDIS();
    majority m;
    const std::uint64_t ahead = 4'000'000'000'000'000;
    m.three[2].tell("HSET {" + m.d.space() + "}:meta token " + std::to_string(ahead));
    const auto mine = m.acquire();
    REQUIRE(mine);
    CHECK(mine->token() > ahead);
    m.d.await(m.locks().release(*mine));
    m.three[2].kill(); // the others have been told
    const auto next = m.acquire();
    REQUIRE(next);
    CHECK(next->token() > mine->token());
}

TEST_CASE("redis locks: a server that does not answer costs its timeout and no more") {
    NEEDS_REDIS();
    harness::redis_server jobs;
    harness::redis_server three[3];
    std::string servers;
    for (const auto& each : three) servers += "127.0.0.1:" + std::to_string(each.port()) + ",";
    desk d(jobs.url(), {{"lock_servers", servers}, {"timeout", "100ms"}});
    three[2].freeze();
    const auto mine = d.await(d.kept->locks()->try_acquire("r", 1min));
    CHECK(mine);
    three[2].thaw();
}

TEST_CASE("redis locks: no more is promised than the weakest of the servers keeps") {
    NEEDS_REDIS();
    harness::redis_server always({.fsync = "always"});
    harness::redis_server more[2]{harness::redis_server({.fsync = "always"}),
                                  harness::redis_server({.fsync = "always"})};
    harness::redis_server weak({.fsync = "no"});
    const auto promised = [&](const harness::redis_server& third) {
        std::string servers;
        for (const std::uint16_t port : {more[0].port(), more[1].port(), third.port()})
            servers += "127.0.0.1:" + std::to_string(port) + ",";
        return desk(always.url(), {{"lock_servers", servers}}).kept->capabilities().writes_survive;
    };
    CHECK(promised(always) == survives::power_loss);
    CHECK(promised(weak) == survives::server_crash);
    weak.kill(); // nobody knows
    CHECK(promised(weak) == survives::process_crash);
}

TEST_CASE("redis locks: fewer than three servers are refused") {
    asio_runtime on{asio_options{}};
    for (const char* servers : {"127.0.0.1:1,127.0.0.1:2", "127.0.0.1:1"})
        CHECK_THROWS_WITH(test::redis::open(on, {{"url", "redis://h"}, {"lock_servers", servers}}),
                          ContainsSubstring("3 servers"));
    CHECK_THROWS_WITH(test::redis::open(on, {{"url", "redis://h"}, {"lock_servers", "a:1,b:2,c:x"}}),
                      ContainsSubstring("c:x"));
}
