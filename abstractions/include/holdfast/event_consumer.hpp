// Consumers of events as a host sees them: a name, an event, and how to run the bytes.
//
// An integration consumer takes the event, then, each optional and in this order, a unit_of_work& and an event_context& (or a
// std::stop_token). With a unit of work its effects and the mark that the event was received are one commit: exactly once.
// Without, it is at least once, and duplicates that are known are dropped before it is called.
//
// A domain consumer takes the event and optionally the publisher's unit_of_work&.
//
// Both return void or result<void>, or a task of one of them. One that is no coroutine may block: it runs on the blocking
// pool. A coroutine takes the event by value.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include <holdfast/duration.hpp>
#include <holdfast/event.hpp>
#include <holdfast/event_context.hpp>
#include <holdfast/payload.hpp>
#include <holdfast/sleep.hpp>
#include <holdfast/task.hpp>
#include <holdfast/unit_of_work.hpp>

namespace holdfast {

// The bytes of an event do not decode. Never retried.
class undecodable_event : public non_retryable_error {
public:
    using non_retryable_error::non_retryable_error;
};

struct consumer_options {
    int concurrency = 16;                        // messages of this consumer that are worked on at the same time
    std::optional<duration> timeout{};           // of one call: its stop token fires; none
    std::string policy{};                        // every call runs under this resilience policy; none
    bool inbox = true;                           // drop what this consumer has had already
    duration remember = std::chrono::hours{168}; // how long the inbox knows that
    int max_crashes = 3;                         // processes that die over one message, then it is a dead letter
    bool from_start = false; // when its subscription is new: also what was published before and is still kept
};

// Any thread; several runs at once.
class event_consumer {
public:
    virtual ~event_consumer() = default;

    virtual std::string_view name() const noexcept = 0;  // of its subscription; several events may share one
    virtual std::string_view topic() const noexcept = 0; // the event's name
    virtual const consumer_options& options() const noexcept = 0;
    virtual bool wants_unit() const noexcept = 0;
    // `unit` is given exactly when it wants one. A handler's exception leaves it as it is; a returned failure comes back as
    // one. `what`, `context` and the unit must stay until the task has ended.
    virtual task<result<void>> run(const envelope& what, event_context& context, unit_of_work* unit) = 0;

protected:
    event_consumer() = default;
    event_consumer(const event_consumer&) = delete;
    event_consumer& operator=(const event_consumer&) = delete;
};

// Any thread; several runs at once.
class domain_consumer {
public:
    virtual ~domain_consumer() = default;

    virtual std::string_view name() const noexcept = 0; // for messages about its failure
    virtual std::string_view topic() const noexcept = 0;
    // `event` is of the type that `of` names; both must stay until the task has ended.
    virtual task<result<void>> run(const void* event, const std::type_info& of, runtime& on, unit_of_work& in) = 0;

protected:
    domain_consumer() = default;
    domain_consumer(const domain_consumer&) = delete;
    domain_consumer& operator=(const domain_consumer&) = delete;
};

} // namespace holdfast
