// Completion against recovery: whoever comes first wins, and only that one.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include <holdfast/sleep.hpp>
#include <holdfast/when_all.hpp>

#include "catch.hpp"
#include "stores/support.hpp"

namespace holdfast::test {

namespace detail {

inline constexpr std::size_t callers = 4; // at once, on each side

// One call for each job, so that each has a fate of its own.
inline task<void> settle_each(runtime* on, job_store* jobs, const std::vector<claimed_job>* mine, std::size_t first,
                              std::vector<settled>* answers) {
    auto go = resume_on(*on);
    co_await go;
    for (std::size_t i = first; i < mine->size(); i += callers) {
        settlement one[] = {store_desk::success((*mine)[i])};
        auto settling = jobs->settle(one);
        (*answers)[i] = value_of(co_await std::move(settling)).at(0);
    }
}

// One by one, until there is none.
inline task<void> recover_each(runtime* on, job_store* jobs, recovery* found) {
    auto go = resume_on(*on);
    co_await go;
    for (bool more = true; more;) {
        auto recovering = jobs->recover_stale(1);
        const recovery one = value_of(co_await std::move(recovering));
        more = one.total() > 0;
        found->dead_letter += one.dead_letter;
        found->requeued += one.requeued + one.failed + one.deleted; // none of these may be
    }
}

} // namespace detail

// So many jobs, each completed by one store while another, on the same data, takes its worker for dead. Both go through the
// jobs in the same order, the one or the other first.
inline void race_completion_against_recovery(store_desk& d, store& other, int races) {
    constexpr int batch = 500;
    int completed = 0;
    int crashed = 0;
    int undecided = 0; // rounds in which both sides won some
    for (int round = 0; round < races / batch; ++round) {
        std::vector<new_job> jobs;
        for (int i = 0; i < batch; ++i) {
            jobs.push_back(d.job());
            jobs.back().max_crashes = 0;             // a crash ends it, so that each is raced for once
            jobs.back().keep_for = duration::zero(); // and so does success
        }
        d.await(d.jobs().enqueue(std::move(jobs)));
        const auto mine = d.await(d.jobs().claim({{"default"}, batch, std::chrono::microseconds{1}, "w"}));
        REQUIRE(mine.size() == batch);
        std::vector<settled> answers(mine.size());
        std::vector<recovery> found(detail::callers);
        std::vector<task<void>> all;
        for (std::size_t i = 0; i < detail::callers; ++i) {
            all.push_back(detail::settle_each(&d.on, &d.jobs(), &mine, i, &answers));
            all.push_back(detail::recover_each(&d.on, other.jobs(), &found[i]));
            if (round % 2 == 1) std::swap(all[all.size() - 1], all[all.size() - 2]);
        }
        sync_wait(d.on, when_all(std::move(all)));
        const auto done = static_cast<int>(std::ranges::count(answers, write_answer::done, &settled::answer));
        int dead = 0;
        for (const recovery& each : found) {
            REQUIRE(each.requeued == 0);
            dead += each.dead_letter;
        }
        REQUIRE(done + dead == batch);
        for (std::size_t i = 0; i < mine.size(); i += 50) { // some of them looked at
            const auto kept = d.await(d.jobs().get(mine[i].id));
            REQUIRE(std::holds_alternative<job_absence>(kept) == (answers[i].answer == write_answer::done));
        }
        REQUIRE(d.await(d.jobs().purge(job_state::dead_letter, duration::zero(), 2 * batch)) == dead);
        completed += done;
        crashed += dead;
        undecided += done > 0 && dead > 0 ? 1 : 0;
    }
    INFO(completed << " completed, " << crashed << " crashed, both in " << undecided << " rounds");
    CHECK(completed + crashed == races);
    CHECK(undecided > 0);
    CHECK(d.await(d.jobs().counts()).empty());
}

} // namespace holdfast::test
