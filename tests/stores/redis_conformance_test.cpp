// The store kit on the plugin file and real servers.
#include <holdfast/store_conformance.hpp>

#include "harness/redis_cluster.hpp"
#include "stores/kit.hpp"
#include "stores/redis_support.hpp"

using namespace holdfast;

namespace {

// Those of the kit that hand jobs over, which a cluster does not.
constexpr int handover_cases = 7;

// Runs the cases that the filter chooses; none may fail, and so many are skipped because something is not offered. How many
// passed.
int passed_cases(const test::redis::text_settings& settings, const std::string& filter = {}, int skipped = 0) {
    asio_runtime on{asio_options{}};
    std::string space;
    const auto open = [&] {
        auto with = settings;
        with.emplace_back("namespace", space);
        return test::redis::open(on, with);
    };
    const conformance::store_bed bed{[&] {
                                         space = test::redis::fresh_namespace();
                                         return open();
                                     },
                                     open, &on, [&] { return test::rival_process("redis", settings, space); }};
    const conformance::store_options how{.filter = filter, .seed = test::kit_seed()};
    const auto counted = conformance::run_store_suite(bed, how, [](const conformance::case_result& ended) {
        INFO(ended.title() << ": " << ended.message);
        CHECK(ended.state != conformance::case_result::failed);
    });
    CHECK(counted.skipped == skipped);
    return counted.passed;
}

} // namespace

TEST_CASE("redis: keeps the contract of stores") {
    NEEDS_REDIS();
    harness::redis_server server;
    CHECK(passed_cases({{"url", server.url()}}) > 100);
    CHECK(server.tell("DBSIZE") == ":0"); // the kit removes what it made
}

TEST_CASE("redis: keeps the contract of stores on a cluster") {
    NEEDS_REDIS();
    harness::redis_cluster cluster;
    CHECK(passed_cases({{"url", cluster.url()}}, {}, handover_cases) > 100);
    for (std::size_t i = 0; i < harness::redis_cluster::size; ++i) CHECK(cluster.node(i).tell("DBSIZE") == ":0");
}

TEST_CASE("redis: keeps the contract of locks on a majority of three servers") {
    NEEDS_REDIS();
    harness::redis_server first, second, third;
    const auto at = [](const harness::redis_server& s) { return "127.0.0.1:" + std::to_string(s.port()); };
    const std::string servers = at(first) + "," + at(second) + "," + at(third);
    CHECK(passed_cases({{"url", first.url()}, {"lock_servers", servers}}, "locks/") > 5);
    for (const harness::redis_server* each : {&first, &second, &third}) CHECK(each->tell("DBSIZE") == ":0");
}

TEST_CASE("redis: holdfast verify proves the plugin, where the clock is right and where it is wrong by an hour") {
    NEEDS_REDIS();
    harness::redis_server server;
    const auto done = test::verify("redis", {{"url", server.url()}}, {});
    INFO(done.output);
    CHECK(done.code == 0);
    CHECK_THAT(done.output, Catch::Matchers::ContainsSubstring("\nclock +1h "));
    CHECK_THAT(done.output, Catch::Matchers::ContainsSubstring("\nclock -1h "));
    CHECK_THAT(done.output, !Catch::Matchers::ContainsSubstring("skipped"));
    CHECK(server.tell("DBSIZE") == ":0");
}
