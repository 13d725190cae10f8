// What a Redis server and the way to it can do to a transport.
#include "event_plugins/redis_support.hpp"
#include "event_plugins/shared_cases.hpp"
#include "harness/redis_cluster.hpp"

using namespace holdfast;
using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;
using test::kind;
using test::redis::event_desk;

namespace {

std::string through(const harness::tcp_proxy& proxy) {
    return "redis://127.0.0.1:" + std::to_string(proxy.port());
}

} // namespace

TEST_CASE("events on redis: delays, leases and dead letters survive a kill -9 of the server") {
    NEEDS_REDIS();
    harness::redis_server server({.fsync = "always"});
    event_desk d(server.url());
    CHECK(d.kept->capabilities().writes_survive == survives::power_loss);
    const test::before_restart before(d);
    server.kill();
    CHECK(d.refusal(d.kept->publish({d.message()})).code == errc::unavailable);
    server.start();
    before.check_after(d);
}

TEST_CASE("events on redis: a crowd of publishers and receivers keeps the order of keys") {
    NEEDS_REDIS();
    harness::redis_server server;
    event_desk d(server.url());
    test::check_crowd(d, 4, 3, 200);
}

TEST_CASE("events on redis: hints come from other processes") {
    NEEDS_REDIS();
    harness::redis_server server;
    event_desk d(server.url());
    test::check_hints(d);
}

TEST_CASE("events on redis: an answer that was cut off is unknown, and asking again is safe") {
    NEEDS_REDIS();
    harness::redis_server server;
    harness::tcp_proxy proxy(server.port());
    event_desk d(through(proxy));
    d.subscribe();
    const envelope m = d.message();
    for (const std::size_t bytes : {0u, 3u}) {
        proxy.truncate_next_reply(bytes);
        CHECK(d.refusal(d.kept->publish({m})).code == errc::unknown_outcome);
    }
    d.await(d.kept->publish({m}));
    auto got = d.receive();
    REQUIRE(got.size() == 1);
    const delivery_settlement again[] = {d.how(got[0], kind::redeliver, 1h)};
    proxy.truncate_next_reply(0);
    CHECK(d.refusal(d.kept->settle(again)).code == errc::unknown_outcome);
    CHECK(d.await(d.kept->settle(again)).at(0) == write_answer::done);
    CHECK(proxy.truncated() == 3);
    CHECK(d.receive().empty());
    CHECK(*d.await(d.kept->next_due("s")) > 59min);
}

TEST_CASE("events on redis: connections that were cut or slow are no matter, nor are scripts that were forgotten") {
    NEEDS_REDIS();
    harness::redis_server server;
    harness::tcp_proxy proxy(server.port());
    event_desk d(through(proxy));
    d.subscribe();
    d.add("1");
    test::cut(proxy);
    d.add("2");
    CHECK(server.tell("SCRIPT FLUSH") == "+OK");
    d.add("3");
    proxy.delay(30ms);
    CHECK(server.tell("SCRIPT FLUSH") == "+OK");
    const auto got = d.receive();
    CHECK(test::bodies(got) == std::vector<std::string>{"1", "2", "3"});
    proxy.delay(0ms);
    proxy.refuse(true);
    test::cut(proxy);
    CHECK_FALSE(d.attempt(d.kept->publish({d.message()})));
    proxy.refuse(false);
    CHECK(d.settle(got[0]) == write_answer::done);
}

