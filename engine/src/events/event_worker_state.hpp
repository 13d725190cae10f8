// What the loops of an event worker and its running handlers share. Every coroutine of a worker keeps it alive.
//
//   receives  feed(), one per subscription: transport -> inbox -> rows     runs   run_row(): a slot each
//   settles   settle(): what has ended -> transport                        care   mind(): deadlines; renew(): leases; sweep()
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <holdfast/backoff.hpp>
#include <holdfast/event_worker.hpp>
#include <holdfast/task_scope.hpp>

#include "event_run.hpp"
#include "loop_parts.hpp"

namespace holdfast::detail {

struct event_worker_state : std::enable_shared_from_this<event_worker_state> {
    using self = std::shared_ptr<event_worker_state>;
    using run = std::shared_ptr<event_run>;
    using settle_kind = delivery_settlement::kind;

    event_worker_state(event_worker_parts parts, event_worker_options options, std::uint64_t seed);

    // event_worker.cpp
    result<void> check() const;
    result<void> learn_consumers();
    result<consumer_kind> learn(event_consumer& one) const;
    void launch();
    static task<void> stop(self s, std::optional<duration> grace);
    static task<void> wait_for_rows(self s, time_point until, bool patiently);
    void stop_now();
    void abandon() noexcept;
    bool busy() const;
    bool is_stopping() const;
    event_worker_snapshot snapshot() const;
    random_series draw();
    task<void> back_off(int n);
    bool is_past_giving_up() const;
    std::string who() const { return "event worker " + name; }

    // receive.cpp
    static task<void> feed(self s, event_lane& in);
    static task<bool> subscribe(self s, event_lane& in);
    int room(const event_lane& in) const; // messages to ask for now; 0: none
    task<std::optional<int>> receive(event_lane& in, int limit);
    std::vector<run> hold(event_lane& in, std::vector<delivery> received);
    // False: the worker stops, or the inbox has not answered.
    task<bool> mark_duplicates(event_lane& in, const std::vector<run>& among);
    void line_up(event_lane& in, std::vector<run> received);
    bool put_off_suspect(event_run& r);
    void start_rows(event_lane& in);
    void give_back_ready();
    task<time_point> next_look(event_lane& in);

    // handle.cpp
    static detached run_row(self s, event_lane& in, event_row row);
    // What to write; nothing = the lease is lost.
    static task<std::optional<delivery_settlement>> handle(self s, run r);
    std::optional<delivery_settlement> before_run(event_run& r);
    delivery_settlement unknown_topic(event_run& r);
    // What to write where a handler got no thread, which is not its event's fault; nothing: it was something else.
    std::optional<delivery_settlement> without_thread(const event_run& r, const std::exception_ptr& thrown);
    void begin_call(event_run& r);
    bool set_deadline(event_run& r); // under the lock; true: the minder has to be told
    void wait_for_thread(event_run& r);
    bool begin_on_thread(event_run& r);
    void end_calls(event_run& r);
    static task<result<void>> call(self s, run r);
    static task<result<void>> call_once(self s, run r, std::stop_token stop);
    static task<result<void>> call_plain(self s, run r, event_context& context);
    static task<void> record(self s, run r);
    exception_decision decide_on(event_run& r, const exception_history& so_far, const std::exception_ptr& thrown,
                                 const std::optional<error>& returned);

    // handle_in_unit.cpp
    struct marked_unit;
    static task<result<void>> call_in_unit(self s, run r, event_context& context);
    static task<result<void>> end_unit(self s, run r, std::unique_ptr<unit_of_work> unit, result<void> ended);
    // Whether its consumer has had it, by the inbox; asks until there is an answer.
    static task<result<bool>> has_been_received(self s, run r);

    // settle.cpp
    static task<void> settle(self s);
    void end(const run& r, std::optional<delivery_settlement> how);
    void add_ending(event_run& r, delivery_settlement how); // under the lock
    bool endings_are_due(time_point now) const noexcept;
    task<void> write(std::vector<run> batch);
    void written(std::span<const run> which, std::span<const write_answer> answers);
    void given_up(std::span<const run> which, const error& why);
    run forget(event_run& r); // under the lock; destroy what it gives back outside

    // mind.cpp
    static task<void> mind(self s);
    static task<void> renew(self s);
    static task<void> sweep(self s);
    time_point watch_deadlines();
    task<bool> beat();
    void interrupt_all();

    event_worker_parts with; // does not change
    const event_worker_options how;
    std::string name;
    outbox_store* inbox = nullptr;
    std::deque<event_lane> lanes; // does not change once started

    mutable std::mutex mutex;
    random_series random;
    std::vector<run> all; // everything held
    std::deque<event_run*> endings;
    time_point first_ending{};
    int writing = 0;
    int rows_running = 0;
    int suspects = 0;
    time_point next_deadline = never;
    time_point next_complaint_of_threads{};
    bool started = false;
    bool stopping = false; // nothing more is received or begun
    bool stop_began = false;
    bool in_a_hurry = false;
    bool closing = false; // no handler runs any more: write what there is, then end
    bool closed = false;  // nothing is written any more
    time_point give_up_at = never;

    outage_log transport_outage;
    outage_log inbox_outage;
    std::stop_source hurry; // fires when stopping
    wake_signal settler;
    wake_signal minder;
    wake_signal renewer;
    wake_signal sweeper;
    wake_signal drained;
    task_scope intake; // feeds and sweeps
    task_scope care;   // settles and minds
};

// What a failure is called in a dead letter.
delivery_error error_of(const std::exception_ptr& thrown, const std::optional<error>& returned);

} // namespace holdfast::detail
