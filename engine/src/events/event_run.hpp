// One received message on its way through a worker, and the subscription that it came by.
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <holdfast/event_worker.hpp>
#include <holdfast/exception_decision.hpp>
#include <holdfast/policies.hpp>

#include "jobs/wake_signal.hpp"

namespace holdfast {

// A registered consumer with what a run needs at hand. Immutable once the worker has started.
struct consumer_kind {
    event_consumer& consumer;
    const consumer_options& options;
    std::optional<bound_policy> policy{};
};

struct event_run;
// Messages of one key, in order; they share a slot. One without a key is a row of its own.
using event_row = std::vector<std::shared_ptr<event_run>>;

// One subscription. The worker's lock guards what is below the line.
struct event_lane {
    event_lane(const consumer_registry::subscriber& who, exception_table what)
        : of(who), rules(std::move(what)), slots(who.concurrency()) {}

    const consumer_registry::subscriber& of;
    const exception_table rules;
    const int slots;
    std::map<std::string, consumer_kind, std::less<>> kinds; // by topic
    std::unique_ptr<event_watch> watching;
    wake_signal feeder;
    std::atomic<bool> hinted = false;

    std::deque<event_row> ready;
    int waiting = 0; // messages in there
    int running = 0; // rows
    double average_run = -1;
    consumer_snapshot counts;
    std::map<std::string, time_point, std::less<>> unknown_topics; // when they were last complained of
};

namespace detail {
struct event_worker_state;
}

// The worker's lock guards it; `what`, `in`, `kind` and `owner` do not change.
struct event_run final : handler_clock {
    event_run(delivery received, event_lane& by, const consumer_kind* known, detail::event_worker_state& worker)
        : what(std::move(received)), in(by), kind(known), owner(worker) {}

    delivery what;
    event_lane& in;
    const consumer_kind* const kind; // null: nobody here consumes the topic
    detail::event_worker_state& owner;
    std::size_t place = 0; // in the worker's list of all

    bool held = false;      // it is there
    bool running = false;   // its handler is being called, or waits to be called again
    bool waits = false;     // in this call: a blocking handler has to get a thread first, or had to
    bool begun = false;     // it has got one
    bool unsettled = false; // something has to be written
    bool suspect = false;
    bool duplicate = false;   // its consumer has had it
    bool asked_again = false; // the transport may have taken the settlement already
    std::atomic<bool> lost = false;
    std::atomic<bool> timed_out = false;
    std::atomic<bool> stopping = false;

    int calls = 0; // in this delivery
    time_point began{};
    time_point deadline = never;
    std::stop_source stop{std::nostopstate};
    delivery_settlement ending{};

    // What the inbox knows it under: replays run again.
    std::string inbox_name() const { return std::to_string(what.generation) + ":" + in.of.name; }

    // Nothing of the call can have happened.
    bool never_began() const noexcept { return waits && !begun; }
    void handler_waits() noexcept override;  // handle.cpp
    bool handler_begins() noexcept override; // handle.cpp
};

inline delivery_settlement release(duration after = {}) {
    return {.held = nullptr, .how = delivery_settlement::kind::release, .after = after, .calls = 0, .error = {}};
}

} // namespace holdfast
