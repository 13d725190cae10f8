// From one version of the schema to the next, on Redis. The steps are the test's.
#include <atomic>
#include <thread>
#include <vector>

#include <holdfast/redis/scripted_server.hpp>

#include "stores/redis_support.hpp"

using namespace holdfast;
using Catch::Matchers::ContainsSubstring;

namespace {

// One script, that counts.
redis::script_library version(int number, std::vector<std::string_view> steps = {}) {
    return {.schema = number,
            .kind = "store",
            .all = {std::string(redis::lua::prelude) + "return call('INCR', P .. 'count')"},
            .steps = std::move(steps)};
}

struct place {
    place() {
        how.name = test::redis::fresh_namespace();
        how.where.servers.emplace_back().port = server.port();
    }
    result<void> prepare(const redis::script_library& by) { return redis::scripted_server(how, on, by).prepare_now(); }
    std::string schema() { return server.lines("HGET {" + how.name + "}:meta schema").at(0); }
    std::string count() { return server.lines("GET {" + how.name + "}:count").at(0); }

    harness::redis_server server;
    asio_runtime on{asio_options{}};
    redis::options how;
};

} // namespace

TEST_CASE("redis: an older schema is brought to the newest version, step by step and once") {
    NEEDS_REDIS();
    place at;
    const auto first = version(1);
    redis::scripted_server old(at.how, at.on, first);
    REQUIRE(old.prepare_now());
    REQUIRE(sync_wait(at.on, old.run(0, {}, redis::access::write)));
    const auto third = version(3, {"call('INCRBY', P .. 'count', 10)", "call('INCRBY', P .. 'count', 100)"});
    std::atomic<int> trouble = 0;
    {
        std::vector<std::jthread> all;
        for (int i = 0; i < 4; ++i)
            all.emplace_back([&] {
                if (!at.prepare(third)) ++trouble;
            });
    }
    CHECK(trouble == 0);
    CHECK(at.schema() == "3");
    CHECK(at.count() == "111");
    CHECK(sync_wait(at.on, old.run(0, {}, redis::access::write)).has_value()); // who was there before works on
    REQUIRE(at.prepare(third));
    CHECK(at.count() == "112");
    // What is new begins with the newest version.
    at.how.name = test::redis::fresh_namespace();
    REQUIRE(at.prepare(third));
    CHECK(at.schema() == "3");
    CHECK(at.server.tell("EXISTS {" + at.how.name + "}:count") == ":0");
}

TEST_CASE("redis: a schema that no step leads from is refused, and so is one that is newer") {
    NEEDS_REDIS();
    place at;
    REQUIRE(at.prepare(version(1)));
    const auto older = at.prepare(version(2));
    REQUIRE(!older);
    CHECK(older.error().code == errc::configuration);
    CHECK_THAT(older.error().message, ContainsSubstring("version 1") && ContainsSubstring("bring it to 2"));
    CHECK(at.schema() == "1");
    REQUIRE(at.prepare(version(2, {"call('SET', P .. 'count', 5)"})));
    const auto newer = at.prepare(version(1));
    REQUIRE(!newer);
    CHECK(newer.error().code == errc::configuration);
    CHECK_THAT(newer.error().message, ContainsSubstring("version 2") && ContainsSubstring("knows 1"));
    CHECK(at.schema() == "2");
    CHECK(at.count() == "5");
}

TEST_CASE("redis: a server killed while it migrates has done a step whole or not at all") {
    NEEDS_REDIS();
    place at;
    REQUIRE(at.prepare(version(1)));
    // Busy for a while between two writes.
    const auto second = version(2, {"call('INCR', P .. 'count')\nlocal n = 0\nfor i = 1, 60000000 do n = n + i end\n"
                                    "call('INCR', P .. 'count')"});
    std::jthread migrating([&] { (void)at.prepare(second); });
    std::this_thread::sleep_for(std::chrono::milliseconds{100});
    at.server.kill();
    migrating.join();
    at.server.start();
    const bool done = at.schema() == "2";
    CHECK(at.server.tell("EXISTS {" + at.how.name + "}:count") == (done ? ":1" : ":0"));
    REQUIRE(at.prepare(second));
    CHECK(at.schema() == "2");
    CHECK(at.count() == "2");
}
