// What the loops of a worker and its running jobs share. Every coroutine of a worker keeps it alive.
//
//   claims    feed():   store -> ready queues               starts   run_starters(), run_job(): a slot each
//   settles   settle(): what has ended -> store             care     mind(): deadlines; renew(): heartbeats;
//   recovers  sweep()                                                report(): progress
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <holdfast/backoff.hpp>
#include <holdfast/job_worker.hpp>
#include <holdfast/task_scope.hpp>

#include "job_run.hpp"
#include "job_verdict.hpp"
#include "loop_parts.hpp"
#include "put_off.hpp"
#include "ready_queues.hpp"
#include "wake_signal.hpp"

namespace holdfast::detail {

struct worker_state : std::enable_shared_from_this<worker_state> {
    using self = std::shared_ptr<worker_state>;
    using run = std::shared_ptr<job_run>;

    worker_state(worker_parts with, worker_options how, std::uint64_t seed);

    // What is to be woken once the lock has been given up.
    class locked {
    public:
        explicit locked(worker_state& s) : s_(s), lock_(s.mutex) {}
        ~locked() { release(); }
        locked(const locked&) = delete;
        locked& operator=(const locked&) = delete;

        void release() noexcept;
        bool feeder = false;
        bool minder = false;
        bool drained = false;
        bool starter = false;
        bool settler[2] = {};

    private:
        worker_state& s_;
        std::unique_lock<std::mutex> lock_;
    };

    // worker_state.cpp
    result<void> check() const;
    result<void> learn_kinds();
    void launch();
    static task<void> stop(self s, std::optional<duration> grace);
    void stop_now();
    void abandon() noexcept;
    void pause(bool on);
    bool busy() const;
    worker_snapshot snapshot() const;

    // feed.cpp
    static task<void> feed(self s);
    struct next_claims {
        std::vector<ready_queues::claim_plan> plans;
        bool twice = false; // the only plan, two calls of it at once
        bool finished = false;
        bool dry = false; // some queue has nothing more, so far as is known
    };
    next_claims plan_claims();
    task<bool> claim_all(next_claims next);
    task<bool> claim(ready_queues::claim_plan plan);
    void handed(claimed_job job);
    // What was not asked for goes back if there is no room for it.
    void deliver(std::vector<claimed_job> claimed, bool asked_for = true);
    bool put_off_suspect(job_run& r, locked& in);
    task<time_point> next_look();
    bool store_keeps_up() const noexcept;
    void want_feeder(locked& in);
    void give_back_ready(locked& in);
    void give_back_waiting(locked& in);
    std::vector<std::stop_source> give_back_unbegun(locked& in);
    void hint() noexcept;

    // run.cpp
    static void start_posted(work& w, wake) noexcept;
    void start_some() noexcept;
    void want_starter(locked& in);
    void begin(job_run& r, locked& in);
    void let_go(job_run& r, locked& in);
    void set_deadlines(job_run& r, locked& in);
    void wait_for_thread(job_run& r);
    bool begin_on_thread(job_run& r);
    static detached run_job(self s, run r);
    static task<result<void>> call(const self& s, const run& r, job_context& context, bool keep_payload);
    static task<result<void>> run_under_policy(self s, run r);
    static task<result<void>> call_noted(self s, run r, job_context& context);
    job_context& add_context(job_run& r, std::stop_token stop);
    job_context::facts facts_of(job_run& r) const;
    // How a call of the handler ended: neither = well.
    struct call_end {
        std::exception_ptr thrown{};
        std::optional<error> returned{};
    };
    static task<job_verdict::verdict> run_again(self s, run r, call_end first, job_verdict::verdict next);
    bool may_go_on(const job_run& r);
    job_verdict::circumstances circumstances_of(job_run& r, const exception_history& so_far) const;
    job_verdict::verdict judge(job_run& r, const call_end& ended, const exception_history& so_far);
    settlement put_off_without_thread(const job_run& r, const failed& why);
    settlement put_off(const job_run& r, put_off_reason& why, const std::string& in_words);
    void finish(const run& r, std::optional<settlement> ending, bool discarded = false);

    // isolated.cpp
    static task<result<void>> run_elsewhere(self s, run r, job_context& context);
    static job_verdict::verdict judge_isolated(const job_verdict::circumstances& about,
                                               const std::exception_ptr& thrown, random_series& random);
    static task<settlement> judge_crash(self s, run r, std::exception_ptr thrown);
    static task<bool> crashes_too_often(self s, run r);

