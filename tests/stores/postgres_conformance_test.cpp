// The store kit on the plugin file and a real server.
#include <algorithm>

#include <holdfast/store_conformance.hpp>

#include "catch.hpp"
#include "harness/pgbouncer.hpp"
#include "stores/kit.hpp"
#include "stores/postgres_support.hpp"

using namespace holdfast;

namespace {

// Every case of these groups; none may fail, or be skipped but for what is not offered.
void run_kit(std::vector<std::string> groups, test::postgres::text_settings with = {}, int rounds = 20) {
    asio_runtime on{asio_options{}};
    std::string space;
    if (std::ranges::find(with, "url", &std::pair<std::string, std::string>::first) == with.end())
        with.emplace_back("url", test::postgres::shared_server().url());
    const auto open = [&] {
        auto settings = with;
        settings.emplace_back("namespace", space);
        return test::postgres::open(on, settings);
    };
    const conformance::store_bed bed{[&] {
                                         space = test::postgres::fresh_namespace();
                                         return open();
                                     },
                                     open, &on, [&] { return test::rival_process("postgres", with, space); }};
    for (const std::string& group : groups) {
        const conformance::store_options how{.filter = group + "/", .rounds = rounds, .seed = test::kit_seed()};
        const auto counted = conformance::run_store_suite(bed, how, [](const conformance::case_result& ended) {
            INFO(ended.title() << ": " << ended.message);
            CHECK((ended.state == conformance::case_result::passed || ended.message == conformance::not_offered));
        });
        CHECK(counted.passed > 0);
    }
    // The kit removes what it made.
    CHECK(test::postgres::shared_server().psql("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'hf\\_%'") == "0");
}

} // namespace

TEST_CASE("postgres: keeps the contract of job stores") {
    NEEDS_POSTGRES();
    run_kit({"jobs"});
}

TEST_CASE("postgres: keeps the contract of stores, units of work, locks, idempotency and outbox") {
    NEEDS_POSTGRES();
    run_kit({"store", "units", "locks", "idempotency", "outbox"});
}

TEST_CASE("postgres: keeps its contracts as if behind a proxy that pools transactions") {
    NEEDS_POSTGRES();
    run_kit({"jobs", "units"}, {{"pooler", "true"}, {"connections", "3"}}, 2); // there are no hints
}

TEST_CASE("postgres: keeps its contracts behind a PgBouncer that pools transactions, without being told of it") {
    NEEDS_POSTGRES();
    if (!harness::pgbouncer_binary()) SKIP("PgBouncer is not installed");
    const harness::pgbouncer proxy(test::postgres::shared_server(), {.sessions = 8, .round_robin = true});
    run_kit({"jobs", "units"}, {{"url", proxy.url()}, {"connections", "3"}}, 2);
}

TEST_CASE("postgres: holdfast verify proves the plugin, where the clock is right and where it is wrong by an hour") {
    NEEDS_POSTGRES();
    const test::text_settings with = {{"url", test::postgres::shared_server().url()}};
    for (const std::string filter : {"store/", "units/", "locks/", "idempotency/", "outbox/"}) {
        const auto done = test::verify("postgres", with, {"--filter", filter});
        INFO(done.output);
        CHECK(done.code == 0);
        CHECK_THAT(done.output, Catch::Matchers::ContainsSubstring("\nclock +1h "));
        CHECK_THAT(done.output, Catch::Matchers::ContainsSubstring("\nclock -1h "));
        CHECK_THAT(done.output, !Catch::Matchers::ContainsSubstring("skipped"));
    }
}

TEST_CASE("postgres: a clock that is an hour ahead changes nothing for jobs") {
    NEEDS_POSTGRES();
    const auto done = test::verify("postgres", {{"url", test::postgres::shared_server().url()}},
                                   {"--filter", "jobs/", "--clock", "+1h"});
    INFO(done.output);
    CHECK(done.code == 0);
}

TEST_CASE("postgres: a clock that is an hour behind changes nothing for jobs") {
    NEEDS_POSTGRES();
    const auto done = test::verify("postgres", {{"url", test::postgres::shared_server().url()}},
                                   {"--filter", "jobs/", "--clock", "-1h"});
    INFO(done.output);
    CHECK(done.code == 0);
}
