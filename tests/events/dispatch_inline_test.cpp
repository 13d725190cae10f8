// Domain events: inline, in declared order, all of them, and failures come back together.
#include <chrono>
#include <set>
#include <string>
#include <vector>

#include "catch.hpp"
#include "event_lab.hpp"

using namespace holdfast;
using Catch::Matchers::ContainsSubstring;

namespace {

struct order_placed {
    static constexpr event_options options{.name = "order.placed"};
    std::string order;
};
// Knows which of its kind are alive.
struct living {
    static constexpr event_options options{.name = "test.living"};
    static inline std::set<const living*> all;
    living() { all.insert(this); }
    living(const living&) { all.insert(this); }
    living& operator=(const living&) = default;
    ~living() { all.erase(this); }
};
struct impostor {
    static constexpr event_options options{.name = "order.placed"};
};

struct desk {
    desk() : lab(), through(lab.held->outbox(), lab.ids, &inline_) { unit = lab.await(lab.held->begin()); }

    void add(std::unique_ptr<domain_consumer> one) { lab.consumers.add(std::move(one)).value(); }
    template <class Event>
    void raise(Event event) {
        sync_wait(lab.on, through.raise(*unit, std::move(event)));
    }

    test::event_lab lab;
    inline_dispatcher inline_{lab.consumers, lab.on};
    events through;
    std::unique_ptr<unit_of_work> unit;
};

} // namespace

template <>
struct holdfast::codec<living> {
    static constexpr std::string_view content_type = "text/plain";
    static std::string encode(const living&) { return "alive"; }
    static result<living> decode(std::string_view) { return living(); }
};

TEST_CASE("a coroutine may take its event by reference: the event lives until the consumer has ended") {
    desk d;
    int seen_alive = 0;
    const auto look = [](const living& event, runtime& on, int& alive) -> task<void> {
        co_await sleep_for(on, std::chrono::seconds{1});
        alive += living::all.contains(&event) ? 1 : 0;
    };
    d.add(domain_consumer_of<living>("stock", [&](const living& e) { return look(e, d.lab.on, seen_alive); }));
    d.raise(living());
    CHECK(seen_alive == 1);

    const auto billing =
        event_consumer_of<living>("billing", [&](const living& e) { return look(e, d.lab.on, seen_alive); });
    null_logger nowhere;
    const envelope message;
    event_context context({.message = &message}, d.lab.on, nowhere, {}, nullptr);
    CHECK(sync_wait(d.lab.on, billing->run(message, context, nullptr)));
    CHECK(seen_alive == 2);
    CHECK(living::all.empty());
}

TEST_CASE("domain consumers run in declared order, blocking ones and coroutines, in the publisher's unit") {
    desk d;
    std::vector<std::string> seen;
    d.add(domain_consumer_of<order_placed>("stock", [&](order_placed e) { seen.push_back("stock " + e.order); }));
    const auto mark = [](std::vector<std::string>& to, order_placed e, bool same) -> task<void> {
        to.push_back("audit " + e.order + (same ? "" : " in another unit"));
        co_return;
    };
    d.add(domain_consumer_of<order_placed>(
        "audit", [&](order_placed e, unit_of_work& in) { return mark(seen, std::move(e), &in == d.unit.get()); }));
    d.add(domain_consumer_of<order_placed>("mail", [&](const order_placed&) -> result<void> {
        seen.push_back("mail");
        return {};
    }));
    d.raise(order_placed{"A-7"});
    CHECK(seen == std::vector<std::string>{"stock A-7", "audit A-7", "mail"});
}

TEST_CASE("all domain consumers run, and what failed is told by name") {
    desk d;
    int ran = 0;
    d.add(domain_consumer_of<order_placed>("stock", [&](order_placed) {
        ++ran;
        throw std::logic_error("sold out");
    }));
    d.add(domain_consumer_of<order_placed>("audit", [&](order_placed) { ++ran; }));
    d.add(domain_consumer_of<order_placed>("mail", [&](order_placed) -> result<void> {
        ++ran;
        return fail(errc::unavailable, "no server");
    }));
    try {
        d.raise(order_placed{"A-7"});
        FAIL("nothing was thrown");
    } catch (const consumers_failed& e) {
        CHECK(std::string(e.what()) ==
              "2 of 3 domain consumers of \"order.placed\" failed: stock (std::logic_error: sold "
              "out), mail (holdfast::failed: no server)");
        REQUIRE(e.failures().size() == 2);
        CHECK(e.failures()[0].consumer == "stock");
        CHECK(detail::exception_as<std::logic_error>(e.failures()[0].error) != nullptr);
        CHECK(detail::exception_as<failed>(e.failures()[1].error)->code() == errc::unavailable);
    }
    CHECK(ran == 3);
}

TEST_CASE("an event of another type under the same name is refused, and nobody sees wrong bytes") {
    desk d;
    bool ran = false;
    d.add(domain_consumer_of<order_placed>("stock", [&](order_placed) { ran = true; }));
    CHECK_THROWS_WITH(d.raise(impostor{}), ContainsSubstring("is not of the type that its consumer takes"));
    CHECK_FALSE(ran);
}

TEST_CASE("an event that nobody consumes is raised all the same") {
    desk d;
    CHECK_NOTHROW(d.raise(order_placed{}));
}

TEST_CASE("a name and an event are registered once, and options are looked at") {
    consumer_registry all;
    const auto one = [](std::string name, std::string topic, consumer_options how = {}) {
        return std::make_unique<test::any_consumer>(
            std::move(name), std::move(topic), [](auto&&...) { return test::ended_well(); }, std::move(how), false);
    };
    CHECK(all.add(one("billing", "orders")));
    CHECK(all.add(one("billing", "parcels", {.concurrency = 3, .from_start = true})));
    CHECK(all.add(one("mail", "orders")));
    CHECK(all.add(one("billing", "orders")).error().code == errc::duplicate);
    CHECK(all.add(one("", "orders")).error().code == errc::invalid_argument);
    CHECK(all.add(one("x", "orders", {.concurrency = 0})).error().code == errc::invalid_argument);
    CHECK(all.add(one("x", "orders", {.timeout = duration::zero()})).error().code == errc::invalid_argument);
    CHECK(all.add(one("x", "orders", {.max_crashes = -1})).error().code == errc::invalid_argument);
    CHECK(all.add(one(std::string(1001, 'x'), "orders")).error().code == errc::invalid_argument);
    REQUIRE(all.subscribers().size() == 2);
    CHECK(all.subscribers()[0].topics() == std::vector<std::string>{"orders", "parcels"});
    CHECK(all.subscribers()[0].concurrency() == 16);
    CHECK(all.subscribers()[0].from_start());
    CHECK_FALSE(all.subscribers()[1].from_start());
}
