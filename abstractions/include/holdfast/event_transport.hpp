// What an events plugin implements: it keeps messages after their outbox has handed them over, and gives each to every
// subscription, at least once, in order per key, until somebody has settled it.
//
// A subscription is a durable name ("billing"). Everybody who receives under it shares its messages; two subscriptions
// know nothing of each other. The rules of one subscription, which every plugin keeps and the kit checks:
//
// - A message that was acknowledged, dead-lettered or discarded is settled; any other is open.
// - Messages of one key are given out in the order of their positions, and only while every earlier open one of the key
//   is given out to the same receiver in the same call: an unbroken row from the oldest. One that waits for its
//   redelivery holds its key back, and nothing else. Messages without a key wait for nobody.
// - A lease that ran out opens the message for others, with a higher token. Whoever had it is stale from the moment on at
//   which somebody else was given it.
// - The transport's clock judges leases and due times.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/duration.hpp>
#include <holdfast/error.hpp>
#include <holdfast/identifier.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/outbox_store.hpp>
#include <holdfast/payload.hpp>
#include <holdfast/store.hpp>
#include <holdfast/task.hpp>

namespace holdfast {

// id, topic (the event's name), key, payload and headers: as the outbox keeps it.
using envelope = outgoing_message;

struct of_delivery;
using delivery_lease = lease<of_delivery>; // subject: the plugin's own name for subscription and message

struct subscription {
    std::string name;
    std::vector<std::string> topics; // exact names
    bool from_start = false;         // when it is new: also what was published before and is still kept
};

struct delivery {
    delivery_lease lease;
    std::uint64_t position = 0; // grows in the order of publishing
    int redeliveries = 0;       // how often it was settled as redeliver
    int crashes = 0;            // leases that ran out over it
    int calls = 0;              // of handlers, as settlements told
    int generation = 1;         // raised when it is replayed, or a dead letter is sent again: then above 1
    envelope message;
};

struct delivery_error {
    std::string type;
    std::string message;
    std::string stack; // empty when there is none
};

struct delivery_settlement {
    enum class kind : unsigned char {
        acknowledge, // done with it
        redeliver,   // again after `after`; counted
        release,     // again after `after`, as if never given out; counts nothing
        dead_letter, // kept for people, with `error`; the next of its key may pass
        discard,     // as acknowledge, but counted apart
    };
    const delivery_lease* held = nullptr;
    kind how = kind::acknowledge;
    duration after{};
    int calls = 0; // handlers called in this delivery; added to what is kept, but for release
    delivery_error error{};
};

// A message that one subscription gave up on. Kept until somebody sends it again or discards it.
struct dead_message {
    std::string subscription;
    std::uint64_t position = 0;
    store_time died{};
    int redeliveries = 0;
    int crashes = 0;
    int calls = 0;
    int generation = 1;
    delivery_error error;
    envelope message;
};

struct dead_message_filter {
    std::optional<std::string> subscription{};
    std::optional<std::string> topic{};
};
struct dead_message_page {
    std::vector<dead_message> messages; // the latest to die first
    std::string next;                   // pass it on for the next page; empty: there is none
};

struct subscription_view {
    std::string name;
    std::vector<std::string> topics; // sorted
    std::uint64_t waiting = 0;       // open, and not leased: due, due later, or behind another of its key
    std::uint64_t leased = 0;
    std::uint64_t dead = 0;
    std::uint64_t acknowledged = 0; // ever
    std::uint64_t discarded = 0;    // ever
};

// Where a replay begins: at a position, or at what was published at that time or later.
struct replay_point {
    std::optional<std::uint64_t> position{}; // this one included
    std::optional<store_time> time{};        // neither: everything that is kept
};

struct transport_capabilities {
    survives writes_survive = survives::nothing;
    std::string loses;   // what acknowledged messages can be lost, and when: for people
    bool shared = false; // several processes may use it at once
};

// Hints go on while it lives; its destructor waits for a hint under way and must not run inside one.
class event_watch {
public:
    virtual ~event_watch() = default;
};

// Any thread. Spans must stay valid until the task has ended.
class event_transport {
public:
    virtual ~event_transport() = default;

    virtual std::string_view name() const noexcept = 0;
    virtual transport_capabilities capabilities() const = 0;

    // As store::prepare(), now(), destroy().
    virtual task<result<void>> prepare() = 0;
    virtual task<result<store_time>> now() = 0;
    virtual task<result<void>> destroy() = 0;

    // All of them, kept as durably as the capabilities say, or none. The same id again changes nothing as long as the
    // message is kept. errc::overloaded, with retry_after: a subscription that wants one of them has max_backlog open messages.
    // errc::invalid_argument, errc::too_large: one of them can never be published; nothing was.
    virtual task<result<void>> publish(std::vector<envelope> batch) = 0;

    // Makes the subscription, or sets the topics of one that is there: those that are new count from now on, those that are
    // gone bring nothing new. Safe to call twice and from many processes at once.
    virtual task<result<void>> subscribe(subscription what) = 0;
    // Forgets it, with its open messages and dead letters. False: there was none.
    virtual task<result<bool>> unsubscribe(std::string name) = 0;
    virtual task<result<std::vector<subscription_view>>> subscriptions() = 0; // by name

    // Up to `limit` messages that may be worked on now, lowest position first. errc::not_found without that subscription.
    virtual task<result<std::vector<delivery>>> receive(std::string subscription, int limit, duration lease_for,
                                                        std::string receiver) = 0;
    virtual task<result<std::vector<write_answer>>> renew(std::span<const delivery_lease* const> held,
                                                          duration lease_for) = 0;
    // Each by itself: one that is stale leaves the others alone. Settling twice with the same lease answers the same.
    virtual task<result<std::vector<write_answer>>> settle(std::span<const delivery_settlement> which) = 0;
    // How long until receive() may give something, as far as the transport can tell; nothing = nothing is open.
    virtual task<result<std::optional<duration>>> next_due(std::string subscription) = 0;
    // As job_store::watch(): calls `hint`, on any thread, soon after something may have become receivable. Null: this
    // transport gives none.
    virtual std::unique_ptr<event_watch> watch(std::string subscription, std::function<void()> hint) {
        static_cast<void>(subscription);
        static_cast<void>(hint);
        return nullptr;
    }

    virtual task<result<dead_message_page>> dead_messages(dead_message_filter filter, int limit,
                                                          std::string cursor = {}) = 0;
    virtual task<result<std::optional<dead_message>>> dead_message_of(std::string subscription, identifier id) = 0;
    // Dead letters become open again, due now, in the place that their position gives them, with counts from 0 and the next
    // generation; or are forgotten. The number of those found.
    virtual task<result<int>> send_again(std::string subscription, std::vector<identifier> which) = 0;
    virtual task<result<int>> discard(std::string subscription, std::vector<identifier> which) = 0;
    // Opens again, due now, with counts from 0 and the next generation, every kept message of the subscription's topics from
    // there on, settled or never seen (that one begins with generation 2), but for those that are open. Their number.
    virtual task<result<std::uint64_t>> replay(std::string subscription, replay_point from) = 0;

    // Forgets messages that nobody needs and that are older than the setting `keep`; at most about `limit`. Their number.
    virtual task<result<int>> sweep(int limit) = 0;

protected:
    event_transport() = default;
    event_transport(const event_transport&) = delete;
    event_transport& operator=(const event_transport&) = delete;
};

} // namespace holdfast
