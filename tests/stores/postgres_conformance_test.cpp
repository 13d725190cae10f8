// The store kit on the plugin file and a real server.
#include <holdfast/store_conformance.hpp>

#include "stores/postgres_support.hpp"

using namespace holdfast;

namespace {

conformance::summary run_kit(test::postgres::text_settings with) {
    asio_runtime on{asio_options{}};
    std::string space;
    with.emplace_back("url", test::postgres::shared_server().url());
    const auto open = [&] {
        auto settings = with;
        settings.emplace_back("namespace", space);
        return test::postgres::open(on, settings);
    };
    const conformance::store_bed bed{
        [&] {
            space = test::postgres::fresh_namespace();
            return open();
        },
        open, &on};
    return conformance::run_store_suite(bed, {}, [](const conformance::case_result& ended) {
        INFO(ended.title() << ": " << ended.message);
        CHECK(ended.state != conformance::case_result::failed);
    });
}

} // namespace

TEST_CASE("postgres: keeps the contract of stores") {
    NEEDS_POSTGRES();
    const auto counted = run_kit({});
    CHECK(counted.passed > 0);
    CHECK(counted.skipped == 0);
    // The kit removes what it made.
    CHECK(test::postgres::shared_server().psql("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'hf\\_%'") == "0");
}

TEST_CASE("postgres: keeps the contract of stores as if behind a proxy that pools transactions") {
    NEEDS_POSTGRES();
    const auto counted = run_kit({{"pooler", "true"}, {"connections", "3"}});
    CHECK(counted.failed == 0);
}
