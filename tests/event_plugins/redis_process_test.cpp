#include "event_plugins/process_cases.hpp"
#include "event_plugins/redis_support.hpp"

using namespace holdfast;
using test::redis::event_desk;

TEST_CASE("events on redis: what a killed process had is given to others") {
    NEEDS_REDIS();
    harness::redis_server server;
    event_desk d(server.url());
    test::check_killed_holder(d);
}

TEST_CASE("events on redis: two processes share a subscription, one is killed again and again") {
    NEEDS_REDIS();
    harness::redis_server server;
    event_desk d(server.url());
    test::check_two_pumps(d, 400);
}
