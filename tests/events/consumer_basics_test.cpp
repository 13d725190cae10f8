// The worker: what a consumer sees, and what becomes of its messages.
#include <map>

#include "catch.hpp"
#include "event_lab.hpp"

using namespace std::chrono_literals;
using namespace holdfast;
using namespace holdfast::test;

TEST_CASE("a consumer gets each event once, with what is known about it, and it is acknowledged") {
    event_lab lab;
    std::vector<identifier> seen;
    lab.consume([&](const envelope& e, event_context& c, unit_of_work* unit) {
        CHECK(unit == nullptr);
        CHECK(c.event_id() == e.id);
        CHECK(c.topic() == "orders");
        CHECK(c.consumer() == "billing");
        CHECK(c.attempt() == 1);
        CHECK(c.generation() == 1);
        CHECK(c.correlation_id() == to_text(e.id));
        seen.push_back(e.id);
        return ended_well();
    });
    lab.start();
    std::vector<identifier> ids;
    for (int i = 0; i < 50; ++i) ids.push_back(lab.publish(i % 2 == 0 ? "" : "k"));
    lab.on.advance(1s);
    CHECK(seen.size() == 50);
    CHECK(lab.view().acknowledged == 50);
    CHECK(lab.counts().handled == 50);
    CHECK(lab.counts().lost == 0);
    CHECK(lab.in_inbox(ids[7]));
}

TEST_CASE("events of one key run one after the other, others at the same time, up to the consumer's concurrency") {
    event_lab lab;
    std::map<std::string, int> running;
    std::map<std::string, std::vector<identifier>> seen;
    int all = 0;
    int most = 0;
    bool overlapped = false;
    const auto work = [](event_context& c, std::map<std::string, int>& of, int& total) -> task<result<void>> {
        const std::string key(c.key());
        co_await sleep_for(c.runtime(), 1s);
        --of[key];
        --total;
        co_return result<void>{};
    };
    lab.consume(
        [&](const envelope& e, event_context& c, unit_of_work*) {
            if (++running[e.key] > 1 && !e.key.empty()) overlapped = true;
            most = std::max(most, ++all);
            seen[e.key].push_back(e.id);
            return work(c, running, all);
        },
        {.concurrency = 4});
    lab.start();
    std::map<std::string, std::vector<identifier>> sent;
    for (int i = 0; i < 40; ++i) {
        const std::string key(1, static_cast<char>('a' + i % 8));
        sent[key].push_back(lab.publish(key));
    }
    lab.on.advance(30s);
    CHECK(seen == sent);
    CHECK_FALSE(overlapped);
    CHECK(most == 4);
    CHECK(lab.counts().handled == 40);
}

TEST_CASE("a slow key never slows another") {
    event_lab lab;
    int quick = 0;
    lab.consume(
        [&](const envelope& e, event_context& c, unit_of_work*) {
            if (e.key == "slow") return slept(c, 1h);
            ++quick;
            return ended_well();
        },
        {.concurrency = 2});
    lab.start();
    for (int i = 0; i < 100; ++i) lab.publish("slow");
    for (int i = 0; i < 300; ++i) lab.publish("k" + std::to_string(i % 10));
    lab.on.advance(10s);
    CHECK(quick == 300);
    lab.stop(0s);
    CHECK(lab.view().waiting == 100);
}

TEST_CASE("what a consumer has had already is dropped, but for a replay") {
    event_lab lab;
    int calls = 0;
    lab.consume([&](const envelope&, event_context&, unit_of_work*) {
        ++calls;
        return ended_well();
    });
    lab.start();
    const auto id = lab.publish("k");
    lab.on.advance(1s);
    CHECK(calls == 1);
    // The transport has forgotten it, and a relay sends it again.
    lab.await(lab.kept->unsubscribe("billing"));
    lab.await(lab.kept->subscribe({"billing", {"orders"}, true}));
    lab.on.advance(5s);
    CHECK(calls == 1);
    CHECK(lab.counts().duplicates == 1);
    CHECK(lab.view().acknowledged == 1);
    CHECK(lab.await(lab.kept->replay("billing", {})) == 1);
    lab.on.advance(5s);
    CHECK(calls == 2);
    CHECK(lab.in_inbox(id, 2));
}

