// Stopping, leases, and a transport that is away.
#include "catch.hpp"
#include "event_lab.hpp"
#include "faulty_events.hpp"

using namespace std::chrono_literals;
using namespace holdfast;
using namespace holdfast::test;

namespace {

std::optional<error> away() {
    return error{errc::unavailable, "away", std::nullopt};
}

} // namespace

TEST_CASE("a graceful stop waits for what runs and gives back what has not begun") {
    event_lab lab;
    lab.consume([](const envelope&, event_context& c, unit_of_work*) { return slept(c, 2s); }, {.concurrency = 2});
    lab.start();
    for (int i = 0; i < 10; ++i) lab.publish(i % 2 == 0 ? "k" : "");
    lab.on.advance(1s);
    lab.stop(10s);
    CHECK(lab.counts().handled == 2);
    CHECK(lab.view().leased == 0);
    CHECK(lab.view().waiting == 8);
    for (const delivery& each : lab.await(lab.kept->receive("billing", 10, 1min, "other"))) {
        CHECK(each.crashes == 0);
        CHECK(each.redeliveries == 0);
    }
}

TEST_CASE("when the grace is over tokens fire, and what was interrupted goes back unburnt") {
    event_lab lab;
    lab.consume([](const envelope&, event_context& c, unit_of_work*) { return slept(c, 1h); });
    lab.start();
    lab.publish("k");
    lab.on.advance(1s);
    const auto began = lab.on.now();
    lab.stop(5s);
    CHECK(lab.on.now() - began < 6s);
    CHECK(lab.counts().released == 1);
    CHECK(lab.await(lab.kept->receive("billing", 1, 1min, "other")).at(0).calls == 0);
}

TEST_CASE("a wait for a retry does not hold a stop up") {
    event_lab lab;
    lab.consume([](auto&&...) -> task<result<void>> { throw std::runtime_error("no"); });
    exception_policy rules;
    rules.default_().retry({30s});
    lab.consumers.on_error(error_scope::host, rules);
    lab.start();
    lab.publish("k");
    lab.on.advance(1s);
    const auto began = lab.on.now();
    lab.stop();
    CHECK(lab.on.now() - began < 1s);
    CHECK(lab.counts().released == 1);
}

TEST_CASE("stop_now cuts the grace short, and a consumer that ignores its token is told of") {
    event_lab lab;
    lab.consume([](const envelope&, event_context& c, unit_of_work*) { return slept_deaf(c, 1h); });
    auto& worker = lab.start({.last_wait = 2s});
    lab.publish("k");
    lab.on.advance(1s);
    const auto began = lab.on.now();
    worker.stop_now();
    lab.stop(10min);
    CHECK(lab.on.now() - began < 5s);
    CHECK(lab.log.count("ignored the request to stop") == 1);
    CHECK(worker.snapshot().running.size() == 1);
    lab.on.advance(2h);
    CHECK(worker.snapshot().running.empty());
}

TEST_CASE("leases are renewed for as long as a consumer works") {
    event_lab lab;
    lab.consume([](const envelope&, event_context& c, unit_of_work*) { return slept(c, 10min); });
    lab.start({.lease = 10s});
    lab.publish("k");
    lab.publish("k");
    lab.on.advance(5min);
    CHECK(lab.await(lab.kept->receive("billing", 10, 1min, "other")).empty());
    lab.on.advance(16min);
    CHECK(lab.counts().handled == 2);
    CHECK(lab.counts().lost == 0);
}

TEST_CASE("a lease that is lost fires the token, and nothing is written") {
    event_lab lab;
    faulty_transport faulty(*lab.kept);
    lab.over_transport = &faulty;
    bool cut = false;
    faulty.with.before = [&](std::string_view) { return cut ? away() : std::nullopt; };
    bool told = false;
    const auto wait = [](event_context& c, bool& fired) -> task<result<void>> {
        co_await sleep_for(c.runtime(), 10min, c.stop_token());
        fired = c.stop_token().stop_requested();
        co_return result<void>{};
    };
    lab.consume([&](const envelope&, event_context& c, unit_of_work*) { return wait(c, told); });
    lab.start({.lease = 10s});
    lab.publish("k");
    lab.publish("k");
    lab.on.advance(1s);
    cut = true;
    lab.on.advance(30s);
    const auto taken = lab.await(lab.kept->receive("billing", 10, 1h, "other"));
    CHECK(taken.size() == 2);
    cut = false;
    lab.on.advance(10s);
    CHECK(told);
    CHECK(lab.counts().lost == 2);
    CHECK(lab.counts().handled == 0);
    CHECK(lab.view().leased == 2);
    lab.stop();
}

TEST_CASE("a worker that takes over from itself tells the run that was too slow, and drops what that one says") {
    event_lab lab;
    faulty_transport faulty(*lab.kept);
    lab.over_transport = &faulty;
    faulty.with.before = [&](std::string_view call) { return call == "renew" ? away() : std::nullopt; };
    int calls = 0;
    lab.consume(
        [&](const envelope&, event_context& c, unit_of_work*) { return ++calls == 1 ? slept(c, 1h) : ended_well(); });
    lab.start({.lease = 10s});
    lab.publish("k");
    lab.on.advance(1min);
    CHECK(calls == 2);
    CHECK(lab.counts().lost == 1);
    CHECK(lab.counts().handled == 1);
    CHECK(lab.view().acknowledged == 1);
    lab.stop();
}

TEST_CASE("a transport that is away is waited for and told of once") {
    event_lab lab;
    faulty_transport faulty(*lab.kept);
    lab.over_transport = &faulty;
    bool cut = true;
    faulty.with.before = [&](std::string_view) { return cut ? away() : std::nullopt; };
    int calls = 0;
    lab.consume([&](const envelope&, event_context&, unit_of_work*) {
        ++calls;
        return ended_well();
    });
    lab.start();
    lab.on.advance(1min);
    cut = false;
    lab.on.advance(10s);
    lab.publish("k");
    lab.on.advance(2s);
    CHECK(calls == 1);
    cut = true;
    lab.on.advance(1min);
    cut = false;
    lab.on.advance(1min);
    CHECK(lab.log.count("and keeps trying") == 2);
    CHECK(lab.log.count("the transport is back") == 2);
    lab.stop();
}

TEST_CASE("a settlement whose answer got lost is told again, and counted once") {
    event_lab lab;
    faulty_transport faulty(*lab.kept);
    lab.over_transport = &faulty;
    faulty.with.after = [n = 2](std::string_view call) mutable -> std::optional<error> {
        if (call != "settle" || n-- <= 0) return std::nullopt;
        return error{errc::unknown_outcome, "cut", std::nullopt};
    };
    int calls = 0;
    lab.consume([&](const envelope&, event_context&, unit_of_work*) {
        ++calls;
        return ended_well();
    });
    lab.start();
    lab.publish("k");
    lab.on.advance(10s);
    CHECK(calls == 1);
    CHECK(lab.counts().handled == 1);
    CHECK(lab.counts().lost == 0);
    CHECK(lab.view().acknowledged == 1);
    lab.stop();
}

TEST_CASE("what is old is forgotten now and then") {
    event_lab lab;
    lab.kept = events_memory::make_transport({.keep = 1min}, &lab.on);
    lab.consume([](auto&&...) { return ended_well(); });
    lab.start({.sweep = 10s});
    lab.publish("k");
    lab.on.advance(2min);
    CHECK(lab.await(lab.kept->replay("billing", {})) == 0);
}
