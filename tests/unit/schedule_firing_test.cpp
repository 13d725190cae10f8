// Schedulers and workers on virtual time: each slot once, whatever happens.
#include "catch.hpp"
#include "schedule_lab.hpp"

using namespace holdfast;
using namespace std::chrono_literals;
using test::schedule_fleet;
using test::schedule_node;
using seconds_list = std::vector<long>;

TEST_CASE("each slot fires once, when it is due by the store's clock") {
    schedule_fleet fleet;
    fleet.node_with({.name = "s", .every = 10min});
    fleet.on.advance(1h);
    CHECK(fleet.fired() == seconds_list{570, 1170, 1770, 2370, 2970, 3570});
    CHECK(fleet.begun == fleet.fired());
}

TEST_CASE("clocks that are a day off the store's change nothing") {
    schedule_fleet fleet;
    fleet.on.advance(25h); // of the store: the machine's own clock stays behind
    fleet.node_with({.name = "s", .every = 10min});
    fleet.on.advance(30min);
    CHECK(fleet.fired() == seconds_list{90570, 91170, 91770});
    CHECK(fleet.begun == fleet.fired());
}

TEST_CASE("a cron schedule fires at its minutes") {
    schedule_fleet fleet;
    fleet.node_with({.name = "s", .cron = "*/20 * * * *", .time_zone = "+05:30"});
    fleet.on.advance(2h);
    CHECK(fleet.fired() == seconds_list{570, 1770, 2970, 4170, 5370, 6570}); // ten past, half past, ten to
}

TEST_CASE("any number of schedulers that start together fire each slot once") {
    const auto [count, order] = GENERATE(table<int, std::uint64_t>({{2, 0}, {2, 5}, {10, 0}, {10, 1}, {10, 2}}));
    schedule_fleet fleet(order);
    for (int i = 0; i < count; ++i) {
        schedule_node& each = fleet.node("n" + std::to_string(i));
        each.add({.name = "s", .every = 10min});
        each.add({.name = "cron", .cron = "5,35 * * * *"});
        each.add({.name = "start", .at_start = true});
    }
    for (schedule_node& each : fleet.nodes) each.start();
    fleet.on.advance(1h);
    CHECK(fleet.fired() == seconds_list{-30, 270, 570, 1170, 1770, 2070, 2370, 2970, 3570});
    CHECK(fleet.begun.size() == 9);
    CHECK(fleet.jobs_of("holdfast.tick").size() == 2);
}

TEST_CASE("each slot has one run, whichever call to the store a node dies at") {
    int most_calls = 0;
    for (const bool applied : {false, true})
        for (int call = 1; call <= 40; ++call) {
            CAPTURE(applied, call);
            schedule_fleet fleet;
            const schedule_options every{
                .name = "s", .every = 2min, .overlap = overlap::concurrent, .misfire = misfire::catch_up};
            schedule_node& first = fleet.node("first");
            first.add(every);
            first.die_at(call, applied);
            first.start();
            schedule_node& second = fleet.node("second");
            second.add(every);
            second.start(false);
            fleet.on.advance(4min); // nobody else claims meanwhile, so that the first meets every call
            second.start_worker();
            fleet.on.advance(16min);
            seconds_list expected;
            for (long slot = 90; slot < 20 * 60; slot += 120) expected.push_back(slot);
            CHECK(fleet.fired() == expected);
            most_calls = std::max(most_calls, first.calls);
        }
    CHECK(most_calls == 40); // all of them were met
}

TEST_CASE("a run of which the job keeps nothing is not fired again by a tick that comes twice") {
    schedule_fleet fleet;
    schedule_node& node = fleet.node();
    recurring_job job{.when = {.name = "s", .every = 10min},
                      .type = {.name = "work", .keep_for = 0s},
                      .what = {.type = "work", .version = 1, .content_type = "text/plain", .body = {}}};
    REQUIRE(node.scheduler.add(job));
    REQUIRE(node.kinds.add(std::make_unique<test::any_job>(job.type, [&](payload, job_context&) {
        fleet.begun.push_back(0);
        return test::ended_well();
    })));
    bool lost = false; // the answer to the write that fired
    node.store.after = [&](test::store_call which) -> std::optional<error> {
        if (which != test::store_call::enqueue || lost || fleet.now() < fleet.began + 9min) return std::nullopt;
        lost = true;
        return error{errc::unavailable, "the answer got lost", std::nullopt};
    };
    node.start();
    fleet.on.advance(15min);
    CHECK(lost);
    CHECK(fleet.begun.size() == 1);
}

