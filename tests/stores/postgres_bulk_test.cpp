// Many jobs of one kind in one call.
#include "stores/postgres_support.hpp"

using namespace holdfast;
using test::postgres::desk;

TEST_CASE("postgres: of many jobs alike the new ones are made, and those there or forgotten are told") {
    NEEDS_POSTGRES();
    desk d;
    const new_job there = d.job("first");
    const new_job forgotten = d.job();
    d.await(d.jobs().enqueue({forgotten}));
    d.settle(d.claim_one().lease);
    REQUIRE(d.await(d.jobs().discard({forgotten.id})) == 1);
    d.await(d.jobs().enqueue({there}));

    std::vector<new_job> batch{there, forgotten};
    for (int i = 0; i < 50; ++i) {
        batch.push_back(d.job("body " + std::to_string(i)));
        if (i % 2 == 0) batch.back().extra.emplace("number", std::to_string(i));
    }
    batch.front().what.body = "second";
    const auto made = d.await(d.jobs().enqueue(batch));
    REQUIRE(made.size() == batch.size());
    for (std::size_t i = 0; i < batch.size(); ++i) {
        CHECK(made[i].id == batch[i].id);
        CHECK(made[i].created == (i >= 2));
    }
    CHECK(d.view(there.id).what.body == "first");
    CHECK(std::get<job_absence>(d.await(d.jobs().get(forgotten.id))) == job_absence::expired);
    for (std::size_t i = 2; i < batch.size(); ++i) {
        const job_view seen = d.view(batch[i].id);
        CHECK(seen.what.body == batch[i].what.body);
        CHECK(seen.extra == batch[i].extra);
        CHECK(seen.state == job_state::pending);
    }
    CHECK(d.claim(100).size() == 51);
}
