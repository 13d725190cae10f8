// Runs the integration consumers of a registry on a runtime: subscribes, receives ahead of free slots, drops duplicates,
// calls handlers, keeps leases, settles in batches.
//
// Messages of one key run one after the other, in order; different keys, and messages without one, at the same time. When
// a message is put off, those behind it in its key go back unburnt, and its slot is free meanwhile.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <holdfast/consumer_registry.hpp>
#include <holdfast/duration.hpp>
#include <holdfast/error.hpp>
#include <holdfast/event_transport.hpp>
#include <holdfast/events.hpp>
#include <holdfast/identifier.hpp>
#include <holdfast/logger.hpp>
#include <holdfast/policies.hpp>
#include <holdfast/runtime.hpp>
#include <holdfast/store.hpp>
#include <holdfast/task.hpp>

namespace holdfast {

struct event_worker_options {
    duration lease = std::chrono::seconds{60}; // a worker that is silent for so long counts as dead
    std::optional<duration> heartbeat{};       // lease / 3
    duration poll = std::chrono::seconds{1};   // looks for messages that no hint told of
    duration sweep = std::chrono::seconds{60}; // asks the transport to forget what is old; jittered by a quarter
    duration shutdown_grace = std::chrono::seconds{30};   // handlers get so long before their tokens fire
    duration last_wait = std::chrono::seconds{5};         // and so long afterwards; also to write what has ended
    duration settle_wait = std::chrono::milliseconds{10}; // the longest that an ended message waits for others to end
    duration unknown_topic_delay = std::chrono::seconds{30}; // a message that nobody here consumes comes again
    int batch = 500;                                         // messages in one call to the transport, at most
    std::string name{};                                      // who holds the leases; empty = host:pid:random
};

// What a worker works with. All of it must outlive the worker, and the handlers that ignored a stop.
struct event_worker_parts {
    runtime& on;
    event_transport& from;
    store* inbox; // where the outbox facet lives, for the inbox and for handlers with a unit of work; null: neither
    const consumer_registry& consumers;
    logger& log;
    holdfast::policies* policies = nullptr; // for consumers that name a policy
    holdfast::events* client = nullptr;     // what handlers publish with
};

struct consumer_snapshot {
    std::string name;
    int running = 0;
    int waiting = 0; // received, not yet begun

    // Since the start. What became of messages:
    std::uint64_t handled = 0;
    std::uint64_t retried = 0; // calls within a delivery beyond the first
    std::uint64_t redelivered = 0;
    std::uint64_t dead_lettered = 0;
    std::uint64_t discarded = 0;
    std::uint64_t duplicates = 0; // dropped, for it has had them
    std::uint64_t released = 0;   // went back unburnt
    std::uint64_t lost = 0;       // the lease was gone: nothing was written
};

struct running_event {
    identifier id;
    std::string consumer;
    std::string topic;
    int attempt = 1;
    duration running_for{};
    bool asked_to_stop = false; // its token has fired
};

struct event_worker_snapshot {
    std::string name;
    bool stopping = false;
    bool transport_down = false;              // the latest call to it failed
    bool inbox_down = false;                  // the latest call to it failed
    int unsettled = 0;                        // ended, not yet written
    std::vector<running_event> running;       // longest first
    std::vector<consumer_snapshot> consumers; // as they were added
};

namespace detail {
struct event_worker_state;
}

// Any thread. One start and one stop; whoever starts it awaits stop() before it goes away.
class event_worker {
public:
    // `seed` fixes every random draw; 0 takes one from the system.
    explicit event_worker(event_worker_parts parts, event_worker_options options = {}, std::uint64_t seed = 0);
    ~event_worker();
    event_worker(const event_worker&) = delete;
    event_worker& operator=(const event_worker&) = delete;

    // errc::invalid_argument, errc::unknown_policy, errc::configuration: nothing was started. Subscribing goes on by
    // itself until the transport is there.
    result<void> start();

    // Receives nothing more, gives back what it has not begun, waits for the rest: their grace, then their tokens fire,
    // then the last wait. Ends even if the transport is away or a handler never ends: snapshot().running tells then.
    task<void> stop(std::optional<duration> grace = std::nullopt); // nothing = shutdown_grace
    // Cuts the grace of a stop short, also of one to come: tokens fire now.
    void stop_now();

    event_worker_snapshot snapshot() const;
    const std::string& name() const noexcept;

private:
    std::shared_ptr<detail::event_worker_state> state_;
};

} // namespace holdfast
