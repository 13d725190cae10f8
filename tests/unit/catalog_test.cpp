#include <set>
#include <string>
#include <thread>
#include <vector>

#include <holdfast/engine.hpp>

#include "catch.hpp"
#include "support.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

namespace {

constexpr policy mail({.name = "invoice-email", .timeout = 30s});
constexpr policy hook({.name = "webhook"});

std::unique_ptr<policy_catalog> catalog_of(std::initializer_list<policy> all) {
    auto catalog = make_policy_catalog();
    for (const policy& each : all) CHECK(catalog->add(each.options()));
    return catalog;
}

} // namespace

TEST_CASE("a catalog finds what was added, under its name") {
    const auto catalog = catalog_of({mail, hook});
    const auto found = catalog->find("invoice-email");
    REQUIRE(found);
    CHECK((*found)->name == "invoice-email");
    CHECK((*found)->current.load()->timeout == 30s);
    CHECK(catalog->names() == std::vector<std::string>{"invoice-email", "webhook"});
    CHECK(catalog->find("invoice-email").value() == *found);
}

TEST_CASE("a catalog keeps names of its own, for those it was given may go") {
    const auto catalog = make_policy_catalog();
    {
        std::string name = "short-lived";
        CHECK(catalog->add({.name = name}));
        name.assign(name.size(), 'x');
    }
    const auto* cell = catalog->find("short-lived").value();
    CHECK(cell->current.load()->name == "short-lived");
    {
        std::string name = "short-lived";
        CHECK(catalog->replace({{.name = name, .timeout = 1s}}));
        name.assign(name.size(), 'x');
    }
    CHECK(cell->current.load()->name == "short-lived");
}

TEST_CASE("a name that is taken is refused") {
    const auto catalog = catalog_of({mail});
    const auto again = catalog->add({.name = "invoice-email", .timeout = 1s});
    REQUIRE_FALSE(again);
    CHECK(again.error().code == errc::duplicate);
    CHECK(again.error().message == "policy \"invoice-email\" is registered twice; policy names are unique in a host");
    CHECK(catalog->find("invoice-email").value()->current.load()->timeout == 30s);
    test::bench on(mail);
    CHECK_THROWS_AS(on.made.add(mail), failed);
}

TEST_CASE("an unknown name is refused with the nearest known one") {
    const auto catalog = catalog_of({mail, hook});
    const auto typo = catalog->find("invoice-mail");
    REQUIRE_FALSE(typo);
    CHECK(typo.error().code == errc::unknown_policy);
    CHECK(typo.error().message == "no policy \"invoice-mail\" is registered; did you mean \"invoice-email\"?");
    CHECK(catalog->find("quite-different").error().message ==
          "no policy \"quite-different\" is registered; add it to the host before it starts");
    CHECK(make_policy_catalog()->find("x").error().message ==
          "no policy \"x\" is registered; none is: add it to the host before it starts");
}

TEST_CASE("an invalid policy is refused and its name stays free") {
    const auto catalog = make_policy_catalog();
    const auto added = catalog->add({.name = "p", .timeout = -1s});
    REQUIRE_FALSE(added);
    CHECK(added.error().code == errc::invalid_policy);
    CHECK(added.error().message == "policy \"p\": timeout must not be negative");
    CHECK(catalog->names().empty());
    CHECK(catalog->add({.name = "p"}));
}

TEST_CASE("several policies are replaced together, or none of them") {
    const auto catalog = catalog_of({mail, hook});
    const auto timeouts = [&] {
        return std::pair(catalog->find("invoice-email").value()->current.load()->timeout,
                         catalog->find("webhook").value()->current.load()->timeout);
    };
    const auto before = timeouts();
    const auto invalid =
        catalog->replace({{.name = "invoice-email", .timeout = 1s}, {.name = "webhook", .timeout = -1s}});
    REQUIRE_FALSE(invalid);
    CHECK(invalid.error().code == errc::invalid_policy);
    CHECK(timeouts() == before);
    const auto unknown = catalog->replace({{.name = "invoice-email", .timeout = 1s}, {.name = "webhok"}});
    REQUIRE_FALSE(unknown);
    CHECK(unknown.error().code == errc::unknown_policy);
    CHECK(unknown.error().message == "no policy \"webhok\" is registered; did you mean \"webhook\"?");
    CHECK(timeouts() == before);
    CHECK(catalog->replace({{.name = "invoice-email", .timeout = 1s}, {.name = "webhook", .timeout = 2s}}));
    CHECK(timeouts() == std::pair(std::optional<duration>(1s), std::optional<duration>(2s)));
    CHECK(catalog->replace({}));
}

TEST_CASE("each distinct version of a policy is kept once") {
    const auto catalog = catalog_of({mail});
    const auto* cell = catalog->find("invoice-email").value();
    std::set<const policy_options*> versions{cell->current.load()};
    for (int i = 0; i < 100; ++i) {
        CHECK(catalog->replace({{.name = "invoice-email", .timeout = i % 2 == 0 ? 1s : 30s}}));
        versions.insert(cell->current.load());
    }
    CHECK(versions.size() == 2);
    for (const auto* each : versions) CHECK(each->name == "invoice-email"); // the replaced one is still there
}

TEST_CASE("a policy is read whole while others replace it") {
    const auto catalog = catalog_of({mail});
    const auto* cell = catalog->find("invoice-email").value();
    CHECK(catalog->replace({{.name = "invoice-email", .timeout = 0s, .total_timeout = 0s}}));
    bool torn = false;
    {
        std::jthread writer([&] {
            for (int i = 0; i < 2000; ++i) {
                const duration d = 1s * (i % 50);
                (void)catalog->replace({{.name = "invoice-email", .timeout = d, .total_timeout = d}});
            }
        });
        for (int i = 0; i < 20'000; ++i) {
            const policy_options* now = cell->current.load();
            torn = torn || now->timeout != now->total_timeout;
            if (i % 100 == 0) torn = torn || !catalog->find("invoice-email");
        }
    }
    CHECK_FALSE(torn);
}

TEST_CASE("a runner binds each policy and key to one pipeline") {
    test::bench on(mail, hook);
    auto& runner = on.made.runner();
    pipeline* first = runner.bind("invoice-email").value();
    CHECK(runner.bind("invoice-email").value() == first);
    CHECK(runner.bind("invoice-email", "").value() == first);
    CHECK(runner.bind("invoice-email", "host-a").value() != first);
    CHECK(runner.bind("invoice-email", "host-a").value() == runner.bind("invoice-email", "host-a").value());
    CHECK(runner.bind("webhook").value() != first);
    CHECK(first->name() == "invoice-email");
    CHECK(&first->on() == &on.on);
    CHECK(runner.bind("webhok").error().message == "no policy \"webhok\" is registered; did you mean \"webhook\"?");
}

TEST_CASE("running under an unknown policy throws at its first use, try_execute too") {
    test::bench on(mail);
    CHECK_THROWS_AS(on.policies().bind("nobody"), failed);
    CHECK_THROWS_AS(on.policies().execute(hook, [] { return 1; }), failed);
    CHECK_THROWS_AS(on.policies().try_execute(hook, [] { return 1; }), failed);
    try {
        on.policies().try_execute(hook, [] { return 1; });
    } catch (const failed& e) {
        CHECK(e.code() == errc::unknown_policy);
    }
    on.made.add(hook); // and it is found once it is there
    CHECK(on.policies().execute(hook, [] { return 1; }) == 1);
}
