// What a PostgreSQL server and the way to it can do to a transport.
#include "event_plugins/postgres_support.hpp"
#include "event_plugins/shared_cases.hpp"
#include "harness/tcp_proxy.hpp"

using namespace holdfast;
using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;
using test::kind;
using test::postgres::event_desk;
using test::postgres::shared_server;

namespace {

std::string through(const harness::tcp_proxy& proxy) {
    std::string url = shared_server().url();
    const std::string port = ":" + std::to_string(shared_server().port());
    return url.replace(url.find(port), port.size(), ":" + std::to_string(proxy.port()));
}

} // namespace

TEST_CASE("events on postgres: delays, leases and dead letters survive a restart of the server") {
    NEEDS_POSTGRES();
    harness::postgres_server server;
    event_desk d({}, server.url());
    const test::before_restart before(d);
    SECTION("stopped") {
        server.restart();
    }
    SECTION("killed") {
        server.kill();
        server.start();
    }
    before.check_after(d);
}

TEST_CASE("events on postgres: a crowd of publishers and receivers keeps the order of keys") {
    NEEDS_POSTGRES();
    event_desk d({{"connections", "2"}});
    test::check_crowd(d, 4, 3, 200);
}

TEST_CASE("events on postgres: hints come from other processes") {
    NEEDS_POSTGRES();
    event_desk d;
    test::check_hints(d);
}

TEST_CASE("events on postgres: an answer that was cut off is asked for again, and nothing happens twice") {
    NEEDS_POSTGRES();
    harness::tcp_proxy proxy(shared_server().port());
    event_desk d({{"connections", "1"}}, through(proxy));
    const envelope first = d.message("1");
    // What follows is applied, and its answer is lost. Statements are prepared before, which has answers of its own.
    const auto cut_off = [&](std::size_t bytes) {
        d.await(d.kept->publish({first}));
        d.await(d.kept->settle({}));
        CHECK(d.refusal(d.kept->receive("nobody", 1, 1min, "r")).code == errc::not_found);
        proxy.truncate_next_reply(bytes);
    };
    for (const std::size_t bytes : {0u, 3u}) {
        cut_off(bytes);
        d.add("more");
    }
    CHECK(proxy.truncated() == 2);
    const auto direct =
        test::open_transport("postgres", d.on, {{"url", shared_server().url()}, {"namespace", d.space()}});
    d.await(direct->subscribe({"s", {"t"}, true})); // its hints do not meet the proxy, so that calls alone do
    const auto got = d.receive(2);
    REQUIRE(test::bodies(got) == std::vector<std::string>{"1", "more"});
    cut_off(0);
    CHECK(d.settle(got[0], kind::redeliver, 1h) == write_answer::done);
    cut_off(0);
    CHECK(d.settle(got[1], kind::dead_letter) == write_answer::done);
    CHECK(d.await(d.kept->dead_messages({}, 10)).messages.size() == 1);
    // Nobody has what was given out in an answer that nobody got, until its lease ends.
    cut_off(0);
    CHECK(d.refusal(d.kept->receive("s", 1, 100ms, "r")).code == errc::unknown_outcome);
    CHECK(proxy.truncated() == 5);
    const auto again = d.receive_soon();
    REQUIRE(test::bodies(again) == std::vector<std::string>{"more"});
    CHECK(again[0].crashes == 1);
}

TEST_CASE("events on postgres: connections that were cut, ended by the server or slow are no matter") {
    NEEDS_POSTGRES();
    harness::tcp_proxy proxy(shared_server().port());
    event_desk d({}, through(proxy));
    d.subscribe();
    d.add("1");
    test::cut(proxy);
    d.add("2");
    shared_server().psql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'holdfast'");
    d.add("3");
    proxy.delay(30ms);
    const auto got = d.receive();
    CHECK(test::bodies(got) == std::vector<std::string>{"1", "2", "3"});
    proxy.delay(0ms);
    proxy.refuse(true);
    test::cut(proxy);
    CHECK(d.refusal(d.kept->publish({d.message()})).code == errc::unavailable);
    proxy.refuse(false);
    CHECK(d.settle(got[0]) == write_answer::done);
}