TEST_CASE("a schedule goes on after its ticks were removed by hand") {
    schedule_fleet fleet;
    fleet.node_with({.name = "s", .every = 10min});
    fleet.on.advance(1min);
    for (const job_view& each : fleet.jobs_of("holdfast.tick")) {
        REQUIRE(sync_wait(fleet.on, fleet.held->jobs()->cancel({each.id})));
        REQUIRE(sync_wait(fleet.on, fleet.held->jobs()->discard({each.id})));
    }
    fleet.on.advance(29min);
    CHECK(fleet.fired() == seconds_list{1170, 1770}); // the id of the one that was removed is taken
}

TEST_CASE("a schedule is mended while its store is away, and says so once") {
    schedule_fleet fleet;
    schedule_node& node = fleet.node();
    node.add({.name = "s", .every = 10min});
    bool away = true;
    node.store.before = [&](test::store_call) -> std::optional<error> {
        if (away) return error{errc::unavailable, "no route", std::nullopt};
        return std::nullopt;
    };
    node.start();
    fleet.on.advance(5min);
    away = false;
    fleet.on.advance(15min);
    CHECK(fleet.fired() == seconds_list{570, 1170});
    CHECK(fleet.log.count("cannot see to the schedules") == 1);
    CHECK(fleet.log.count("scheduler: the store is back") == 1);
}

TEST_CASE("what fires at the start fires once for all that start within a minute of each other") {
    schedule_fleet fleet;
    fleet.node_with({.name = "s", .at_start = true});
    fleet.on.advance(25s);
    fleet.node_with({.name = "s", .at_start = true}, 0s, "same minute");
    fleet.on.advance(15s);
    fleet.node_with({.name = "s", .at_start = true}, 0s, "next minute");
    CHECK(fleet.fired().size() == 1);
    fleet.on.advance(5min);
    fleet.node_with({.name = "s", .at_start = true}, 0s, "later");
    fleet.on.advance(1s);
    CHECK(fleet.fired().size() == 2);
    CHECK(fleet.begun.size() == 2);
}

TEST_CASE("a schedule of every node fires on each of them, and runs there") {
    schedule_fleet fleet;
    const schedule_options every{.name = "s", .every = 10min, .per_node = true};
    fleet.node_with(every, 0s, "a");
    fleet.node_with(every, 0s, "b");
    fleet.on.advance(30min);
    CHECK(fleet.by_node == std::map<std::string, int>{{"a", 3}, {"b", 3}});
    for (const job_view& each : fleet.jobs_of("work")) CHECK(each.queue.starts_with("default@"));
}

TEST_CASE("a tick that a node without its schedule keeps claiming is fired by one that has it") {
    const std::uint64_t order = GENERATE(0u, 1u, 2u); // in the first the ignorant one always comes first
    schedule_fleet fleet(order);
    schedule_node& old = fleet.node("old");
    old.add({.name = "other", .every = 24h});
    old.start();
    schedule_node& fresh = fleet.node("new");
    fresh.add({.name = "s", .every = 10min});
    fresh.start();
    fleet.on.advance(11min);
    CHECK(fleet.fired() == seconds_list{570});
    fleet.on.advance(1h);
    CHECK(fleet.fired() == seconds_list{570, 1170, 1770, 2370, 2970, 3570, 4170});
}

TEST_CASE("the tick of a schedule that nobody has any more is dropped, and said") {
    schedule_fleet fleet;
    schedule_node& old = fleet.node_with({.name = "gone", .every = 10min}, 0s, "old");
    fleet.on.advance(1min);
    old.stop();
    schedule_node& fresh = fleet.node_with({.name = "s", .every = 24h}, 0s, "new");
    fleet.on.advance(25min);
    CHECK(fleet.fired().empty());
    CHECK(fleet.log.count("schedule \"gone\": its slot of") == 1);
    const auto ticks = fleet.jobs_of("holdfast.tick");
    REQUIRE(ticks.size() == 1);
    CHECK(ticks.front().extra.at("schedule") == "s");
    CHECK(fresh.status().chained);
}

