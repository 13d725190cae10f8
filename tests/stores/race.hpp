// Completion against recovery: whoever comes first wins, and only that one.
#pragma once

#include <algorithm>
#include <vector>

#include <holdfast/when_all.hpp>

#include "catch.hpp"
#include "stores/support.hpp"

namespace holdfast::test {

inline task<void> settle_into(job_store* jobs, std::vector<settlement> all, std::vector<settled>* answers) {
    auto settling = jobs->settle(all);
    *answers = value_of(co_await std::move(settling));
}
inline task<void> recover_into(job_store* jobs, recovery* found) {
    auto recovering = jobs->recover_stale(1000);
    *found = value_of(co_await std::move(recovering));
}

// A hundred thousand jobs, each completed by one store while another on the same data takes its worker for dead; in both
// orders. The store must not keep what succeeded.
inline void race_completion_against_recovery(store_desk& d, store& other) {
    constexpr int batch = 500;
    constexpr int rounds = 200;
    int completed = 0;
    int crashed = 0;
    for (int round = 0; round < rounds; ++round) {
        std::vector<new_job> jobs;
        for (int i = 0; i < batch; ++i) {
            jobs.push_back(d.job());
            jobs.back().max_crashes = 0; // a crash ends it, so that each is raced for once
        }
        d.await(d.jobs().enqueue(std::move(jobs)));
        const auto mine = d.await(d.jobs().claim({{"default"}, batch, std::chrono::microseconds{1}, "w"}));
        REQUIRE(mine.size() == batch);
        std::vector<settlement> all;
        for (const claimed_job& each : mine) all.push_back(d.success(each));
        std::vector<settled> answers;
        recovery found;
        std::vector<task<void>> both;
        both.push_back(settle_into(&d.jobs(), all, &answers));
        both.push_back(recover_into(other.jobs(), &found));
        if (round % 2 == 1) std::swap(both[0], both[1]);
        sync_wait(d.on, when_all(std::move(both)));
        const auto done = static_cast<int>(std::ranges::count(answers, write_answer::done, &settled::answer));
        REQUIRE(done + found.total() == batch);
        completed += done;
        crashed += found.dead_letter;
        for (std::size_t i = 0; i < mine.size(); i += 100) { // some of them looked at
            const auto kept = d.await(d.jobs().get(mine[i].id));
            REQUIRE(std::holds_alternative<job_absence>(kept) == (answers[i].answer == write_answer::done));
        }
        d.await(d.jobs().purge(job_state::dead_letter, duration::zero(), batch));
    }
    CHECK(completed + crashed == batch * rounds);
    CHECK(completed > 0);
    CHECK(crashed > 0);
    CHECK(d.await(d.jobs().counts()).empty());
}

} // namespace holdfast::test
