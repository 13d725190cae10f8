// Events that have a slot, but whose blocking handlers wait for a thread.
#include "catch.hpp"
#include "event_lab.hpp"
#include "faulty_events.hpp"

using namespace std::chrono_literals;
using namespace holdfast;
using namespace holdfast::test;

namespace {

// As a blocking handler is run when no thread of the pool is free for a while.
task<result<void>> after_a_wait(event_context& c, duration wait, duration work, int& begun) {
    c.handler_waits();
    co_await sleep_for(c.runtime(), wait);
    c.handler_begins();
    ++begun;
    co_await sleep_for(c.runtime(), work, c.stop_token());
    if (c.stop_token().stop_requested()) throw operation_cancelled();
    co_return result<void>{};
}

task<result<void>> without_room(event_context& c, int& refused, int times) {
    c.handler_waits();
    if (refused < times) {
        ++refused;
        throw failed({errc::overloaded, "the blocking pool's queue is full", std::nullopt});
    }
    c.handler_begins();
    co_return result<void>{};
}

} // namespace

TEST_CASE("a consumer that gets its thread while the worker stops does not begin, and its event goes back unburnt") {
    event_lab lab;
    int begun = 0;
    lab.consume([&](const envelope&, event_context& c, unit_of_work*) { return after_a_wait(c, 5s, 0s, begun); });
    lab.start();
    lab.publish("k");
    lab.on.advance(1s);
    lab.stop(30s);
    CHECK(begun == 0);
    CHECK(lab.counts().released == 1);
    const auto again = lab.await(lab.kept->receive("billing", 10, 1min, "other"));
    REQUIRE(again.size() == 1);
    CHECK(again[0].calls == 0);
    CHECK(again[0].crashes == 0);
}

TEST_CASE("a consumer whose lease was lost while it waited for a thread does not begin") {
    event_lab lab;
    faulty_transport faulty(*lab.kept);
    lab.over_transport = &faulty;
    bool cut = false;
    faulty.with.before = [&](std::string_view) {
        return cut ? std::optional(error{errc::unavailable, "away", std::nullopt}) : std::nullopt;
    };
    int begun = 0;
    lab.consume([&](const envelope&, event_context& c, unit_of_work*) { return after_a_wait(c, 1min, 0s, begun); });
    lab.start({.lease = 10s});
    lab.publish("k");
    lab.on.advance(1s);
    cut = true;
    lab.on.advance(30s);
    CHECK(lab.await(lab.kept->receive("billing", 10, 1h, "other")).size() == 1);
    cut = false;
    lab.on.advance(5min);
    CHECK(begun == 0);
    CHECK(lab.counts().lost == 1);
    lab.stop();
}

TEST_CASE("the time of a consumer does not run while it waits for a thread, and then it does") {
    event_lab lab;
    int begun = 0;
    duration work = 5s;
    lab.consume([&](const envelope&, event_context& c, unit_of_work*) { return after_a_wait(c, 1min, work, begun); },
                {.timeout = 10s});
    exception_policy rules;
    rules.default_().dead_letter();
    lab.consumers.on_error(error_scope::host, rules);
    lab.start();
    lab.publish("k");
    lab.on.advance(70s);
    CHECK(begun == 1);
    CHECK(lab.counts().handled == 1);

    work = 1h;
    lab.publish("k");
    lab.on.advance(69s);
    CHECK(begun == 2);
    CHECK(lab.dead().empty());
    lab.on.advance(2s);
    REQUIRE(lab.dead().size() == 1);
    CHECK(lab.dead()[0].error.type == "timed_out");
    lab.stop();
}

TEST_CASE("a full blocking pool puts an event off, and burns no call") {
    event_lab lab;
    int refused = 0;
    lab.consume([&](const envelope&, event_context& c, unit_of_work*) { return without_room(c, refused, 3); });
    exception_policy rules;
    rules.default_().dead_letter();
    lab.consumers.on_error(error_scope::host, rules);
    lab.start();
    lab.publish("k");
    lab.on.advance(500ms);
    CHECK(refused == 1);
    CHECK(lab.counts().released == 1);
    lab.on.advance(10s);
    CHECK(lab.counts().handled == 1);
    CHECK(lab.dead().empty());
    CHECK(lab.log.count("blocking_threads") == 1); // told once a minute
    lab.stop();
}

TEST_CASE("a timeout waits for no transport that hangs") {
    event_lab lab;
    faulty_transport faulty(*lab.kept);
    lab.over_transport = &faulty;
    faulty.with.on = &lab.on;
    bool hangs = false;
    faulty.with.before = [&](std::string_view call) -> std::optional<error> {
        hangs = call == "renew";
        return std::nullopt;
    };
    faulty.with.lag = [&] { return hangs ? duration(1h) : duration::zero(); };
    int called_off = 0;
    const auto work = [](event_context& c, int& count) -> task<result<void>> {
        co_await sleep_for(c.runtime(), 10min, c.stop_token());
        if (c.stop_token().stop_requested()) ++count;
        co_return result<void>{};
    };
    lab.consume([&](const envelope&, event_context& c, unit_of_work*) { return work(c, called_off); },
                {.timeout = 1min});
    lab.start({.lease = 2min, .heartbeat = 10s});
    lab.publish("k");
    lab.on.advance(61s);
    CHECK(called_off == 1);
    lab.stop();
}
