// What becomes of an event whose consumer fails: tried again here, delivered again later, kept for people, dropped.
#include <map>

#include "catch.hpp"
#include "event_lab.hpp"

using namespace std::chrono_literals;
using namespace holdfast;
using namespace holdfast::test;

namespace {

struct flaky : std::runtime_error {
    using std::runtime_error::runtime_error;
};

exception_policy rules(auto declare) {
    exception_policy made;
    declare(made);
    return made;
}

} // namespace

TEST_CASE("retries run in the delivery, then it is delivered again later, then it is a dead letter") {
    event_lab lab;
    std::vector<std::pair<int, int>> calls; // attempt, redeliveries
    lab.consume([&](const envelope&, event_context& c, unit_of_work*) -> task<result<void>> {
        calls.emplace_back(c.attempt(), c.redeliveries());
        throw flaky("no");
    });
    lab.consumers.on_error("billing", rules([](auto& r) {
                               r.template on<flaky>().retry(2, 100ms, backoff::constant).then_redeliver({1min, 2min});
                           }));
    lab.start();
    const auto id = lab.publish("k");
    const auto behind = lab.publish("k");
    lab.on.advance(10s);
    CHECK(calls == std::vector<std::pair<int, int>>{{1, 0}, {2, 0}, {3, 0}});
    CHECK(lab.worker->snapshot().running.empty()); // the slot is free meanwhile
    CHECK(lab.view().leased == 0);
    lab.on.advance(1min);
    CHECK(calls.size() == 6);
    CHECK(calls.back() == std::pair(6, 1));
    lab.on.advance(2min);
    CHECK(calls.size() >= 9);
    CHECK(calls[8] == std::pair(9, 2));
    REQUIRE_FALSE(lab.dead().empty());
    const auto dead = lab.dead().back();
    CHECK(dead.message.id == id);
    CHECK(dead.redeliveries == 2);
    CHECK(dead.calls == 9);
    CHECK(dead.error.type.find("flaky") != std::string::npos);
    CHECK(dead.error.message == "no");
    lab.on.advance(1h);
    CHECK(lab.dead().size() == 2);
    CHECK(lab.dead()[0].message.id == behind);
    CHECK(lab.counts().redelivered == 4);
    CHECK(lab.counts().retried == 12);
    CHECK(lab.counts().dead_lettered == 2);
}

TEST_CASE("while one is put off, those behind it in its key wait and others do not") {
    event_lab lab;
    std::vector<std::string> seen;
    bool fails = true;
    lab.consume([&](const envelope& e, event_context&, unit_of_work*) -> task<result<void>> {
        if (e.what.body == "1" && fails) throw flaky("no");
        seen.push_back(e.key + e.what.body);
        return ended_well();
    });
    lab.consumers.on_error(error_scope::bus, rules([](auto& r) { r.default_().redeliver({10min}); }));
    lab.start();
    for (const std::string body : {"1", "2", "3"}) lab.publish("k", body);
    lab.publish("l", "2");
    lab.on.advance(5min);
    CHECK(seen == std::vector<std::string>{"l2"});
    fails = false;
    lab.on.advance(10min);
    CHECK(seen == std::vector<std::string>{"l2", "k1", "k2", "k3"});
    CHECK(lab.counts().redelivered == 1);
    CHECK(lab.counts().handled == 4);
}

TEST_CASE("without any rule the standard ones hold: 3 retries, then 5, 15 and 30 minutes") {
    event_lab lab;
    int calls = 0;
    const auto not_now = []() -> task<result<void>> { co_return fail(errc::unavailable, "not now"); };
    lab.consume([&](const envelope&, event_context&, unit_of_work*) {
        ++calls;
        return not_now();
    });
    lab.start();
    lab.publish();
    lab.on.advance(1min);
    CHECK(calls == 4);
    lab.on.advance(2h);
    CHECK(calls == 16);
    REQUIRE(lab.dead().size() == 1);
    CHECK(lab.dead()[0].error.type == "unavailable");
    CHECK(lab.dead()[0].calls == 16);
}

