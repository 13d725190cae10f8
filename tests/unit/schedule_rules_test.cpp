// What happens to slots that overlap or were missed, and the fixed delay.
#include "catch.hpp"
#include "schedule_lab.hpp"

using namespace holdfast;
using namespace std::chrono_literals;
using test::schedule_fleet;
using test::schedule_node;
using seconds_list = std::vector<long>;

namespace {

// Every ten minutes; nobody works from 00:05 to 01:05, so that six slots are missed. What was fired by 01:06.
seconds_list fired_after_absence(schedule_options when, int nodes) {
    schedule_fleet fleet;
    when.name = "s";
    when.every = 10min;
    for (int i = 0; i < nodes; ++i) fleet.node_with(when, 0s, "n" + std::to_string(i));
    fleet.on.advance(5min);
    for (schedule_node& each : fleet.nodes) each.stop_worker();
    fleet.on.advance(1h);
    for (schedule_node& each : fleet.nodes) each.start_worker();
    fleet.on.advance(1min);
    return fleet.fired();
}

} // namespace

TEST_CASE("slots that were missed while no worker ran are fired by the misfire rule") {
    const int nodes = GENERATE(1, 4);
    CAPTURE(nodes);
    CHECK(fired_after_absence({.misfire = misfire::fire_once}, nodes) == seconds_list{3570});
    CHECK(fired_after_absence({.misfire = misfire::skip}, nodes).empty());
    CHECK(fired_after_absence({.overlap = overlap::concurrent, .misfire = misfire::catch_up}, nodes) ==
          seconds_list{570, 1170, 1770, 2370, 2970, 3570});
    CHECK(fired_after_absence({.overlap = overlap::queue, .misfire = misfire::catch_up}, nodes) ==
          seconds_list{570, 1170, 1770, 2370, 2970, 3570});
    CHECK(fired_after_absence({.overlap = overlap::concurrent, .misfire = misfire::catch_up, .max_catch_up = 2},
                              nodes) == seconds_list{2970, 3570});
    CHECK(fired_after_absence({.misfire = misfire::skip, .misfire_after = 30min}, nodes).size() == 1);
}

TEST_CASE("a paused queue makes no more than one tick wait") {
    schedule_fleet fleet;
    fleet.node_with({.name = "s", .every = 1min});
    REQUIRE(sync_wait(fleet.on, fleet.held->jobs()->pause("default")));
    fleet.on.advance(3h);
    CHECK(fleet.jobs_of("holdfast.tick").size() == 1);
    REQUIRE(sync_wait(fleet.on, fleet.held->jobs()->resume("default")));
    fleet.on.advance(20s);
    CHECK(fleet.fired().size() == 1);
}

TEST_CASE("a slot that comes while the run before goes on is skipped, queued or run beside it") {
    schedule_fleet fleet;
    SECTION("skip") {
        schedule_node& node = fleet.node_with({.name = "s", .every = 10min}, 25min);
        fleet.on.advance(2h);
        CHECK(fleet.begun == seconds_list{570, 2370, 4170, 5970});
        CHECK(fleet.most_running == 1);
        CHECK(node.status().fired == 4);
        CHECK(node.status().skipped == 8);
        CHECK(node.status().last_state == job_state::processing);
        fleet.on.advance(4min); // ended, and the slots since it began were skipped
        schedule_node& other = fleet.node("other");
        other.add({.name = "s", .every = 10min});
        CHECK(other.status().last_run == node.status().last_run);
    }
    SECTION("queue") {
        fleet.node_with({.name = "s", .every = 10min, .overlap = overlap::queue}, 15min);
        fleet.on.advance(31min);
        CHECK(fleet.fired() == seconds_list{570, 1170});
        CHECK(fleet.most_running == 1);
        REQUIRE(fleet.begun.size() == 2);
        CHECK(fleet.begun[1] >= 570 + 900);
        CHECK(fleet.begun[1] <= 570 + 900 + 60);
        fleet.on.advance(2h);
        CHECK(fleet.most_running == 1);
        CHECK(fleet.begun.size() >= 9);
    }
    SECTION("queue, after one that took long") {
        fleet.first_takes = 5h;
        fleet.node_with({.name = "s", .every = 1h, .overlap = overlap::queue}, 1min);
        fleet.on.advance(6h + 30min);
        REQUIRE(fleet.begun.size() >= 5);
        CHECK(fleet.most_running == 1);
        for (std::size_t i = 2; i < 5; ++i) // how long the run before took counts, not how long who has waited
            CHECK(fleet.begun[i] - fleet.begun[i - 1] <= 60 + 60 / 8 + 1);
    }
    SECTION("concurrent") {
        fleet.node_with({.name = "s", .every = 10min, .overlap = overlap::concurrent}, 25min);
        fleet.on.advance(1h);
        CHECK(fleet.begun == seconds_list{570, 1170, 1770, 2370, 2970, 3570});
        CHECK(fleet.most_running == 3);
    }
}