TEST_CASE("without an inbox a consumer sees what comes twice, and the worker says so at its start") {
    event_lab lab;
    lab.has_inbox = false;
    int calls = 0;
    lab.consume([&](const envelope&, event_context&, unit_of_work*) {
        ++calls;
        return ended_well();
    });
    lab.start();
    CHECK(lab.log.count("it has no inbox") == 1);
    lab.publish("k");
    lab.on.advance(1s);
    lab.await(lab.kept->unsubscribe("billing"));
    lab.await(lab.kept->subscribe({"billing", {"orders"}, true}));
    lab.on.advance(5s);
    CHECK(calls == 2);
}

TEST_CASE("an event that nobody here consumes is put off unburnt, and complained of once") {
    event_lab lab;
    int calls = 0;
    lab.consume([&](const envelope&, event_context&, unit_of_work*) {
        ++calls;
        return ended_well();
    });
    lab.await(lab.kept->subscribe({"billing", {"orders", "parcels"}, false}));
    lab.publish("k", "{}", "parcels");
    lab.publish("k");
    lab.publish("l");
    lab.start();
    lab.on.advance(10s);
    CHECK(calls == 1);
    CHECK(lab.log.count("nobody here consumes that event") == 1);
    CHECK(lab.view().waiting == 2);
    lab.on.advance(50s);
    CHECK(lab.counts().dead_lettered == 0);
    CHECK(lab.counts().released >= 2);
}

TEST_CASE("bytes that do not decode are a dead letter at once, and the next of the key goes on") {
    event_lab lab;
    lab.consume([&](const envelope& e, event_context&, unit_of_work*) -> task<result<void>> {
        if (e.what.body == "garbage") throw undecodable_event("it does not decode");
        return ended_well();
    });
    lab.start();
    const auto bad = lab.publish("k", "garbage");
    lab.publish("k");
    lab.on.advance(1s);
    REQUIRE(lab.dead().size() == 1);
    CHECK(lab.dead()[0].message.id == bad);
    CHECK(lab.dead()[0].error.type == "holdfast::undecodable_event");
    CHECK(lab.dead()[0].calls == 1);
    CHECK(lab.counts().handled == 1);
}

TEST_CASE("an event that keeps killing its processes is a dead letter with the crash as its reason") {
    event_lab lab;
    int calls = 0;
    lab.consume(
        [&](const envelope&, event_context&, unit_of_work*) {
            ++calls;
            return ended_well();
        },
        {.max_crashes = 2});
    lab.await(lab.kept->subscribe({"billing", {"orders"}, false}));
    lab.publish("k");
    for (int i = 0; i < 3; ++i) {
        CHECK(lab.await(lab.kept->receive("billing", 1, 1s, "dies")).size() == 1);
        lab.on.advance(1s);
    }
    lab.start();
    lab.on.advance(1s);
    CHECK(calls == 0);
    REQUIRE(lab.dead().size() == 1);
    CHECK(lab.dead()[0].error.type == "crash");
    CHECK(lab.dead()[0].crashes == 3);
}

TEST_CASE("a worker that cannot do what its consumers ask for is not started") {
    event_lab lab;
    SECTION("a policy that nobody knows") {
        lab.consume([](auto&&...) { return ended_well(); }, {.policy = "nobody"});
        CHECK_THROWS_AS(lab.start(), failed);
    }
    SECTION("a unit of work without a store") {
        lab.has_inbox = false;
        lab.consume_in_unit([](auto&&...) { return ended_well(); });
        try {
            lab.start();
            FAIL("it was started");
        } catch (const failed& e) {
            CHECK(e.code() == errc::configuration);
        }
    }
    SECTION("options that make no sense") {
        CHECK_THROWS_AS(lab.start({.lease = 0s}), failed);
        CHECK_THROWS_AS(lab.start({.lease = 10s, .heartbeat = 10s}), failed);
        CHECK_THROWS_AS(lab.start({.batch = 0}), failed);
    }
    lab.worker.reset();
}