TEST_CASE("events on postgres: prepares at once from many, and refuses what is newer or another plugin's") {
    NEEDS_POSTGRES();
    event_desk d;
    d.await(d.kept->destroy());
    {
        std::vector<std::jthread> all;
        std::atomic<int> fine = 0;
        for (int i = 0; i < 6; ++i)
            all.emplace_back([&] {
                d.another();
                ++fine;
            });
        all.clear();
        CHECK(fine == 6);
    }
    d.subscribe();
    shared_server().psql("INSERT INTO \"" + d.space() + "\".events_meta (version, plugin) VALUES (77, 'x')");
    const error newer = d.refusal(d.kept->prepare());
    CHECK(newer.code == errc::configuration);
    CHECK_THAT(newer.message, ContainsSubstring("77"));
    const auto store = test::open_store("postgres", d.on, d.with);
    const auto mixed = sync_wait(d.on, store->prepare());
    REQUIRE(!mixed);
    CHECK_THAT(mixed.error().message, ContainsSubstring("another kind of plugin"));
}

TEST_CASE("events on postgres: says what it can lose, as the server is set up") {
    NEEDS_POSTGRES();
    CHECK(event_desk().kept->capabilities().writes_survive == survives::server_crash); // fsync is off there
    CHECK_THAT(event_desk().kept->capabilities().loses, ContainsSubstring("fsync"));
    CHECK(event_desk().kept->capabilities().shared);
}

TEST_CASE("events on postgres: settings are checked, and a password is never shown") {
    NEEDS_POSTGRES();
    asio_runtime on{asio_options{}};
    const auto refusal = [&](test::text_settings with) {
        try {
            test::open_transport("postgres", on, with);
        } catch (const std::exception& e) {
            return std::string(e.what());
        }
        return std::string();
    };
    CHECK_THAT(refusal({}), ContainsSubstring("url"));
    CHECK_THAT(refusal({{"url", "x"}, {"namespace", "pg_x"}}), ContainsSubstring("namespace"));
    CHECK_THAT(refusal({{"url", "x"}, {"keep", "soon"}}), ContainsSubstring("keep"));
    CHECK_THAT(refusal({{"url", "x"}, {"max_backlog", "-1"}}), ContainsSubstring("max_backlog"));
    const std::string url = "postgresql://nobody:s3cret@127.0.0.1:" + std::to_string(shared_server().port()) + "/x";
    const auto transport = test::open_transport("postgres", on, {{"url", url}});
    const auto answer = sync_wait(on, transport->prepare());
    REQUIRE(!answer);
    CHECK_THAT(answer.error().message, !ContainsSubstring("s3cret"));
}

TEST_CASE("events on postgres: what is settled is in nobody's way") {
    NEEDS_POSTGRES();
    event_desk d;
    d.subscribe();
    d.add("old", "k");
    CHECK(d.settle(d.receive_one()) == write_answer::done);
    const std::string space = "\"" + d.space() + "\".";
    shared_server().psql(
        "INSERT INTO " + space +
        "messages (published, version, line, id, topic, key, type, content_type, headers, body) "
        "SELECT 0, 1, 1, gen_random_uuid(), 't', 'k', '', '', '', '' FROM generate_series(1, 20000); "
        "INSERT INTO " +
        space + "deliveries (subscription, position, turn, line, key) SELECT s.id, m.position, 3, 1, 'k' FROM " +
        space + "messages m, " + space + "subscriptions s ON CONFLICT DO NOTHING");
    for (int i = 0; i < 3; ++i) d.add("new");
    // The second call in a session, when the server has read its own tables: a look at all that is settled would touch
    // hundreds of pages.
    const std::string receive = space + "receive('s', 1, 1000000, '', 1)";
    const auto explained = shared_server().psql("SELECT count(*) FROM " + receive +
                                                "; EXPLAIN (ANALYZE, BUFFERS, COSTS OFF) SELECT * FROM " + receive);
    const auto hit = explained.find("shared hit=");
    REQUIRE(hit != std::string::npos);
    CHECK(std::stoi(explained.substr(hit + 11)) < 60);
}
