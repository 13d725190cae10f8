#include <memory>
#include <set>

#include "catch.hpp"
#include "jobs/job_run.hpp"
#include "jobs/ready_queues.hpp"

using namespace holdfast;

namespace {

struct table {
    explicit table(std::vector<worker_queue> how) : queues(how) {}
    void push(std::size_t in, int priority = 0) {
        claimed_job job{
            .lease = job_lease("x", 1), .id = {}, .what = {}, .queue = {}, .priority = priority, .extra = {}};
        runs.push_back(std::make_unique<job_run>(std::move(job), nullptr, in));
        queues.push(in, *runs.back(), priority);
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
    --t.queues[0].running;
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
    const auto first = t.queues.plan(100, 10, 50);
    REQUIRE(first.size() == 2);
    CHECK(first[0].from == std::vector<std::size_t>{0, 1});
    CHECK(first[0].limit == 50);
    CHECK(first[1].from == std::vector<std::size_t>{2});
    CHECK(first[1].limit == 14);
    t.queues[0].dry = true;
    const auto little = t.queues.plan(3, 0, 50);
    REQUIRE(little.size() == 1); // the other's turn comes with the next plan
    CHECK(little[0].limit == 3);
    t.queues.dry(true);
    CHECK(t.queues.plan(100, 10, 50).empty());
    CHECK(t.queues.any_dry());
    CHECK(!t.queues.worth_asking(10));
}

TEST_CASE("all claims of one plan together take no more than there is room for") {
    table t({{"a", 1, 10}, {"b", 1, 10}, {"c", 1, 4}, {"rest"}});
    std::set<std::size_t> asked;
    for (int i = 0; i < 8; ++i) {
        int together = 0;
        for (const auto& each : t.queues.plan(12, 0, 50)) {
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
    for (int i = 0; i < 40; ++i) a_first += t.queues.plan(10, 0, 10).front().from.front() == 0 ? 1 : 0;
    CHECK(a_first == 30);
}
