// Consumers with a unit of work: their effects and the mark that the event was received are one commit.
#include "catch.hpp"
#include "event_lab.hpp"
#include "faulty_events.hpp"

using namespace std::chrono_literals;
using namespace holdfast;
using namespace holdfast::test;

namespace {

// The effect is one more message in the outbox.
struct unit_lab : event_lab {
    unit_lab() : faulty(*held) {
        over_store = &faulty;
        const auto effect = [](unit_lab& in, unit_of_work* unit,
                               std::optional<std::string> error) -> task<result<void>> {
            auto appending = in.faulty.outbox()->append({in.message("effect")}, unit);
            const auto appended = co_await std::move(appending);
            if (!appended) co_return appended;
            if (error) throw std::runtime_error(*error);
            co_return result<void>{};
        };
        consume_in_unit([this, effect](const envelope&, event_context&, unit_of_work* unit) {
            ++calls;
            return effect(*this, unit, fails-- > 0 ? std::optional<std::string>("no") : std::nullopt);
        });
        exception_policy rules;
        rules.default_().retry(5, 1s);
        consumers.on_error(error_scope::host, std::move(rules));
    }
    ~unit_lab() { stop(); }
    std::uint64_t effects() { return await(held->outbox()->unsent()); }

    faulty_store faulty;
    int calls = 0;
    int fails = 0;
};

std::optional<error> refused_with(errc code) {
    return error{code, "no", std::nullopt};
}

} // namespace

TEST_CASE("effects and the mark in the inbox are one commit") {
    unit_lab lab;
    lab.start();
    const auto id = lab.publish("k");
    lab.on.advance(1s);
    CHECK(lab.effects() == 1);
    CHECK(lab.in_inbox(id));
    CHECK(lab.counts().handled == 1);
}

TEST_CASE("a failure takes its effects back, and every retry has a fresh unit") {
    unit_lab lab;
    lab.fails = 2;
    lab.start();
    const auto id = lab.publish("k");
    lab.on.advance(1min);
    CHECK(lab.calls == 3);
    CHECK(lab.effects() == 1);
    CHECK(lab.in_inbox(id));
    CHECK(lab.counts().retried == 2);
}

TEST_CASE("a commit whose outcome is not known is resolved by asking the inbox") {
    unit_lab lab;
    SECTION("it was applied") {
        lab.faulty.with.after = [n = 1](std::string_view call) mutable -> std::optional<error> {
            return call == "commit" && n-- > 0 ? refused_with(errc::unknown_outcome) : std::nullopt;
        };
        lab.start();
        lab.publish("k");
        lab.on.advance(1min);
        CHECK(lab.calls == 1);
    }
    SECTION("it was not") {
        lab.faulty.with.before = [n = 1](std::string_view call) mutable -> std::optional<error> {
            return call == "commit" && n-- > 0 ? refused_with(errc::unknown_outcome) : std::nullopt;
        };
        lab.start();
        lab.publish("k");
        lab.on.advance(1min);
        CHECK(lab.calls == 2);
    }
    CHECK(lab.effects() == 1);
    CHECK(lab.counts().handled == 1);
}

TEST_CASE("a store that is away is waited for, and no call is counted") {
    unit_lab lab;
    bool away = true;
    lab.faulty.with.before = [&](std::string_view) -> std::optional<error> {
        return away ? refused_with(errc::unavailable) : std::nullopt;
    };
    lab.start();
    lab.publish("k");
    lab.on.advance(10min);
    CHECK(lab.calls == 0);
    CHECK(lab.worker->snapshot().inbox_down);
    away = false;
    lab.on.advance(10s);
    CHECK(lab.calls == 1);
    CHECK(lab.effects() == 1);
    CHECK_FALSE(lab.worker->snapshot().inbox_down);
    CHECK(lab.dead().empty());
}

TEST_CASE("an event that somebody else has received meanwhile is dropped in the unit") {
    unit_lab lab;
    lab.start();
    const auto one = lab.message("k");
    lab.faulty.with.before = [&](std::string_view call) -> std::optional<error> {
        if (call == "begin") lab.await(lab.held->outbox()->receive("1:billing", one.id, 1h));
        return std::nullopt;
    };
    lab.await(lab.kept->publish({one}));
    lab.on.advance(1s);
    CHECK(lab.calls == 0);
    CHECK(lab.effects() == 0);
    CHECK(lab.counts().duplicates == 1);
}
