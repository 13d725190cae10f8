#include "event_plugins/kit.hpp"
#include "event_plugins/redis_support.hpp"
#include "harness/redis_cluster.hpp"

using namespace holdfast;

TEST_CASE("events on redis: keeps the contract of transports") {
    NEEDS_REDIS();
    harness::redis_server server;
    CHECK(test::passed_cases("redis", {{"url", server.url()}}) > 20);
    CHECK(server.tell("DBSIZE") == ":0"); // the kit removes what it made
}

TEST_CASE("events on redis: keeps the contract of transports on a cluster") {
    NEEDS_REDIS();
    harness::redis_cluster cluster;
    CHECK(test::passed_cases("redis", {{"url", cluster.url()}}, 5) > 20);
    for (std::size_t i = 0; i < harness::redis_cluster::size; ++i) CHECK(cluster.node(i).tell("DBSIZE") == ":0");
}
