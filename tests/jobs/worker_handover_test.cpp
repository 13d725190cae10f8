// Jobs that the store hands to an idle worker.
#include <map>

#include "catch.hpp"
#include "faulty_jobs.hpp"
#include "worker_lab.hpp"

using namespace std::chrono_literals;
using namespace holdfast;
using test::worker_lab;

namespace {

struct handing_lab : worker_lab {
    handing_lab() : store_in_front(*held->jobs()) {
        store_in_front.hands_over = true;
        store_in_front.gives_hints = false;
        over = &store_in_front;
    }
    // As a store does it: enqueued, claimed for the worker, handed over, in one go.
    identifier hand_over(const std::string& type = "work", const std::string& queue = "default") {
        new_job one = job(type);
        one.queue = queue;
        const identifier id = enqueue(one);
        auto claimed = get(held->jobs()->claim({{queue}, 1, 1min, "lab", {}}));
        REQUIRE(claimed.size() == 1);
        store_in_front.hand(std::move(claimed.front()));
        return id;
    }
    test::faulty_jobs store_in_front;
};

} // namespace

TEST_CASE("a job that is handed over begins without a claim, and the worker says that it is idle again") {
    handing_lab lab;
    std::vector<time_point> began;
    lab.add({.name = "work"}, [&](payload, job_context& c) {
        began.push_back(c.runtime().now());
        return test::ended_well();
    });
    lab.start({.poll = 1h});
    lab.on.advance(1s);
    CHECK(lab.store_in_front.idle == std::vector<std::string>{"default"});
    lab.store_in_front.idle.clear();
    const time_point handed_at = lab.on.now();
    const identifier id = lab.hand_over();
    lab.on.advance(1s);
    REQUIRE(began.size() == 1);
    CHECK(began.front() == handed_at);
    CHECK(lab.state(id) == job_state::succeeded);
    CHECK(lab.look(id).attempts == 1);
    CHECK(lab.store_in_front.idle == std::vector<std::string>{"default"});
}

TEST_CASE("a job that is handed to a worker without a free slot goes back unburnt") {
    handing_lab lab;
    std::map<std::string, int> ran;
    lab.add({.name = "work"}, [&](payload, job_context& c) {
        ++ran[std::string(c.queue())];
        return test::slept(c, 10min);
    });
    lab.start({.queues = {{"mail"}, {"reports"}}, .concurrency = 1, .prefetch = 0, .poll = 1h});
    lab.on.advance(1s);
    const identifier first = lab.hand_over("work", "mail");
    lab.on.advance(1s);
    CHECK(lab.state(first) == job_state::processing);
    const identifier second = lab.hand_over("work", "reports");
    lab.on.advance(1s);
    CHECK(ran["mail"] == 1);
    CHECK(ran["reports"] == 0);
    CHECK(lab.state(second) == job_state::pending); // another worker may have it
    CHECK(lab.look(second).attempts == 0);
}

TEST_CASE("a queue's own limit holds for what is handed over") {
    handing_lab lab;
    lab.add({.name = "work"}, [&](payload, job_context& c) { return test::slept(c, 10min); });
    lab.start({.queues = {{"mail", 1, 1}, {"reports"}}, .concurrency = 10, .prefetch = 0, .poll = 1h});
    lab.on.advance(1s);
    const identifier first = lab.hand_over("work", "mail");
    lab.on.advance(1s);
    const identifier second = lab.hand_over("work", "mail");
    const identifier other = lab.hand_over("work", "reports");
    lab.on.advance(1s);
    CHECK(lab.state(first) == job_state::processing);
    CHECK(lab.state(second) == job_state::pending);
    CHECK(lab.state(other) == job_state::processing);
}

TEST_CASE("what is handed to a worker that is paused goes back unburnt") {
    handing_lab lab;
    lab.add({.name = "work"}, [&](payload, job_context&) { return test::ended_well(); });
    lab.start({.poll = 1h}).pause();
    lab.on.advance(1s);
    const identifier id = lab.hand_over();
    lab.on.advance(1s);
    CHECK(lab.state(id) == job_state::pending);
    CHECK(lab.look(id).attempts == 0);
}
