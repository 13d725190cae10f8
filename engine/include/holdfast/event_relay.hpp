// Brings what units of work have recorded to a transport: leases batches of the outbox, publishes them, marks them as
// delivered. Any number of relays, in any number of processes, may work on one outbox.
//
// Killed between publishing and marking, a relay leaves messages that another publishes again, with the same id: the
// transport drops those that it still keeps, and the inbox of a consumer those that it has had.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <holdfast/duration.hpp>
#include <holdfast/error.hpp>
#include <holdfast/event_transport.hpp>
#include <holdfast/logger.hpp>
#include <holdfast/outbox_store.hpp>
#include <holdfast/runtime.hpp>
#include <holdfast/task.hpp>

namespace holdfast {

struct relay_options {
    int batch = 500;                               // messages in one call, at most
    duration lease = std::chrono::seconds{30};     // a relay that is silent for so long counts as dead
    duration poll = std::chrono::milliseconds{50}; // looks for messages that no nudge told of
    int in_flight = 2;                             // batches on their way at the same time
    int max_failures = 10;                         // of one message, then it is set aside
    duration last_wait = std::chrono::seconds{5};  // what is on its way when it stops gets so long
    std::string name{};                            // who holds the leases; empty = host:pid:random
};

// What a relay works with. All of it must outlive the relay.
struct relay_parts {
    runtime& on;
    outbox_store& outbox;
    event_transport& to;
    logger& log;
};

struct relay_snapshot {
    std::string name;
    bool stopping = false;
    bool outbox_down = false;    // the latest call to it failed
    bool transport_down = false; // the latest call to it failed
    bool held_back = false;      // the transport has too much of it already
    int in_flight = 0;           // batches

    // Messages, since the start:
    std::uint64_t published = 0;
    std::uint64_t failed = 0;    // tried again later
    std::uint64_t set_aside = 0; // could not be sent; see outbox_store::set_aside()
    std::uint64_t lost = 0;      // published, but the lease was gone: they may be published again
};

namespace detail {
struct relay_state;
}

// Any thread. One start and one stop; whoever starts it awaits stop() before it goes away.
class event_relay {
public:
    // `seed` fixes every random draw; 0 takes one from the system.
    explicit event_relay(relay_parts parts, relay_options options = {}, std::uint64_t seed = 0);
    ~event_relay();
    event_relay(const event_relay&) = delete;
    event_relay& operator=(const event_relay&) = delete;

    // errc::invalid_argument: nothing was started.
    result<void> start();
    // Leases nothing more, and ends when what is on its way has been marked, or the last wait is over.
    task<void> stop();
    // There is something to send: do not wait for the next look. Cheap, may come for nothing.
    void nudge() noexcept;
    // For events::tell().
    static void nudge_relay(void* relay) noexcept { static_cast<event_relay*>(relay)->nudge(); }

    relay_snapshot snapshot() const;
    const std::string& name() const noexcept;

private:
    std::shared_ptr<detail::relay_state> state_;
};

} // namespace holdfast
