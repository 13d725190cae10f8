// Thousands of schedules on virtual time, each with one to five faults at calls to the store: a process dies before or
// after the call is applied, is frozen for longer than its lease, does not hear the answer, or loses the store for a
// while. HOLDFAST_SEED=n runs schedule n alone.
#include <cstdlib>
#include <set>
#include <string>
#include <tuple>

#include "catch.hpp"
#include "crash_schedule.hpp"

using namespace holdfast;
using test::callers;
using test::crash_schedule;
using test::fault;
using test::fault_names;
using test::planned_fault;

namespace {

std::string text_of(const std::string& who, const planned_fault& what) {
    const auto name_of = [](test::store_call call) {
        return std::string(test::store_call_names[static_cast<std::size_t>(call)]);
    };
    return who + " " + std::string(fault_names[static_cast<std::size_t>(what.what)]) + " " +
           (what.call ? name_of(*what.call) : "call") + " " + std::to_string(what.number) +
           (what.hit ? what.call ? "" : ", " + name_of(*what.hit) : ", which never came") + "\n";
}

std::string describe(const crash_schedule& of) {
    std::string text;
    for (const planned_fault& each : of.faults_of_client()) text += text_of("the client", each);
    for (std::size_t i = 0; i < of.workers(); ++i)
        for (const planned_fault& each : of.faults_of_worker(i))
            text += text_of("worker " + std::to_string(i + 1), each);
    return text;
}

// What happened in any of the schedules.
struct coverage {
    std::set<std::pair<test::caller, fault>> matrix;
    std::set<std::pair<int, fault>> deaths; // of the first worker, by the number of its call
    int with_several = 0;                   // faults that happened
    int with_third_worker = 0;

    void add(const crash_schedule& of) {
        int happened = 0;
        const auto count = [&](bool client, const planned_fault& each) {
            if (!each.hit) return;
            ++happened;
            matrix.insert({{client, *each.hit}, each.what});
        };
        for (const planned_fault& each : of.faults_of_client()) count(true, each);
        for (std::size_t i = 0; i < of.workers(); ++i)
            for (const planned_fault& each : of.faults_of_worker(i)) count(false, each);
        for (const planned_fault& each : of.faults_of_worker(0))
            if (each.hit && !each.call) deaths.insert({each.number, each.what});
        if (happened > 1) ++with_several;
        if (of.workers() > 2) ++with_third_worker;
    }

    void check_complete(std::uint64_t schedules) const {
        for (const test::caller& each : callers)
            for (std::size_t how = 0; how < std::size(fault_names); ++how) {
                INFO((each.client ? "the client " : "a worker ")
                     << fault_names[how] << " " << test::store_call_names[static_cast<std::size_t>(each.call)]);
                CHECK(matrix.contains({each, static_cast<fault>(how)}));
            }
        for (int number = 1; number <= test::first_calls; ++number) {
            INFO("the first worker dies at call " << number);
            CHECK(deaths.contains({number, fault::dies_before}));
            CHECK(deaths.contains({number, fault::dies_after}));
        }
        CHECK(with_several > static_cast<int>(schedules / 5));
        CHECK(with_third_worker > static_cast<int>(schedules / 20));
    }
};

void run_schedules(std::uint64_t first, std::uint64_t last) {
    const char* chosen = std::getenv("HOLDFAST_SEED");
    if (chosen != nullptr) first = last = std::strtoull(chosen, nullptr, 10);
    coverage seen;
    for (std::uint64_t seed = first; seed <= last; ++seed) {
        crash_schedule each(seed);
        const std::string wrong = each.run();
        if (!wrong.empty()) FAIL("HOLDFAST_SEED=" << seed << ":\n" << describe(each) << wrong);
        seen.add(each);
    }
    if (chosen == nullptr) seen.check_complete(last - first + 1);
}

} // namespace

TEST_CASE("whatever goes wrong at any store call, nothing is lost or done too often: schedules 1 to 2500") {
    run_schedules(1, 2500);
}
TEST_CASE("whatever goes wrong at any store call, nothing is lost or done too often: schedules 2501 to 5000") {
    run_schedules(2501, 5000);
}
TEST_CASE("whatever goes wrong at any store call, nothing is lost or done too often: schedules 5001 to 7500") {
    run_schedules(5001, 7500);
}
TEST_CASE("whatever goes wrong at any store call, nothing is lost or done too often: schedules 7501 to 10000") {
    run_schedules(7501, 10'000);
}

TEST_CASE("a schedule that is run again is the same to the last line") {
    for (const std::uint64_t seed : {1u, 17u, 4711u, 9876u}) {
        crash_schedule once(seed);
        crash_schedule again(seed);
        CHECK(once.run() == again.run());
        CHECK(once.history() == again.history());
    }
}
