#include "catch.hpp"

#include <holdfast/host.hpp>
#include <holdfast/simulated_runtime.hpp>

#include "promise_check.hpp"
#include "support.hpp"

using namespace support;
using namespace holdfast;

namespace {

// Starts on virtual time, with memory as the default store; lines of `rest` begin at 5.
std::string refusal_of(std::string_view rest, void (*more)(host&) = nullptr) {
    simulated_runtime on;
    auto host = host::from_text("[plugins]\npath = ['" HOLDFAST_BUILD_PLUGIN_DIR "', '" HOLDFAST_FIXTURE_DIR "']\n"
                                "[store]\nplugin = 'memory'\n" +
                                    std::string(rest),
                                "desk.toml");
    host.log_to(std::make_shared<null_logger>()).use(on);
    if (more != nullptr) more(host);
    return message_of([&] { host.start(); });
}

constexpr const char* memory_offers = "survives nothing, for one process, units of work, joins no transactions; loses "
                                      "everything, when the process ends";
constexpr const char* kept = "nothing was thrown";

} // namespace

TEST_CASE("a promise that the store can keep is kept") {
    CHECK(refusal_of("[promises]\nunits_of_work = true\n") == kept);
    CHECK(refusal_of("[promises]\nshared = false\n") == kept);
}

TEST_CASE("a store that cannot keep a promise is refused, with what was asked and what it offers") {
    const auto refusal = [](const std::string& promise) { return refusal_of("[promises]\n" + promise + "\n"); };
    const std::string rest =
        std::string(", which the store \"memory\" of [store] cannot promise for jobs: ") + memory_offers;
    CHECK(refusal("writes_survive = 'power_loss'") ==
          "desk.toml:5: [promises] asks for writes_survive = \"power_loss\"" + rest);
    CHECK(refusal("writes_survive = 'process_crash'") ==
          "desk.toml:5: [promises] asks for writes_survive = \"process_crash\"" + rest);
    CHECK(refusal("shared = true") == "desk.toml:5: [promises] asks for shared = true" + rest);
    CHECK(refusal("joins_transactions = true") == "desk.toml:5: [promises] asks for joins_transactions = true" + rest);
}

TEST_CASE("a promise may be asked of one facet") {
    CHECK(refusal_of("[store.locks]\nplugin = 'locks_only'\n[promises.locks]\nshared = true\n"
                     "writes_survive = 'server_crash'\n") == kept);
    CHECK(refusal_of("[store.locks]\nplugin = 'locks_only'\n[promises.locks]\nwrites_survive = 'power_loss'\n") ==
          "desk.toml:7: [promises.locks] asks for writes_survive = \"power_loss\", which the store \"locks_only\" of "
          "[store.locks] cannot promise for locks: survives server crash, shared by processes, no units of work, joins "
          "no transactions; loses everything, on Sundays");
    CHECK(refusal_of("[promises.outbox]\nshared = true\n").find("cannot promise for outbox") != std::string::npos);
}

TEST_CASE("the program may ask for promises too") {
    CHECK(refusal_of("", [](host& h) { h.require({.units_of_work = true}); }) == kept);
    CHECK(refusal_of("", [](host& h) { h.require({.shared = true}); }) ==
          std::string("host.require() asks for shared = true, which the store \"memory\" of [store] cannot promise for "
                      "jobs: ") +
              memory_offers);
    CHECK(refusal_of("", [](host& h) { h.require(facet::locks); }) == kept);
    CHECK_THAT(refusal_of("", [](host& h) { h.require(facet::locks, {.shared = true}); }),
               Catch::Matchers::StartsWith("host.require() asks for shared = true, "));
}

TEST_CASE("the application may ask for promises too") {
    CHECK_THAT(
        refusal_of("[application]\nplugin = 'desk'\nneeds_jobs = true\n"),
        Catch::Matchers::StartsWith("the application asks for writes_survive = \"power_loss\", which the store "));
}

TEST_CASE("a promise needs a store") {
    const auto refusal = [](const char* toml) {
        simulated_runtime on;
        auto host = host::from_text(toml, "desk.toml");
        return message_of([&] { host.use(on).start(); });
    };
    CHECK(refusal("[promises]\nshared = true\n") ==
          "desk.toml:1: [promises] needs a store; write [store] with plugin = \"sqlite\", or another");
    CHECK(refusal("[promises.jobs]\nshared = true\n") ==
          "desk.toml:1: [promises.jobs] needs a store: desk.toml: no store keeps jobs; write [store] or [store.jobs] "
          "with plugin = \"sqlite\", or another");
}

TEST_CASE("locks have no part in units of work, so they are not asked for them") {
    CHECK_FALSE(detail::first_broken({.units_of_work = true, .joins_transactions = true}, {}, facet::locks));
    CHECK(detail::first_broken({.units_of_work = true}, {}, facet::jobs) == "units_of_work = true");
    CHECK(detail::first_broken({.joins_transactions = true}, {}, facet::idempotency) == "joins_transactions = true");
}

TEST_CASE("units of work are not promised for facets in two stores, which nothing can be written to together") {
    const std::string two = "[store.outbox]\nplugin = 'memory'\n";
    CHECK(refusal_of(two + "[promises]\nunits_of_work = true\n") ==
          "desk.toml:7: [promises] asks for units_of_work = true of all facets, but jobs is kept by the store "
          "\"memory\" of "
          "[store] and outbox by the store \"memory\" of [store.outbox]: what is in two stores cannot be written "
          "together; keep them in one, or ask for it of single facets, as in [promises.jobs]");
    CHECK_THAT(refusal_of(two, [](host& h) { h.require({.units_of_work = true}); }),
               Catch::Matchers::StartsWith("host.require() asks for units_of_work = true of all facets, but "));
    CHECK(refusal_of(two + "[promises.jobs]\nunits_of_work = true\n[promises.outbox]\nunits_of_work = true\n") == kept);
    CHECK(refusal_of(two + "[promises]\nshared = false\n") == kept);
    CHECK(refusal_of("[store.locks]\nplugin = 'locks_only'\n[promises]\nunits_of_work = true\n") == kept);
}

TEST_CASE("a store that survives more than was asked for will do") {
    const auto broken = [](survives asked, survives has) {
        store_capabilities can;
        can.writes_survive = has;
        return detail::first_broken({.writes_survive = asked}, can, facet::locks);
    };
    CHECK(broken(survives::server_crash, survives::process_crash) == "writes_survive = \"server_crash\"");
    CHECK_FALSE(broken(survives::server_crash, survives::server_crash));
    CHECK_FALSE(broken(survives::server_crash, survives::power_loss));
}
