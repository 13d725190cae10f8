// Messages written together with the application's data and sent after the commit, at least once, in order per key;
// and the inbox that lets a receiver drop what it has seen.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/duration.hpp>
#include <holdfast/error.hpp>
#include <holdfast/identifier.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/payload.hpp>
#include <holdfast/task.hpp>
#include <holdfast/unit_of_work.hpp>

namespace holdfast {

struct of_message;
using message_lease = lease<of_message>;

struct outgoing_message {
    identifier id; // appending the same id twice keeps the first
    std::string topic;
    std::string key; // messages of one key are sent in order; empty = no order
    payload what;
    headers extra;
};

struct leased_message {
    message_lease lease;
    std::uint64_t position = 0; // grows in the order of appending
    int attempts = 0;           // failed ones before this
    outgoing_message message;
};

enum class write_answer : unsigned char {
    done,
    stale, // somebody else has it now, or had it since
    gone,  // there is no such thing any more
};

constexpr std::string_view to_text(write_answer a) noexcept {
    switch (a) {
    case write_answer::done: return "done";
    case write_answer::stale: return "stale";
    case write_answer::gone: return "gone";
    }
    return "unknown";
}

struct message_failure {
    const message_lease* held;
    std::string why;
    duration retry_after{};
    bool set_aside = false; // poison: keep it, never send it again by itself, let the next of its key pass
};

struct message_view {
    outgoing_message message;
    std::uint64_t position = 0;
    int attempts = 0;
    std::string last_error;
};

// Any thread. Spans must stay valid until the task has ended.
class outbox_store {
public:
    virtual task<result<void>> append(std::vector<outgoing_message> messages, unit_of_work* in = nullptr) = 0;

    // Up to `limit` messages that may be sent now: the oldest of its key, due, and leased by nobody; several of one key
    // only in an unbroken row from the oldest.
    virtual task<result<std::vector<leased_message>>> lease_batch(int limit, duration lease_for, std::string relay) = 0;
    virtual task<result<std::vector<write_answer>>> delivered(std::span<const message_lease* const> sent) = 0;
    // A failed message blocks the rest of its key until it is sent or set aside, and nothing else.
    virtual task<result<std::vector<write_answer>>> failed(std::span<const message_failure> which) = 0;

    virtual task<result<std::vector<message_view>>> set_aside(int limit, std::uint64_t after_position) = 0;
    // Puts set-aside messages back in line, or forgets them. The number of those found.
    virtual task<result<int>> send_again(std::vector<identifier> which) = 0;
    virtual task<result<int>> discard(std::vector<identifier> which) = 0;
    virtual task<result<std::uint64_t>> unsent() = 0;

    // The inbox: true the first time within ttl, false for a duplicate.
    virtual task<result<bool>> receive(std::string consumer, identifier message, duration ttl,
                                       unit_of_work* in = nullptr) = 0;
    // Which of these receive() would call duplicates now. Records nothing.
    virtual task<result<std::vector<bool>>> received(std::string consumer, std::vector<identifier> messages) = 0;

protected:
    ~outbox_store() = default;
};

} // namespace holdfast