TEST_CASE("slots that were missed and must queue run one after the other, oldest first") {
    schedule_fleet fleet;
    schedule_node& node = fleet.node();
    node.add({.name = "s", .every = 10min, .overlap = overlap::queue, .misfire = misfire::catch_up}, 1min);
    node.start(false);
    fleet.on.advance(45min);
    node.start_worker();
    fleet.on.advance(4min);
    fleet.on.advance(1min); // the fifth slot is at 49:30
    CHECK(fleet.most_running == 1);
    REQUIRE(fleet.begun.size() >= 4);
    CHECK(std::ranges::is_sorted(fleet.begun));
    std::vector<std::pair<store_time, long>> runs;
    for (const job_view& each : fleet.jobs_of("work"))
        runs.emplace_back(each.created, fleet.since(each.extra.at("schedule-slot")));
    std::ranges::sort(runs);
    CHECK(runs[0].second == 570);
    CHECK(runs[1].second == 1170);
    CHECK(runs[2].second == 1770);
    CHECK(runs[3].second == 2370);
}

TEST_CASE("a fixed delay counts from the end of the run before") {
    schedule_fleet fleet;
    schedule_node& node = fleet.node_with({.name = "s", .after_each = 5min}, 100s);
    fleet.on.advance(10s);
    CHECK(node.status().next_due);
    fleet.on.advance(30min);
    CHECK(fleet.begun == seconds_list{300, 700, 1100, 1500});
    CHECK(node.status().last_run);
    CHECK(node.status().fired == 4);
}

TEST_CASE("a fixed delay goes on after a run that failed, and begins at once if it says so") {
    schedule_fleet fleet;
    schedule_node& node = fleet.node();
    node.add({.name = "s", .after_each = 1min, .at_start = true}, 30s, true);
    node.start();
    fleet.on.advance(5min);
    CHECK(fleet.begun == seconds_list{0, 90, 180, 270});
    CHECK(node.status().last_state == job_state::dead_letter);
}

TEST_CASE("many schedulers keep one chain of a fixed delay, runs longer than their rounds included") {
    const duration takes = GENERATE(duration(1s), duration(10min));
    schedule_fleet fleet(3);
    for (int i = 0; i < 10; ++i) {
        schedule_node& each = fleet.node("n" + std::to_string(i));
        each.add({.name = "s", .after_each = 5min}, takes);
    }
    for (schedule_node& each : fleet.nodes) each.start();
    fleet.on.advance(3h);
    CHECK(fleet.most_running == 1);
    for (std::size_t i = 1; i < fleet.begun.size(); ++i) {
        const auto gap = std::chrono::seconds(fleet.begun[i] - fleet.begun[i - 1]);
        CHECK(gap >= 5min + takes - 1s); // whole seconds
        CHECK(gap <= 5min + takes + 3s);
    }
    CHECK(fleet.begun.size() >= (takes == 1s ? 35u : 11u));
    for (schedule_node& each : fleet.nodes) { // wherever the chain has got to
        const schedule_status status = each.status();
        CHECK(status.chained);
        CHECK(status.last_state);
        CHECK((status.next_due.has_value() || status.last_state == job_state::processing));
    }
}

TEST_CASE("a fixed delay never comes early and goes on, whichever call to the store a node dies at") {
    for (const bool applied : {false, true})
        for (int call = 1; call <= 40; ++call) {
            CAPTURE(applied, call);
            schedule_fleet fleet;
            fleet.clock.late = 20s; // what a node is told may be old when it writes
            const schedule_options pause{.name = "s", .after_each = 1min, .at_start = true};
            schedule_node& first = fleet.node("first");
            first.add(pause, 5s);
            first.die_at(call, applied);
            first.start();
            schedule_node& second = fleet.node("second");
            second.add(pause, 5s);
            second.start(false);
            fleet.on.advance(3min);
            second.start_worker();
            for (int i = 0; i < 12; ++i) { // others start, at any point of the cycle
                schedule_node& late = fleet.node("late");
                late.add(pause, 5s);
                late.start(false);
                fleet.on.advance(59s);
            }
            std::vector<store_time> created;
            for (const job_view& each : fleet.jobs_of("work")) {
                created.push_back(each.created);
                CHECK((each.state == job_state::succeeded || each.state == job_state::processing));
            }
            std::ranges::sort(created);
            CHECK(created.size() >= 7);
            for (std::size_t i = 1; i < created.size(); ++i) CHECK(created[i] - created[i - 1] >= 65s);
            CHECK(fleet.now() - created.back() < 3min);
        }
}
