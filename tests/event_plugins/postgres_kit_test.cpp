#include "event_plugins/kit.hpp"
#include "event_plugins/postgres_support.hpp"

using namespace holdfast;

TEST_CASE("events on postgres: keeps the contract of transports") {
    NEEDS_POSTGRES();
    auto& server = test::postgres::shared_server();
    CHECK(test::passed_cases("postgres", {{"url", server.url()}}, 5) > 20);
    // The kit removes what it made.
    CHECK(server.psql("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'hf\\_%'") == "0");
}
