// Redis as the store of a host.
#include "stores/host_support.hpp"
#include "stores/redis_support.hpp"

using namespace holdfast;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("a host holds Redis to its promises by what the server says of itself") {
    NEEDS_REDIS();
    const auto refusal = [](const std::string& fsync, const std::string& promise) {
        harness::redis_server server({.fsync = fsync});
        return test::start_refusal("[store]\nplugin = 'redis'\nurl = '" + server.url() + "'\n[promises]\n" + promise);
    };
    CHECK(refusal("everysec", "writes_survive = 'process_crash'\nshared = true\n").empty());
    CHECK(refusal("always", "writes_survive = 'power_loss'\n").empty());
    CHECK_THAT(refusal("everysec", "writes_survive = 'power_loss'\n"),
               ContainsSubstring("desk.toml:6: [promises] asks for writes_survive = \"power_loss\", which the store "
                                 "\"redis\" of [store] cannot promise for jobs: "));
    CHECK_THAT(refusal("always", "joins_transactions = true\n"), ContainsSubstring(" cannot promise for jobs: "));
}

TEST_CASE("a host whose Redis cannot be reached says so and does not start") {
    NEEDS_REDIS();
    std::string url;
    {
        harness::redis_server gone;
        url = gone.url();
    }
    CHECK_THAT(test::start_refusal("[store.locks]\nplugin = 'redis'\nurl = '" + url + "'\n"),
               ContainsSubstring("desk.toml:4: the store \"redis\" of [store.locks] did not get ready: "));
}
