// A process as its store sees it: its calls take a while, and some of them go
// wrong in a way that was planned.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <holdfast/backoff.hpp>
#include <holdfast/runtime.hpp>
#include <holdfast/sleep.hpp>
#include <holdfast/task_scope.hpp>

#include "faulty_jobs.hpp"

namespace holdfast::test {

enum class fault : unsigned char {
    dies_before, // the call is not made
    dies_after,  // the call was applied
    freezes_before,
    freezes_after,
    is_late,      // the call alone is on its way for that long; the process goes on
    loses_answer, // the call was applied, and the process does not know
    loses_store,  // for this call and those that follow
};
inline constexpr std::string_view fault_names[] = {"dies before",       "dies after",   "freezes before",
                                                   "freezes after",     "is late with", "loses the answer of",
                                                   "loses the store at"};
inline constexpr bool is_deadly(fault what) noexcept {
    return what == fault::dies_before || what == fault::dies_after;
}

struct planned_fault {
    std::optional<store_call> call; // nothing: of any kind
    int number = 1;                 // the first of those calls, the second, …
    fault what = fault::dies_before;
    std::optional<store_call> hit{}; // what it happened to
};

class faulty_process {
public:
    // Freezes, and calls that are late, take `pause`.
    faulty_process(job_store& inner, runtime& on, std::uint64_t seed, duration pause)
        : store(inner), on_(on), random_(seed), pause_(pause) {
        store.around = [this](store_call which, task<void> call) { return pass(which, std::move(call)); };
        store.on_handed = [this](claimed_job job, std::function<void(claimed_job)> to) {
            arriving_.spawn(arrive(std::move(job), std::move(to)));
        };
    }

    bool alive() const noexcept { return alive_; }
    // As another process of the same name.
    void start_again() noexcept { alive_ = true; }
    // Not frozen, and nothing is on its way to the store or from it.
    bool at_rest() const noexcept { return under_way_ == 0 && (!alive_ || on_.now() >= frozen_until_); }
    // Ends once it is not frozen.
    task<void> awake() {
        while (alive_ && on_.now() < frozen_until_) co_await sleep_for(on_, frozen_until_ - on_.now());
    }
    // Nothing that is handed over arrives any more. Ends when nothing is on its
    // way; await it once.
    task<void> close() {
        closed_ = true;
        return arriving_.join();
    }

    std::vector<planned_fault> faults;
    faulty_jobs store;

private:
    struct counted {
        int& number;
        explicit counted(int& of) : number(of) { ++number; }
        ~counted() { --number; }
        counted(const counted&) = delete;
        counted& operator=(const counted&) = delete;
    };

    task<std::optional<error>> pass(store_call which, task<void> call) {
        const counted one(under_way_);
        if (!alive_) co_return dead();
        if (outage_ > 0) {
            --outage_;
            co_return away();
        }
        const auto what = fault_at(which);
        if (what == fault::dies_before) co_return die();
        if (what == fault::loses_store) {
            outage_ = 30;
            co_return away();
        }
        if (what == fault::freezes_before) freeze();
        auto sending = awake();
        co_await std::move(sending);
        if (!alive_) co_return dead();
        auto going = travel(what == fault::is_late ? pause_ : duration::zero());
        co_await std::move(going);
        co_await std::move(call); // also when its process died meanwhile
        if (what == fault::dies_after) co_return die();
        if (what == fault::freezes_after) freeze();
        auto coming = travel({});
        co_await std::move(coming);
        auto reading = awake();
        co_await std::move(reading);
        if (!alive_) co_return dead();
        if (what == fault::loses_answer) co_return error{errc::unknown_outcome, "connection lost", std::nullopt};
        co_return std::nullopt;
    }

    task<void> arrive(claimed_job job, std::function<void(claimed_job)> to) {
        const counted one(under_way_);
        if (!alive_ || outage_ > 0) co_return;
        const auto what = fault_at(store_call::handed);
        if (what == fault::dies_before) die();
        if (what == fault::freezes_before) freeze();
        if (what == fault::loses_store) outage_ = 30;
        if (what == fault::loses_store || what == fault::loses_answer) co_return;
        auto coming = travel(what == fault::is_late ? pause_ : duration::zero());
        co_await std::move(coming);
        auto reading = awake();
        co_await std::move(reading);
        if (!alive_ || closed_) co_return;
        to(std::move(job));
        if (what == fault::dies_after) die();
        if (what == fault::freezes_after) freeze();
    }

    std::optional<fault> fault_at(store_call which) {
        const int of_its_kind = ++made_[static_cast<std::size_t>(which)];
        if (which != store_call::handed) ++all_;
        for (planned_fault& each : faults) {
            if (each.hit) continue;
            const bool now = each.call ? *each.call == which && each.number <= of_its_kind
                                       : which != store_call::handed && each.number <= all_;
            if (!now) continue;
            each.hit = which;
            return each.what;
        }
        return std::nullopt;
    }
    task<void> travel(duration more) {
        const duration usual = std::chrono::microseconds(random_.next() % 3000);
        co_await sleep_for(on_, usual + more);
    }
    void freeze() noexcept { frozen_until_ = on_.now() + pause_; }
    error die() {
        alive_ = false;
        return dead();
    }
    static error dead() { return {errc::unavailable, "this process is dead", std::nullopt}; }
    static error away() { return {errc::unavailable, "away", std::nullopt}; }

    runtime& on_;
    random_series random_;
    const duration pause_;
    bool alive_ = true;
    bool closed_ = false;
    time_point frozen_until_{};
    int outage_ = 0; // calls that still fail
    int under_way_ = 0;
    int made_[std::size(store_call_names)] = {};
    int all_ = 0;
    task_scope arriving_;
};

} // namespace holdfast::test
