#include <algorithm>
#include <chrono>
#include <memory>
#include <set>

#include "catch.hpp"
#include "jobs/job_run.hpp"
#include "jobs/ready_queues.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

namespace {

struct table {
    explicit table(const std::vector<worker_queue>& how, int slots = 100, int most_ahead = 1000)
        : queues(how, slots, most_ahead) {}
    void push(std::size_t in, int priority = 0) {
        claimed_job job{
            .lease = job_lease("x", 1), .id = {}, .what = {}, .queue = {}, .priority = priority, .extra = {}};
        runs.push_back(std::make_unique<job_run>(std::move(job), nullptr, in));
        queues.push(in, *runs.back(), priority);
    }
    // So many run in there, and each has taken so long.
    void has_run(std::size_t in, int times, duration each) {
        for (int i = 0; i < times; ++i) {
            push(in);
            queues.pop();
            queues.ended(in, each);
        }
    }
    int limit_of(std::size_t in) {
        for (const auto& each : queues.plan(10'000))
            if (std::ranges::find(each.from, in) != each.from.end()) return each.limit;
        return 0;
    }
    ready_queues queues;
    std::vector<std::unique_ptr<job_run>> runs;
};

} // namespace

TEST_CASE("ready jobs are popped by the weights of their queues") {
    table t({{"heavy", 3}, {"light", 1}});
    for (int i = 0; i < 8; ++i) {
        t.push(0);
        t.push(1);
    }
    std::string order;
    for (int i = 0; i < 8; ++i) order += t.queues.pop()->queue == 0 ? 'h' : 'l';
    CHECK(std::ranges::count(order, 'h') == 6);
    CHECK(order.substr(0, 4) != "hhhl"); // spread, not in blocks
    CHECK(t.queues.ready() == 8);
}

TEST_CASE("a queue at its own limit lets the others go first, and one that is empty costs nobody anything") {
    table t({{"limited", 10, 1}, {"other", 1}, {"empty", 100}});
    t.push(0);
    t.push(0);
    t.push(1);
    CHECK(t.queues.pop()->queue == 0);
    CHECK(t.queues.pop()->queue == 1);
    CHECK(t.queues.pop() == nullptr);
    CHECK(t.queues.ready() == 1);
    CHECK(!t.queues.startable());
    t.queues.ended(0, 1s);
    CHECK(t.queues.startable());
    CHECK(t.queues.pop()->queue == 0);
}

TEST_CASE("within a queue priorities go first, and equals as they came") {
    table t({{"one"}});
    for (const int priority : {0, 5, 0, 9, 5}) t.push(0, priority);
    std::vector<const job_run*> popped;
    while (const job_run* each = t.queues.pop()) popped.push_back(each);
    CHECK(popped == std::vector<const job_run*>{t.runs[3].get(), t.runs[1].get(), t.runs[4].get(), t.runs[0].get(),
                                                t.runs[2].get()});
}

TEST_CASE("claims take queues without a limit together, limited ones apart, and dry ones not at all") {
    table t({{"a", 2}, {"b", 1}, {"limited", 1, 4}});
    const auto first = t.queues.plan(50);
    REQUIRE(first.size() == 2);
    CHECK(first[0].from == std::vector<std::size_t>{0, 1});
    CHECK(first[0].limit == 50);
    CHECK(first[0].room == 100);
    CHECK(first[1].from == std::vector<std::size_t>{2});
    CHECK(first[1].limit == 4);
    t.queues[0].dry = true;
    CHECK(t.queues.plan(50).front().from == std::vector<std::size_t>{1});
    CHECK(t.queues.wants_claim());
    t.queues.dry(true);
    CHECK(t.queues.plan(50).empty());
    CHECK(t.queues.any_dry());
    CHECK(!t.queues.wants_claim());
}

TEST_CASE("all claims of one plan together take no more than there is room for") {
    table t({{"a", 1, 10}, {"b", 1, 10}, {"c", 1, 4}, {"rest"}}, 12);
    std::set<std::size_t> asked;
    for (int i = 0; i < 8; ++i) {
        int together = 0;
        for (const auto& each : t.queues.plan(50)) {
            together += each.limit;
            asked.insert(each.from.begin(), each.from.end());
        }
        CHECK(together == 12);
    }
    CHECK(asked.size() == 4); // and everybody gets a turn
}

TEST_CASE("which queue is asked first follows the weights") {
    table t({{"a", 3}, {"b", 1}});
    int a_first = 0;
    for (int i = 0; i < 40; ++i) a_first += t.queues.plan(10).front().from.front() == 0 ? 1 : 0;
    CHECK(a_first == 30);
}

TEST_CASE("a queue is claimed ahead by how quick its own jobs are, where it has a limit") {
    table t({{"quick"}, {"slow", 1, 4}, {"brisk", 1, 10}});
    t.has_run(0, 100, 1ms);
    t.has_run(1, 10, 600s);
    t.has_run(2, 10, 10ms);
    CHECK(t.limit_of(0) == 1100);
    CHECK(t.limit_of(1) == 4);
    CHECK(t.limit_of(2) == 110);
}

TEST_CASE("jobs that wait for their own queue's limit are in nobody's way") {
    table t({{"quick"}, {"slow", 1, 4}}, 100, 1000);
    for (int i = 0; i < 900; ++i) t.push(1); // handed over, say, while they seemed quick
    for (int i = 0; i < 4; ++i) REQUIRE(t.queues.pop() != nullptr);
    CHECK(t.limit_of(1) == 0);
    CHECK(t.limit_of(0) == 96);
    CHECK(t.queues.has_room(0));
    CHECK_FALSE(t.queues.has_room(1));
    for (int i = 0; i < 200; ++i) t.push(1);
    CHECK(t.limit_of(0) == 0); // but no more than that is held beyond what runs
}

TEST_CASE("a queue that has shown nothing yet gets its slots beside one whose quick jobs are held ahead") {
    table t({{"quick"}, {"limited", 1, 4}}, 10, 100);
    t.has_run(0, 100, 1ms);
    for (int i = 0; i < 60; ++i) t.push(0);
    for (int i = 0; i < 10; ++i) t.queues.pop();
    t.queues[0].dry = true; // whose turn it is does not matter here
    CHECK(t.limit_of(1) == 4);

    table other({{"quick", 1, 10}, {"unlimited"}}, 10, 100);
    other.has_run(0, 100, 1ms);
    for (int i = 0; i < 60; ++i) other.push(0);
    for (int i = 0; i < 10; ++i) other.queues.pop();
    other.queues[0].dry = true;
    CHECK(other.limit_of(1) == 10);
}

TEST_CASE("slow queues are claimed no further than there are slots, however quick another one was") {
    table t({{"quick"}, {"a", 1, 100}, {"b", 1, 100}}, 100, 1000);
    t.has_run(0, 100, 1ms);
    for (int i = 0; i < 50; ++i) {
        t.push(1);
        t.push(2);
    }
    while (t.queues.pop() != nullptr) {
    }
    REQUIRE(t.queues.running() == 100);
    t.queues[0].dry = true;
    CHECK_FALSE(t.queues.wants_claim());
    CHECK(t.limit_of(1) == 0);
}

TEST_CASE("no call is made for a job or two as long as there are enough at hand") {
    table t({{"only"}}, 10, 100);
    t.has_run(0, 100, 1ms);
    for (int i = 0; i < 110; ++i) t.push(0);
    for (int i = 0; i < 10; ++i) t.queues.pop();
    CHECK_FALSE(t.queues.wants_claim());
    for (int i = 0; i < 49; ++i) {
        t.queues.ended(0, 1ms);
        t.queues.pop();
    }
    CHECK_FALSE(t.queues.wants_claim());
    t.queues.ended(0, 1ms);
    t.queues.pop();
    CHECK(t.limit_of(0) == 50);
}
