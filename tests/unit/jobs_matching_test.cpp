// Requeueing, cancelling and discarding all jobs that match a filter.
#include <optional>
#include <string>
#include <vector>

#include <holdfast/job_matching.hpp>

#include "catch.hpp"
#include "jobs_support.hpp"

using namespace holdfast;

namespace {

struct letters : test::job_bench {
    // So many jobs of a queue that ended so, or wait.
    std::vector<identifier> add(int count, std::string queue, std::optional<settlement::kind> end = {}) {
        std::vector<identifier> made;
        for (int i = 0; i < count; ++i) {
            new_job one;
            one.id = ids.next();
            one.what = {"letter", 1, "text/plain", ""};
            one.queue = queue;
            made.push_back(one.id);
            get(kept->jobs()->enqueue({one}));
            if (end) settle(claim({queue}).value(), *end);
        }
        return made;
    }
    std::uint64_t count(job_state state, const std::string& queue) {
        std::uint64_t total = 0;
        for (const job_count& each : get(kept->jobs()->counts()))
            if (each.queue == queue && each.state == state) total += each.count;
        return total;
    }
};

} // namespace

TEST_CASE("all dead letters of a queue are requeued, over several pages, and no others") {
    letters all;
    all.add(1203, "mail", settlement::kind::dead_letter);
    all.add(3, "mail", settlement::kind::succeed);
    all.add(5, "bank", settlement::kind::dead_letter);

    CHECK(all.get(all.client.requeue_all({.state = job_state::dead_letter, .queue = "mail"})) == 1203);
    CHECK(all.count(job_state::pending, "mail") == 1203);
    CHECK(all.count(job_state::succeeded, "mail") == 3);
    CHECK(all.count(job_state::dead_letter, "bank") == 5);
    CHECK(all.get(all.client.requeue_all({.state = job_state::dead_letter, .queue = "mail"})) == 0);
}

TEST_CASE("without a state, what cannot be requeued is left alone and not counted") {
    letters all;
    all.add(2, "mail", settlement::kind::dead_letter);
    all.add(2, "mail", settlement::kind::fail);
    all.add(3, "mail", settlement::kind::succeed);
    all.add(4, "mail");
    CHECK(all.get(all.client.requeue_all({.queue = "mail"})) == 4);
    CHECK(all.count(job_state::pending, "mail") == 8);
}

TEST_CASE("all that match are cancelled, and all that have ended are discarded") {
    letters all;
    const auto gone = all.add(700, "mail", settlement::kind::dead_letter);
    all.add(600, "mail");
    CHECK(all.get(all.client.cancel_all({.state = job_state::pending, .queue = "mail"})) == 600);
    CHECK(all.count(job_state::cancelled, "mail") == 600);
    CHECK(all.get(all.client.discard_all({.state = job_state::dead_letter})) == 700);
    CHECK(std::get<job_absence>(all.get(all.client.get(gone.front()))) == job_absence::expired);
    CHECK(all.count(job_state::cancelled, "mail") == 600);
}

TEST_CASE("single jobs are requeued and discarded by their ids") {
    letters all;
    const auto dead = all.add(3, "mail", settlement::kind::dead_letter);
    CHECK(all.get(all.client.requeue({dead[0], dead[1]})) == 2);
    CHECK(all.look(dead[0]).generation == 2);
    CHECK(all.get(all.client.discard({dead[0], dead[2]})) == 1); // the first waits again
    CHECK(all.count(job_state::pending, "mail") == 2);
}

TEST_CASE("attempts that were made in process count in the first generation alone") {
    const headers three{{std::string(job_header::attempts_before), "3"}};
    CHECK(attempts_before(three, 1) == 3);
    CHECK(attempts_before(three, 2) == 0);
    CHECK(attempts_before({}, 1) == 0);
    for (const std::string odd : {"", "-2", "3 ", "three", "99999999999999999999"})
        CHECK(attempts_before({{std::string(job_header::attempts_before), odd}}, 1) == 0);
}