TEST_CASE("a schedule whose times were changed fires at the new ones only") {
    schedule_fleet fleet;
    schedule_node& old = fleet.node_with({.name = "s", .every = 10min}, 0s, "old");
    fleet.on.advance(15min);
    old.stop();
    fleet.node_with({.name = "s", .cron = "45 * * * *"}, 0s, "new");
    fleet.on.advance(1h);
    CHECK(fleet.fired() == seconds_list{570, 2670});
    CHECK(fleet.jobs_of("holdfast.tick").size() == 1);
}

TEST_CASE("a schedule can be looked at: when it is due next, what it ran last, and how that went") {
    schedule_fleet fleet;
    schedule_node& node = fleet.node();
    node.add({.name = "s", .every = 10min});
    node.add({.name = "once", .at_start = true});
    node.start();
    schedule_node& other = fleet.node("other");
    other.add({.name = "s", .every = 10min});
    CHECK(node.status().next_due == fleet.began + 570s);
    CHECK(node.status().chained);
    CHECK_FALSE(node.status().last_run);
    CHECK_FALSE(node.status("once").next_due);
    CHECK(node.status("once").when == "at start");
    fleet.on.advance(15min);
    for (schedule_node* each : {&node, &other}) { // the other has fired nothing itself
        CHECK(each->status().next_due == fleet.began + 1170s);
        REQUIRE(each->status().last_run);
        CHECK(each->status().last_state == job_state::succeeded);
        CHECK(each->status().when == "every 10m");
        CHECK(each->status().job == "work");
    }
    CHECK(node.status().fired == 1);
    CHECK(node.status("once").last_state == job_state::succeeded);
}

TEST_CASE("a schedule that cannot be kept is refused with its name and the reason") {
    using Catch::Matchers::ContainsSubstring;
    schedule_fleet fleet;
    schedule_node& node = fleet.node("");
    const auto refusal = [&](schedule_options when) -> std::string {
        try {
            node.add(when);
            return "taken";
        } catch (const failed& e) {
            return e.what();
        }
    };
    CHECK(refusal({.name = "s", .every = 10min}) == "taken");
    CHECK_THAT(refusal({.name = "s", .every = 10min}), ContainsSubstring("two schedules named \"s\""));
    CHECK_THAT(refusal({.name = "a", .cron = "0 3 * *"}),
               ContainsSubstring("schedule \"a\"") && ContainsSubstring("five fields"));
    CHECK_THAT(refusal({.name = "b", .cron = "0 3 * * *", .time_zone = "Europe/Atlantis"}),
               ContainsSubstring("schedule \"b\"") && ContainsSubstring("\"Europe/Atlantis\""));
    CHECK_THAT(refusal({.name = "c", .every = 10min, .per_node = true}), ContainsSubstring("no node"));
    CHECK_THAT(refusal({.name = "c d", .every = 10min}), ContainsSubstring("letters, digits"));
    CHECK_THAT(refusal({.name = "d"}), ContainsSubstring("says when"));
    CHECK_THAT(refusal({.name = "d", .cron = "0 3 * * *", .every = 10min}), ContainsSubstring("not several"));
    CHECK_THAT(refusal({.name = "d", .every = 10ms}), ContainsSubstring("at least 1s"));
    CHECK_THAT(refusal({.name = "d", .every = 10min, .time_zone = "UTC"}), ContainsSubstring("only a schedule with"));
    CHECK_THAT(refusal({.name = "d", .every = 10min, .misfire = misfire::catch_up}),
               ContainsSubstring("needs overlap::queue"));
    CHECK_THAT(refusal({.name = "d", .after_each = 10min, .overlap = overlap::queue}),
               ContainsSubstring("nothing overlaps"));
    CHECK_THAT(refusal({.name = "d", .every = 10min, .max_catch_up = 0}), ContainsSubstring("1 to 1000"));
}