TEST_CASE("scopes: the consumer's own rules replace the others, unless they inherit") {
    event_lab lab;
    const auto failing = [](auto&&...) -> task<result<void>> { throw flaky("no"); };
    lab.consume(failing, {}, "own");
    lab.consume(failing, {}, "inherits");
    lab.consume(failing, {}, "nothing");
    lab.consumers.on_error(error_scope::host, rules([](auto& r) { r.default_().discard(); }));
    lab.consumers.on_error("own", rules([](auto& r) { r.template on<std::logic_error>().retry(); }));
    lab.consumers.on_error("inherits", rules([](auto& r) {
                               r.template on<std::logic_error>().retry();
                               r.inherit();
                           }));
    lab.start();
    lab.publish();
    lab.on.advance(1min);
    CHECK(lab.counts(0).dead_lettered == 1);
    CHECK(lab.counts(1).discarded == 1);
    CHECK(lab.counts(2).discarded == 1);
    CHECK(lab.view("inherits").discarded == 1);
    CHECK(lab.log.count("is discarded") == 2);
}

TEST_CASE("the total of attempts stops retries times redeliveries") {
    event_lab lab;
    int calls = 0;
    lab.consume([&](auto&&...) -> task<result<void>> {
        ++calls;
        throw flaky("no");
    });
    lab.consumers.on_error(error_scope::host, rules([](auto& r) {
                               r.default_().retry(3, 1ms).then_redeliver(10, 1s);
                               r.max_total_attempts(10);
                           }));
    lab.start();
    lab.publish();
    lab.on.advance(24h);
    CHECK(calls == 10);
    CHECK(lab.dead().size() == 1);
}

TEST_CASE("a call that is out of time is told so, and judged as a timeout") {
    event_lab lab;
    int calls = 0;
    lab.consume(
        [&](const envelope&, event_context& c, unit_of_work*) { return ++calls == 1 ? slept(c, 1h) : ended_well(); },
        {.timeout = 5s});
    lab.consumers.on_error(error_scope::host, rules([](auto& r) { r.on(errc::timed_out).redeliver({1min}); }));
    lab.start();
    lab.publish();
    lab.on.advance(10s);
    CHECK(calls == 1);
    CHECK(lab.counts().redelivered == 1);
    lab.on.advance(1min);
    CHECK(lab.counts().handled == 1);
}

TEST_CASE("every call runs under the consumer's policy") {
    event_lab lab;
    static constexpr auto again = policy({.name = "again", .retry = {.max_attempts = 2, .delay = 1s, .jitter = false}});
    lab.made.add(again);
    std::vector<int> attempts;
    lab.consume(
        [&](const envelope&, event_context& c, unit_of_work*) -> task<result<void>> {
            attempts.push_back(c.attempt());
            if (attempts.size() < 3) throw flaky("no");
            return ended_well();
        },
        {.policy = "again"});
    lab.start();
    lab.publish();
    lab.on.advance(10s);
    CHECK(attempts == std::vector{1, 2, 3});
    CHECK(lab.counts().handled == 1);
    CHECK(lab.counts().retried == 0);
}

TEST_CASE("throw 42 is a dead letter like any other") {
    event_lab lab;
    lab.consume([](auto&&...) -> task<result<void>> { throw 42; });
    lab.consumers.on_error(error_scope::host, rules([](auto& r) { r.default_().dead_letter(); }));
    lab.start();
    lab.publish();
    lab.on.advance(1s);
    REQUIRE(lab.dead().size() == 1);
    CHECK(lab.dead()[0].error.type == "int");
}

TEST_CASE("a dead letter that is sent again runs again, in its place, although the inbox knows its id") {
    event_lab lab;
    bool fails = true;
    std::vector<int> generations;
    lab.consume([&](const envelope&, event_context& c, unit_of_work*) -> task<result<void>> {
        generations.push_back(c.generation());
        if (fails) throw flaky("no");
        return ended_well();
    });
    lab.consumers.on_error(error_scope::host, rules([](auto& r) { r.default_().dead_letter(); }));
    lab.start();
    const auto id = lab.publish("k");
    lab.on.advance(1s);
    fails = false;
    CHECK(lab.await(lab.kept->send_again("billing", {id})) == 1);
    lab.on.advance(1s);
    CHECK(generations == std::vector{1, 2});
    CHECK(lab.counts().handled == 1);
}
