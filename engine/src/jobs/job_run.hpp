// One claimed job on its way through a worker.
#pragma once

#include <atomic>
#include <cstddef>
#include <list>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include <holdfast/exception_decision.hpp>
#include <holdfast/job_context.hpp>
#include <holdfast/job_isolation.hpp>
#include <holdfast/job_store.hpp>
#include <holdfast/job_type.hpp>
#include <holdfast/policies.hpp>

namespace holdfast {

// A registered kind with what a run needs at hand. Immutable once the worker has started.
struct job_kind {
    job_type& type;
    const job_options& options;
    exception_table rules;
    bool retries_in_run = false; // so its payload must be kept
    std::optional<bound_policy> policy{};
    bool isolated = false; // its handlers run elsewhere
};

// What the error of an attempt is called whose own process died.
inline std::string crash_type(std::string_view how) {
    return "crashed: " + std::string(how);
}
inline bool is_crash_type(std::string_view type) noexcept {
    return type.starts_with("crashed: ");
}

namespace detail {
struct worker_state;
}

// The worker's lock guards it; `job` and `kind` do not change.
struct job_run final : handler_clock {
    job_run(claimed_job claimed, const job_kind* known, std::size_t in)
        : job(std::move(claimed)), kind(known), queue(in) {}

    claimed_job job;
    const job_kind* kind; // null: not registered
    const std::size_t queue;
    std::size_t place = 0; // in the worker's list of all
    bool held = false;     // it is there

    bool running = false;     // has a slot
    bool unsettled = false;   // something has to be written
    bool adrift = false;      // what becomes of the job is settled without it; its slot stays taken until it ends
    bool stuck = false;       // and that is why
    bool probing = false;     // its probe is asked
    bool let_go = false;      // nothing stands before its handler any more, but for a thread
    bool waits = false;       // its handler has to get a thread first, or had to
    bool begun = false;       // it has got one
    bool elsewhere = false;   // a call of an isolated one is under way in its process
    bool suspect = false;     // see worker_state::put_off_suspect
    bool discarded = false;   // by a rule
    bool asked_again = false; // the store may have taken the settlement already
    bool past_hard_deadline = false;
    std::atomic<bool> lost = false; // somebody else has it: nothing may be written
    std::atomic<bool> cancelled = false;
    std::atomic<bool> timed_out = false;
    std::atomic<bool> stopping = false;

    time_point since{}; // it is held
    time_point began{};
    time_point deadline = never;
    time_point give_up_at = never;
    detail::worker_state* owner = nullptr; // of one that runs in this process, once it has a slot
    std::stop_source stop{std::nostopstate};
    std::optional<job_context> context;
    std::list<job_context> more_contexts;      // of further attempts within the run
    job_context* winner = nullptr;             // of those the one that succeeded; hedged ones run at the same time
    std::unique_ptr<isolated_process> process; // of an isolated one, while it runs
    exception_history so_far{};                // of an isolated one: what its rules are to know there
    settlement ending{};

    std::string_view type_name() const noexcept {
        return kind != nullptr ? kind->options.name : std::string_view(job.what.type);
    }
    // Of the attempt within the run that counts: one that succeeded, else the latest. There is one from its beginning on.
    job_context& latest_context() noexcept {
        if (winner != nullptr) return *winner;
        return more_contexts.empty() ? *context : more_contexts.back();
    }
    bool waits_for_thread() const noexcept { return waits && !begun; }
    // Nothing of it can have happened.
    bool never_began() const noexcept { return !let_go || waits_for_thread(); }
    // Before its first call has failed in this run: every run is a delivery.
    exception_history history() const { return {.redeliveries = job.attempt - 1, .calls = job.attempt}; }
    bool isolated() const noexcept { return kind != nullptr && kind->isolated; }
    bool asked_to_stop() const noexcept { return lost || cancelled || timed_out || stopping; }

    void handler_waits() noexcept override;  // run.cpp
    bool handler_begins() noexcept override; // run.cpp
};

} // namespace holdfast
