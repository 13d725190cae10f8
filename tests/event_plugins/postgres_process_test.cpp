#include "event_plugins/postgres_support.hpp"
#include "event_plugins/process_cases.hpp"

using namespace holdfast;
using test::postgres::event_desk;

TEST_CASE("events on postgres: what a killed process had is given to others") {
    NEEDS_POSTGRES();
    event_desk d;
    test::check_killed_holder(d);
}

TEST_CASE("events on postgres: two processes share a subscription, one is killed again and again") {
    NEEDS_POSTGRES();
    event_desk d({{"connections", "2"}});
    test::check_two_pumps(d, 400);
}
