#include <thread>

#include "stores/postgres_support.hpp"
#include "stores/race.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

TEST_CASE("postgres: of completion and recovery exactly one counts, whichever comes first") {
    NEEDS_POSTGRES();
    test::postgres::desk d;
    const auto other = d.another();
    test::race_completion_against_recovery(d, *other, 100'000);
}

namespace {

// Somebody else holds one of two rows and comes for the other, while a settlement wants both.
void meets_another(bool forwards) {
    test::postgres::desk d;
    const auto ids = d.add(2);
    const auto claimed = d.claim(2);
    REQUIRE(claimed.size() == 2);
    const auto take = [&](int which) {
        return "SELECT 1 FROM " + d.space + ".jobs WHERE id = (SELECT id FROM " + d.space +
               ".jobs ORDER BY id LIMIT 1 OFFSET " + std::to_string(which) + ") FOR UPDATE; ";
    };
    const std::jthread another([&] {
        try {
            d.sql("BEGIN; " + take(forwards ? 1 : 0) + "SELECT pg_sleep(0.5); " + take(forwards ? 0 : 1) + "COMMIT");
        } catch (const std::exception&) { // it was the victim
        }
    });
    std::this_thread::sleep_for(200ms);
    std::vector<settlement> all;
    for (const claimed_job& each : claimed) all.push_back(d.success(each));
    for (const settled& each : d.await(d.jobs().settle(all))) CHECK(each.answer == write_answer::done);
    for (const identifier& each : ids) {
        CHECK(d.state_of(each) == job_state::succeeded);
        CHECK(d.view(each).history.size() == 1);
    }
}

} // namespace

// Whichever row a settlement takes first, one of the two meets it the other way round.
TEST_CASE("postgres: a settlement that is the victim of a deadlock is made again, and counts once") {
    NEEDS_POSTGRES();
    const auto deadlocks = [] {
        return std::stoi(test::postgres::shared_server().psql("SELECT sum(deadlocks) FROM pg_stat_database"));
    };
    const int before = deadlocks();
    meets_another(true);
    meets_another(false);
    CHECK(deadlocks() > before);
}
