// Which commits carry a NOTIFY of their own, on times that the test makes up.
#include "catch.hpp"

#include <holdfast/postgres/notify_turns.hpp>

using namespace holdfast::postgres;
using namespace std::chrono_literals;

namespace {

constexpr notify_turns::time at(std::chrono::milliseconds when) {
    return notify_turns::time{} + when;
}

} // namespace

TEST_CASE("postgres: a commit after a silence carries its own notification, the first one too") {
    notify_turns turns(1ms);
    CHECK(turns.begin(at(0ms)));
    turns.ended(at(1ms));
    CHECK_FALSE(turns.begin(at(1ms)));
    CHECK(turns.begin(at(2ms)));
}

TEST_CASE("postgres: while one commit carries a notification no other does, however long it takes") {
    notify_turns turns(1ms);
    REQUIRE(turns.begin(at(0ms)));
    CHECK_FALSE(turns.begin(at(500ms)));
    turns.ended(at(600ms));
    CHECK_FALSE(turns.begin(at(1199ms))); // it took that long because others told something, perhaps
    CHECK(turns.begin(at(1200ms)));
}

TEST_CASE("postgres: in a stream of commits none carries a notification after the first") {
    notify_turns turns(2ms);
    REQUIRE(turns.begin(at(0ms)));
    turns.ended(at(1ms));
    for (auto now = 2ms; now < 100ms; now += 1ms) {
        CHECK_FALSE(turns.begin(at(now)));
        turns.told(at(now));
    }
    CHECK(turns.begin(at(101ms)));
}

TEST_CASE("postgres: a commit that was slow keeps few of those after it from carrying a notification") {
    notify_turns turns(1ms);
    REQUIRE(turns.begin(at(0ms)));
    turns.ended(at(40ms)); // the disk was busy
    int kept_from_it = 0;
    auto now = 44ms;
    for (; !turns.begin(at(now)); now += 4ms) {
        turns.told(at(now));
        ++kept_from_it;
    }
    CHECK(kept_from_it <= 4);
    turns.ended(at(now + 1ms));
    CHECK(turns.begin(at(now + 4ms)));
}
