// PostgreSQL as the store of a host.
#include "stores/host_support.hpp"
#include "stores/postgres_support.hpp"

using namespace holdfast;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("a host holds PostgreSQL to its promises by what the server says of itself") {
    NEEDS_POSTGRES();
    const std::string store = "[store]\nplugin = 'postgres'\nurl = '" + test::postgres::shared_server().url() +
                              "'\nnamespace = '" + test::fresh_namespace() + "'\n"; // a server without fsync
    CHECK(test::start_refusal(store + "[promises]\nwrites_survive = 'server_crash'\njoins_transactions = true\n")
              .empty());
    CHECK_THAT(
        test::start_refusal(store + "[promises]\nwrites_survive = 'power_loss'\n"),
        ContainsSubstring("which the store \"postgres\" of [store] cannot promise for jobs: survives server crash"));
}

TEST_CASE("a host whose PostgreSQL cannot be reached says so, without the password, and does not start") {
    const std::string refusal =
        test::start_refusal("[store]\nplugin = 'postgres'\nurl = 'postgresql://desk:s3cret@127.0.0.1:1/desk'\n");
    CHECK_THAT(refusal, ContainsSubstring("desk.toml:4: the store \"postgres\" of [store] did not get ready: "));
    CHECK_THAT(refusal, !ContainsSubstring("s3cret"));
}