    // before_run.cpp: what some jobs need before their handlers may run. Nothing = run it.
    struct answer {
        bool run = true;
        std::optional<settlement> ending{}; // when not: what to write, if anything
    };
    static bool needs_care(const job_run& r) noexcept;
    std::optional<answer> called_off(job_run& r); // run.cpp
    static task<answer> before_run(self s, run r);
    static task<answer> mark_started(self s, run r);
    static task<bool> is_in_doubt(self s, run r);
    static task<answer> ask_probe(self s, run r);
    void begin_probe(job_run& r);
    void end_probe(job_run& r);
    static task<answer> find_process(self s, run r); // isolated.cpp
    settlement unknown_kind(const job_run& r);

    // settle.cpp
    static task<void> settle(self s, std::size_t lane);
    void add_ending(job_run& r, settlement ending, locked& in);
    bool endings_are_due(time_point now) const noexcept;
    void wake_settler(locked& in);
    struct taken_endings {
        std::vector<job_run*> batch;
        time_point wait_until = never;
        bool finished = false;
    };
    taken_endings take_endings(std::size_t lane);
    task<void> write(std::vector<job_run*> batch);
    task<void> write_progress(std::vector<job_run*> of);
    void written(std::span<job_run* const> which, std::span<const settlement> what, std::span<const settled> answers);
    void given_up(std::span<job_run* const> which, const error& why);
    run forget(job_run& r); // under the lock; destroy what it gives back outside

    // mind.cpp
    static task<void> mind(self s);
    static task<void> renew(self s);
    static task<void> report(self s);
    time_point watch_deadlines();
    void give_up_stuck(job_run& r, locked& in);
    void kill_soon(job_run& r, duration grace, locked& in);
    duration beat_every() const noexcept { return how.heartbeat.value_or(how.lease / 3); }
    task<bool> beat();
    void beaten(std::span<const run> held, std::span<const holdfast::beat> answers);
    task<void> report_progress();
    void interrupt_all();

    // sweep.cpp
    static task<void> sweep(self s);
    task<bool> recover();

    // The store's outages: told once, and once when nothing fails any more.
    enum class duty : unsigned char { claim, settle, renew, recover };
    void store_failed(duty which, const error& e);
    void store_answered(duty which);
    random_series draw();
    // Waits before the n-th try again; not for long once the worker is stopping.
    task<void> back_off(int n);
    bool is_past_giving_up() const;

    worker_parts with; // does not change
    const worker_options how;
    std::string name;
    identifier_source ids;
    std::optional<holdfast::jobs> own_client;
    std::map<std::string, job_kind, std::less<>> kinds;

    mutable std::mutex mutex;
    random_series random;
    ready_queues queues;
    std::vector<run> all; // everything held
    int adrift = 0;       // of those that run
    int suspects = 0;     // held; 0 or 1
    time_point suspect_since{};
    std::deque<job_run*> endings;
    int urgent = 0; // of those, the ones that may not wait
    int writing = 0;
    int lanes = 2;             // that settle
    time_point first_ending{}; // when the oldest that waits came
    time_point next_deadline = never;
    bool started = false;
    bool paused = false;
    bool stopping = false; // no more claims
    bool stop_began = false;
    bool in_a_hurry = false;
    bool closing = false;          // nothing runs any more: write what there is, then end
    bool closed = false;           // nothing is written any more
    time_point give_up_at = never; // with the store, once closing
    bool starter_posted = false;
    bool feeder_waits = false;
    bool plenty = false; // the last claim got all that it asked for
    int contested = 0;   // looks in a row that found less than the store had said
    bool settler_waits[2] = {};
    worker_snapshot counts;
    std::optional<time_point> last_recovery_at;
    std::map<std::string, put_off_reason, std::less<>> unknown_kinds; // none is taken out again
    put_off_reason other_kinds;                                       // of those that have no place there
    put_off_reason no_thread{std::chrono::seconds{1}, std::chrono::seconds{30}};
    put_off_reason no_process{std::chrono::seconds{5}, std::chrono::minutes{1}};
    outage_log store_outage;

    struct starter_work : work {
        worker_state* owner = nullptr;
        self keep; // while it is posted
    } starter;

    std::atomic<bool> hinted = false;
    std::atomic<bool> feeder_is_dry = false;
    std::stop_source hurry; // fires when stopping
    wake_signal feeder;
    wake_signal settlers[2];
    wake_signal minder;
    wake_signal renewer;
    wake_signal reporter;
    wake_signal sweeper;
    wake_signal drained;
    std::unique_ptr<job_watch> watching;
    std::string address; // of it
    task_scope intake;   // claims and sweeps
    task_scope care;     // settles and minds
};

} // namespace holdfast::detail
