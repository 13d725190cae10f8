// From one version of the schema to the next: under load, killed midway, and by an older program. The steps are the test's.
#include <atomic>
#include <thread>
#include <vector>

#include <pqxx/pqxx>

#include <holdfast/postgres/schema.hpp>

#include "stores/postgres_support.hpp"

using namespace holdfast;
using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr std::string_view make_things = "CREATE TABLE {ns}.things (name text NOT NULL)";
// Slow, so that others come meanwhile. Who is called 'kill me' ends the session in the middle.
constexpr std::string_view add_size = "ALTER TABLE {ns}.things ADD COLUMN size integer; SELECT pg_sleep(0.2); "
                                      "SELECT pg_terminate_backend(pg_backend_pid()) FROM {ns}.things "
                                      "WHERE name = 'kill me'";
constexpr std::string_view fill_size = "UPDATE {ns}.things SET size = length(name)";

postgres::schema first_version() {
    return {"meta", {{make_things}}};
}
postgres::schema second_version() {
    return {"meta", {{make_things}, {add_size, fill_size}}};
}

struct place {
    place() {
        how.url = server.url();
        how.connections = 1;
        how.name = test::postgres::fresh_namespace();
    }
    ~place() { server.psql("DROP SCHEMA IF EXISTS " + how.name + " CASCADE"); }

    // With connections of its own, as every process has.
    result<postgres::durability> prepare(postgres::schema what) {
        postgres::pool own(how, on);
        return sync_wait(on, postgres::prepare(own, std::move(what)));
    }
    std::string sql(const std::string& before, const std::string& after = "") {
        return server.psql(before + how.name + after);
    }
    std::string version() { return sql("SELECT max(version) FROM ", ".meta"); }
    std::string columns() {
        return server.psql("SELECT count(*) FROM information_schema.columns WHERE table_schema = '" + how.name +
                           "' AND table_name = 'things'");
    }

    harness::postgres_server& server = test::postgres::shared_server();
    asio_runtime on{asio_options{}};
    postgres::options how;
};

} // namespace

TEST_CASE("postgres: many migrate at once while others read and write, and nothing of theirs is lost") {
    NEEDS_POSTGRES();
    place at;
    REQUIRE(at.prepare(first_version()));
    std::atomic<bool> stop = false;
    std::atomic<int> written = 0;
    std::atomic<int> trouble = 0;
    std::vector<std::jthread> users;
    for (int i = 0; i < 2; ++i)
        users.emplace_back([&] {
            try {
                pqxx::connection theirs(at.server.url());
                pqxx::nontransaction alone(theirs);
                while (!stop) { // as the old program does
                    alone.exec("INSERT INTO " + at.how.name + ".things (name) VALUES ('abc')");
                    ++written;
                    alone.exec("SELECT name FROM " + at.how.name + ".things LIMIT 1");
                }
            } catch (const std::exception&) {
                ++trouble;
            }
        });
    while (written < 100 && trouble == 0) std::this_thread::sleep_for(1ms);
    {
        std::vector<std::jthread> all;
        for (int i = 0; i < 4; ++i)
            all.emplace_back([&] {
                if (!at.prepare(second_version())) ++trouble;
            });
    }
    const int migrated = written;
    while (written < migrated + 100 && trouble == 0) std::this_thread::sleep_for(1ms); // the old program works on
    stop = true;
    users.clear();
    CHECK(trouble == 0);
    CHECK(at.sql("SELECT string_agg(version::text, ',' ORDER BY version) FROM ", ".meta") ==
          "1,2"); // each was done once
    CHECK(at.sql("SELECT count(*) FROM ", ".things") == std::to_string(written));
    CHECK(std::stoi(at.sql("SELECT count(*) FROM ", ".things WHERE size = 3")) >= 100);
    REQUIRE(at.prepare(second_version())); // twice
    CHECK(at.version() == "2");
}

TEST_CASE("postgres: a migration killed in the middle of a step leaves the version before, and the next one does it") {
    NEEDS_POSTGRES();
    place at;
    REQUIRE(at.prepare(first_version()));
    at.sql("INSERT INTO ", ".things VALUES ('abc'), ('kill me')");
    const auto killed = at.prepare(second_version());
    REQUIRE(!killed);
    CHECK(killed.error().code == errc::unavailable);
    CHECK(at.version() == "1");
    CHECK(at.columns() == "1");
    REQUIRE(at.prepare(first_version())); // the old program works on
    at.sql("DELETE FROM ", ".things WHERE name = 'kill me'");
    REQUIRE(at.prepare(second_version()));
    CHECK(at.version() == "2");
    CHECK(at.sql("SELECT sum(size) FROM ", ".things") == "3");
}

TEST_CASE("postgres: a server that is killed during a migration has the version before, and the next one does it") {
    NEEDS_POSTGRES();
    harness::postgres_server own({.fsync = true});
    place at;
    at.how.url = own.url();
    REQUIRE(at.prepare(first_version()));
    own.psql("INSERT INTO " + at.how.name + ".things VALUES ('abc')");
    std::jthread migrating([&] { (void)at.prepare(second_version()); });
    while (own.psql("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'") == "0") {
    }
    own.kill();
    migrating.join(); // whether it found the server again or not
    own.start();
    REQUIRE(at.prepare(second_version()));
    CHECK(own.psql("SELECT string_agg(version::text, ',' ORDER BY version) FROM " + at.how.name + ".meta") == "1,2");
    CHECK(own.psql("SELECT sum(size) FROM " + at.how.name + ".things") == "3");
}

TEST_CASE("postgres: a program that knows an older schema is refused by a newer one, and changes nothing") {
    NEEDS_POSTGRES();
    place at;
    REQUIRE(at.prepare(second_version()));
    const auto refused = at.prepare(first_version());
    REQUIRE(!refused);
    CHECK(refused.error().code == errc::configuration);
    CHECK_THAT(refused.error().message, ContainsSubstring("version 2") && ContainsSubstring("up to 1"));
    CHECK(at.version() == "2");
    CHECK(at.columns() == "2");
}
