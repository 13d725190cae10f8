// The store kit on the plugin file and a real server.
#include <holdfast/store_conformance.hpp>

#include "stores/redis_support.hpp"

using namespace holdfast;

TEST_CASE("redis: keeps the contract of stores") {
    NEEDS_REDIS();
    harness::redis_server server;
    asio_runtime on{asio_options{}};
    std::string space;
    const auto open = [&] { return test::redis::open(on, {{"url", server.url()}, {"namespace", space}}); };
    const conformance::store_bed bed{[&] {
                                         space = test::redis::fresh_namespace();
                                         return open();
                                     },
                                     open, &on};
    const auto counted = conformance::run_store_suite(bed, {}, [](const conformance::case_result& ended) {
        INFO(ended.title() << ": " << ended.message);
        CHECK(ended.state != conformance::case_result::failed);
    });
    CHECK(counted.passed > 0);
    CHECK(server.tell("DBSIZE") == ":0"); // the kit removes what it made
}