TEST_CASE("events on redis: erased data are noticed by every call, and tokens still grow after a new start") {
    NEEDS_REDIS();
    harness::redis_server server;
    event_desk d(server.url());
    d.subscribe();
    d.add();
    const delivery mine = d.receive_one();
    CHECK(server.tell("FLUSHALL") == "+OK");
    const delivery_settlement done[] = {d.how(mine, kind::acknowledge)};
    for (const error& each : {d.refusal(d.kept->settle(done)), d.refusal(d.kept->publish({d.message()})),
                              d.refusal(d.kept->receive("s", 1, 1min, "r")), d.refusal(d.kept->subscriptions())}) {
        CHECK(each.code == errc::configuration);
        CHECK_THAT(each.message, ContainsSubstring("erased"));
    }
    d.await(d.kept->prepare());
    d.subscribe();
    d.add();
    CHECK(d.receive_one().lease.token() > mine.lease.token());
    CHECK(d.settle(mine) == write_answer::stale);
}

TEST_CASE("events on redis: a server that evicts keys is refused, and so is a namespace that is newer or a store's") {
    NEEDS_REDIS();
    harness::redis_server server({.arguments = {"--maxmemory", "50mb", "--maxmemory-policy", "allkeys-lru"}});
    asio_runtime on{asio_options{}};
    const auto prepare = [&](const std::string& space) {
        const auto transport = test::open_transport("redis", on, {{"url", server.url()}, {"namespace", space}});
        return sync_wait(on, transport->prepare());
    };
    const auto evicts = prepare("x");
    REQUIRE(!evicts);
    CHECK_THAT(evicts.error().message, ContainsSubstring("allkeys-lru"));
    CHECK(server.tell("CONFIG SET maxmemory-policy noeviction") == "+OK");
    CHECK(prepare("x").has_value());
    CHECK(server.tell("HSET {newer}:meta schema 77 kind events") == ":2");
    const auto newer = prepare("newer");
    REQUIRE(!newer);
    CHECK_THAT(newer.error().message, ContainsSubstring("77"));
    const auto store = test::open_store("redis", on, {{"url", server.url()}, {"namespace", "x"}});
    const auto mixed = sync_wait(on, store->prepare());
    REQUIRE(!mixed);
    CHECK(mixed.error().code == errc::configuration);
    CHECK_THAT(mixed.error().message, ContainsSubstring("another kind of plugin"));
}

TEST_CASE("events on redis: who has what is pending in a consumer group, until it is settled") {
    NEEDS_REDIS();
    harness::redis_server server;
    event_desk d(server.url());
    d.subscribe();
    d.add();
    const auto pending = [&] { return server.lines("XPENDING {" + d.space() + "}:s s - + 10"); };
    const delivery first = d.receive_one(1ms);
    REQUIRE(pending().size() == 4);
    CHECK(pending()[1] == "r");
    const auto reclaimed = d.receive_soon(); // the lease ran out
    const delivery& second = reclaimed.at(0);
    CHECK(second.crashes == 1);
    CHECK(d.settle(first) == write_answer::stale);
    CHECK(pending().size() == 4);
    CHECK(d.settle(second) == write_answer::done);
    CHECK(pending().empty());
}

TEST_CASE("events on redis: settings are checked, and a password is never shown") {
    NEEDS_REDIS();
    asio_runtime on{asio_options{}};
    const auto refusal = [&](test::text_settings with) {
        try {
            test::open_transport("redis", on, with);
        } catch (const std::exception& e) {
            return std::string(e.what());
        }
        return std::string();
    };
    CHECK_THAT(refusal({}), ContainsSubstring("url"));
    CHECK_THAT(refusal({{"url", "redis://x"}, {"namespace", "a-b"}}), ContainsSubstring("namespace"));
    CHECK_THAT(refusal({{"url", "redis://x"}, {"keep", "soon"}}), ContainsSubstring("keep"));
    harness::redis_server server({.arguments = {"--requirepass", "other"}});
    const auto transport =
        test::open_transport("redis", on, {{"url", "redis://:s3cret@127.0.0.1:" + std::to_string(server.port())}});
    const auto answer = sync_wait(on, transport->prepare());
    REQUIRE(!answer);
    CHECK(answer.error().code == errc::configuration);
    CHECK_THAT(answer.error().message, !ContainsSubstring("s3cret"));
}
