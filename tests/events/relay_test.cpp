// The relay: everything that was committed, in order per key, whatever a message or a server does.
#include <algorithm>
#include <map>

#include "catch.hpp"
#include "event_lab.hpp"
#include "faulty_events.hpp"

using namespace std::chrono_literals;
using namespace holdfast;
using namespace holdfast::test;

namespace {

struct relay_lab : event_lab {
    relay_lab() : faulty(*kept) {
        over_transport = &faulty;
        await(kept->subscribe({"billing", {"orders"}, false}));
    }
    ~relay_lab() { stop(); }
    std::vector<envelope> received() {
        std::vector<envelope> all;
        for (delivery& each : await(kept->receive("billing", 10'000, 1h, "lab")))
            all.push_back(std::move(each.message));
        return all;
    }
    std::vector<identifier> received_ids() {
        std::vector<identifier> all;
        for (const envelope& each : received()) all.push_back(each.id);
        return all;
    }
    std::uint64_t unsent() { return await(held->outbox()->unsent()); }

    faulty_transport faulty;
};

std::optional<error> refused_with(errc code) {
    return error{code, "no", std::nullopt};
}

} // namespace

TEST_CASE("what was recorded is published, in order, without being told twice") {
    relay_lab lab;
    std::vector<identifier> ids;
    for (int i = 0; i < 1200; ++i) ids.push_back(lab.append(i % 2 == 0 ? "" : "k" + std::to_string(i % 7)));
    auto& relay = lab.relay();
    lab.on.advance(1s);
    CHECK(lab.received_ids() == ids);
    CHECK(lab.unsent() == 0);
    CHECK(relay.snapshot().published == 1200);
    CHECK(relay.snapshot().lost == 0);
}

TEST_CASE("a rollback publishes nothing, a commit does, and what is appended later is found by the next look") {
    relay_lab lab;
    lab.relay();
    auto rolled_back = lab.await(lab.held->begin());
    lab.await(lab.held->outbox()->append({lab.message("k")}, rolled_back.get()));
    auto committed = lab.await(lab.held->begin());
    const auto one = lab.message("k");
    lab.await(lab.held->outbox()->append({one}, committed.get()));
    lab.on.advance(1s);
    CHECK(lab.received().empty());
    lab.await(rolled_back->rollback());
    lab.await(committed->commit());
    lab.on.advance(60ms);
    CHECK(lab.received_ids() == std::vector{one.id});
}

TEST_CASE("a nudge is answered at once") {
    relay_lab lab;
    auto& relay = lab.relay({.poll = 1h});
    lab.on.advance(1s);
    events through(lab.held->outbox(), lab.ids, nullptr);
    through.tell(&event_relay::nudge_relay, &relay);
    const auto id = lab.append();
    relay.nudge();
    lab.on.run_ready();
    CHECK(lab.received_ids() == std::vector{id});
}

TEST_CASE("a message that can never be published is set aside at once, and its batch and its key go on") {
    const errc code = GENERATE(errc::invalid_argument, errc::too_large);
    relay_lab lab;
    lab.faulty.on_publish = [&](const std::vector<envelope>& batch) -> std::optional<error> {
        if (std::ranges::any_of(batch, [](const envelope& each) { return each.what.body == "poison"; }))
            return refused_with(code);
        return std::nullopt;
    };
    std::vector<identifier> good;
    for (int i = 0; i < 100; ++i) {
        if (i == 37) lab.append("k", "poison");
        good.push_back(lab.append(i % 2 == 0 ? "k" : ""));
    }
    auto& relay = lab.relay();
    lab.on.advance(100ms);
    CHECK(lab.received_ids() == good);
    CHECK(relay.snapshot().set_aside == 1);
    CHECK(lab.unsent() == 0);
    CHECK(lab.await(lab.held->outbox()->set_aside(10, 0)).size() == 1);
    CHECK(lab.log.count("is set aside") == 1);
}

TEST_CASE("a message that fails is tried again with growing waits, blocks its key alone, and is set aside in the end") {
    relay_lab lab;
    int tries = 0;
    lab.faulty.on_publish = [&](const std::vector<envelope>& batch) -> std::optional<error> {
        for (const envelope& each : batch)
            if (each.what.body == "bad") {
                if (batch.size() == 1) ++tries;
                return refused_with(errc::internal);
            }
        return std::nullopt;
    };
    lab.append("k", "bad");
    const auto behind = lab.append("k");
    const auto other = lab.append("l");
    const auto keyless = lab.append("");
    auto& relay = lab.relay({.lease = 1s, .max_failures = 3});
    lab.on.advance(100ms);
    CHECK(tries == 1);
    CHECK(lab.received_ids() == std::vector{other, keyless});
    lab.on.advance(1min);
    CHECK(tries == 3);
    CHECK(relay.snapshot().failed == 2);
    CHECK(relay.snapshot().set_aside == 1);
    CHECK(lab.received_ids() == std::vector{behind});
}

TEST_CASE("a transport that is away or full is waited for, and nothing is counted") {
    const errc code = GENERATE(errc::unavailable, errc::overloaded);
    relay_lab lab;
    bool away = true;
    lab.faulty.with.before = [&](std::string_view call) -> std::optional<error> {
        return away && call == "publish" ? refused_with(code) : std::nullopt;
    };
    std::vector<identifier> ids;
    for (int i = 0; i < 20; ++i) ids.push_back(lab.append("k"));
    auto& relay = lab.relay();
    lab.on.advance(5min);
    CHECK(lab.received().empty());
    CHECK(relay.snapshot().held_back == (code == errc::overloaded));
    CHECK(relay.snapshot().transport_down == (code == errc::unavailable));
    CHECK(relay.snapshot().failed == 0);
    away = false;
    lab.on.advance(10s);
    CHECK(lab.received_ids() == ids);
    CHECK(relay.snapshot().set_aside == 0);
    CHECK_FALSE(relay.snapshot().held_back);
    CHECK_FALSE(relay.snapshot().transport_down);
}

TEST_CASE("a relay that dies between publishing and marking: another publishes again, and the transport knows the id") {
    relay_lab lab;
    faulty_store dying(*lab.held);
    bool dead = false;
    dying.with.before = [&](std::string_view call) -> std::optional<error> {
        if (call == "delivered") dead = true;
        return dead ? refused_with(errc::unavailable) : std::nullopt;
    };
    std::vector<identifier> ids;
    for (int i = 0; i < 10; ++i) ids.push_back(lab.append("k"));
    event_relay first({lab.on, *dying.outbox(), *lab.kept, lab.log}, {.lease = 30s, .name = "first"}, 5);
    REQUIRE(first.start());
    lab.on.advance(1s);
    CHECK(dead);
    CHECK(lab.unsent() == 10);
    auto& second = lab.relay();
    lab.on.advance(1min);
    CHECK(lab.unsent() == 0);
    CHECK(second.snapshot().published == 10);
    CHECK(lab.received_ids() == ids);
    sync_wait(lab.on, first.stop());
}

TEST_CASE("an answer that got lost is asked for again, and nothing is doubled") {
    relay_lab lab;
    int losses = 3;
    lab.faulty.with.after = [&](std::string_view call) -> std::optional<error> {
        return call == "publish" && losses-- > 0 ? refused_with(errc::unknown_outcome) : std::nullopt;
    };
    const auto id = lab.append("k");
    lab.relay();
    lab.on.advance(10s);
    CHECK(lab.received_ids() == std::vector{id});
    CHECK(lab.unsent() == 0);
}

TEST_CASE("a mark whose answer got lost is made again, and counts as published") {
    relay_lab lab;
    faulty_store deaf(*lab.held);
    int losses = 2;
    deaf.with.after = [&](std::string_view call) -> std::optional<error> {
        return call == "delivered" && losses-- > 0 ? refused_with(errc::unknown_outcome) : std::nullopt;
    };
    const auto id = lab.append("k");
    event_relay relay({lab.on, *deaf.outbox(), *lab.kept, lab.log}, {.name = "deaf"}, 5);
    REQUIRE(relay.start());
    lab.on.advance(10s);
    CHECK(losses < 0);
    CHECK(relay.snapshot().published == 1);
    CHECK(relay.snapshot().lost == 0);
    CHECK(lab.received_ids() == std::vector{id});
    sync_wait(lab.on, relay.stop());
}

TEST_CASE("batches are on their way at the same time, and order per key holds") {
    relay_lab lab;
    int flying = 0;
    int most = 0;
    lab.faulty.with.on = &lab.on;
    lab.faulty.with.lag = [] { return 10ms; };
    lab.faulty.on_publish = [&](const auto&) {
        most = std::max(most, ++flying);
        return std::nullopt;
    };
    lab.faulty.with.after = [&](std::string_view call) -> std::optional<error> {
        if (call == "publish") --flying;
        return std::nullopt;
    };
    std::map<std::string, std::vector<identifier>> sent;
    for (int i = 0; i < 400; ++i) {
        const std::string key = "k" + std::to_string(i % 50);
        sent[key].push_back(lab.append(key));
    }
    lab.relay({.batch = 20, .in_flight = 3});
    lab.on.advance(10s);
    CHECK(most == 3);
    std::map<std::string, std::vector<identifier>> seen;
    for (const envelope& each : lab.received()) seen[each.key].push_back(each.id);
    CHECK(seen == sent);
}

TEST_CASE("a relay stops when what is on its way has been marked, and gives up on what it cannot reach") {
    relay_lab lab;
    lab.faulty.with.on = &lab.on;
    lab.faulty.with.lag = [] { return 100ms; };
    lab.append("k");
    auto& relay = lab.relay();
    lab.on.advance(50ms);
    const auto began = lab.on.now();
    sync_wait(lab.on, relay.stop());
    CHECK(lab.on.now() - began < 1s);
    CHECK(lab.unsent() == 0);

    lab.append("k");
    lab.faulty.with.before = [](std::string_view) { return refused_with(errc::unavailable); };
    event_relay other({lab.on, *lab.held->outbox(), lab.faulty, lab.log}, {.last_wait = 2s, .name = "other"}, 5);
    REQUIRE(other.start());
    lab.on.advance(1s);
    const auto then = lab.on.now();
    sync_wait(lab.on, other.stop());
    CHECK(lab.on.now() - then <= 3s);
    CHECK(lab.unsent() == 1);
}

TEST_CASE("an option that makes no sense is refused") {
    relay_lab lab;
    const auto start = [&](relay_options how) {
        event_relay made({lab.on, *lab.held->outbox(), *lab.kept, lab.log}, std::move(how));
        return made.start().error().code;
    };
    CHECK(start({.batch = 0}) == errc::invalid_argument);
    CHECK(start({.lease = 0s}) == errc::invalid_argument);
    CHECK(start({.poll = 0s}) == errc::invalid_argument);
    CHECK(start({.in_flight = 0}) == errc::invalid_argument);
    CHECK(start({.max_failures = 0}) == errc::invalid_argument);
}
