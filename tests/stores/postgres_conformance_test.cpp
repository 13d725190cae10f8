// The store kit on the plugin file and a real server.
#include <algorithm>

#include <holdfast/store_conformance.hpp>

#include "harness/pgbouncer.hpp"
#include "stores/postgres_support.hpp"

using namespace holdfast;

namespace {

// Every case of these groups.
void run_kit(std::vector<std::string> groups, test::postgres::text_settings with = {}, int rounds = 20,
             int skipped_jobs = 0) {
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
                                     open, &on};
    for (const std::string& group : groups) {
        const conformance::store_options how{.filter = group + "/", .rounds = rounds};
        const auto counted = conformance::run_store_suite(bed, how, [](const conformance::case_result& ended) {
            INFO(ended.title() << ": " << ended.message);
            CHECK(ended.state != conformance::case_result::failed);
        });
        CHECK(counted.passed > 0);
        CHECK(counted.skipped == (group == "jobs" ? skipped_jobs : 0));
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
    run_kit({"jobs", "units"}, {{"pooler", "true"}, {"connections", "3"}}, 2, 10); // there are no hints
}

TEST_CASE("postgres: keeps its contracts behind a PgBouncer that pools transactions, without being told of it") {
    NEEDS_POSTGRES();
    if (!harness::pgbouncer_binary()) SKIP("PgBouncer is not installed");
    const harness::pgbouncer proxy(test::postgres::shared_server(), {.sessions = 8, .round_robin = true});
    run_kit({"jobs", "units"}, {{"url", proxy.url()}, {"connections", "3"}}, 2, 10);
}
