// Nodes that fire the same schedules, and are killed over it, on real stores.
#include <algorithm>
#include <csignal>
#include <list>
#include <string>
#include <thread>
#include <vector>

#include <holdfast/schedule.hpp>
#include <holdfast/timestamp.hpp>

#include "catch.hpp"
#include "harness/child_process.hpp"
#include "harness/postgres_server.hpp"
#include "harness/redis_server.hpp"
#include "harness/temporary_folder.hpp"
#include "jobs/notes.hpp"
#include "stores/support.hpp"

using namespace std::chrono_literals;
using namespace holdfast;

namespace {

struct fleet : test::store_desk {
    fleet(std::string plugin_name, test::text_settings how) : plugin(std::move(plugin_name)) {
        with = std::move(how);
        if (plugin == "sqlite") with.emplace_back("file", (folder / "store.db").string());
        else with.emplace_back("namespace", test::fresh_namespace());
        kept = test::open_store(plugin, on, with);
        await(kept->prepare());
    }
    ~fleet() {
        nodes.clear();
        (void)sync_wait(on, kept->destroy());
        kept.reset(); // before its folder goes
    }

    void start_node() {
        harness::command what;
        what.arguments = {HOLDFAST_SCHEDULE_PROGRAM, plugin};
        for (const auto& [key, value] : with) what.arguments.push_back(key + "=" + value);
        what.folder = folder.path();
        what.output = folder / "output";
        nodes.emplace_back(what);
    }
    // Oldest first.
    std::vector<job_view> runs_of(const std::string& type) {
        auto page = await(jobs().list({.type = type}, 500));
        std::ranges::sort(page.jobs, {}, &job_view::created);
        return std::move(page.jobs);
    }
    // Seconds that have a run of "beat", oldest first.
    std::vector<std::int64_t> beats() {
        std::vector<std::int64_t> all;
        for (const job_view& each : runs_of("beat")) {
            const auto slot = parse_timestamp<store_time>(each.extra.at(std::string(schedule_header::slot)));
            all.push_back(slot.value().time_since_epoch() / 1s);
        }
        std::ranges::sort(all);
        return all;
    }

    const std::string plugin;
    harness::temporary_folder folder{"hffleet"};
    std::list<harness::child_process> nodes;
};

void fires_each_slot_once(const std::string& plugin, const test::text_settings& with) {
    fleet at(plugin, with);
    for (int i = 0; i < 3; ++i) at.start_node();
    // Whoever has been there longest is killed, wherever it is.
    for (int killed = 0; killed < 9; ++killed) {
        std::this_thread::sleep_for(530ms + 37ms * killed);
        at.nodes.front().signal(SIGKILL);
        at.nodes.pop_front();
        at.start_node();
    }
    const auto last = at.await(at.kept->now()).time_since_epoch() / 1s;
    const auto complete = [&] {
        const auto beats = at.beats();
        return !beats.empty() && beats.back() >= last && beats.back() - beats.front() + 1 == std::ssize(beats);
    };
    for (int i = 0; i < 100 && !complete(); ++i) std::this_thread::sleep_for(100ms);
    for (const std::string& each : test::notes_in(at.folder / "failed")) FAIL(each);

    for (auto& each : at.nodes) {
        each.signal(SIGTERM);
        CHECK(each.wait(20s) == 0);
    }
    const auto beats = at.beats();
    REQUIRE(beats.size() >= 5);
    CHECK(std::ranges::adjacent_find(beats) == beats.end());      // none twice
    CHECK(beats.back() - beats.front() + 1 == std::ssize(beats)); // none left out
    const auto pauses = at.runs_of("pause");
    REQUIRE(pauses.size() >= 2);
    for (std::size_t i = 1; i < pauses.size(); ++i) {
        REQUIRE(pauses[i - 1].ended);
        CHECK(pauses[i].created - *pauses[i - 1].ended >= 1s);
    }
}

} // namespace

TEST_CASE("sqlite: nodes that are killed again and again fire each slot once") {
    fires_each_slot_once("sqlite", {});
}

TEST_CASE("postgres: nodes that are killed again and again fire each slot once") {
    if (!harness::postgres_binaries()) SKIP("PostgreSQL is not installed (no initdb and postgres found)");
    harness::postgres_server server({.fsync = false});
    fires_each_slot_once("postgres", {{"url", server.url()}});
}

TEST_CASE("redis: nodes that are killed again and again fire each slot once") {
    if (!harness::redis_binary()) SKIP("Redis is not installed (no redis-server found)");
    harness::redis_server server;
    fires_each_slot_once("redis", {{"url", server.url()}});
}
