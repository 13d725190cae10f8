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
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include <holdfast/codec.hpp>
#include <holdfast/detail/handler.hpp>
#include <holdfast/duration.hpp>
#include <holdfast/event.hpp>
#include <holdfast/event_context.hpp>
#include <holdfast/payload.hpp>
#include <holdfast/sync_wait.hpp>
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

// Where a handler gets the unit of work that it runs in. A blocking one has its thread by then: an open unit may hold up
// everybody else who writes, so none is kept open by somebody in line.
class unit_opener {
public:
    // Called once a run, when the handler is about to begin. Null: its consumer has had the event, so it must not. The unit
    // belongs to whoever runs the consumer, who also commits it.
    virtual task<result<unit_of_work*>> open() = 0;

protected:
    ~unit_opener() = default;
};

// Any thread; several runs at once.
class event_consumer {
public:
    virtual ~event_consumer() = default;

    virtual std::string_view name() const noexcept = 0;  // of its subscription; several events may share one
    virtual std::string_view topic() const noexcept = 0; // the event's name
    virtual const consumer_options& options() const noexcept = 0;
    virtual bool wants_unit() const noexcept = 0;
    // `units` is given exactly when it wants one. A handler's exception leaves it as it is; a returned failure comes back as
    // one, and so does that of opening the unit. All three must stay until the task has ended.
    virtual task<result<void>> run(const envelope& what, event_context& context, unit_opener* units) = 0;

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

namespace detail {

template <class Handler, class Event>
concept event_handler_with_unit = std::is_invocable_v<Handler&, Event, unit_of_work&, event_context&> ||
                                  std::is_invocable_v<Handler&, Event, unit_of_work&, std::stop_token> ||
                                  std::is_invocable_v<Handler&, Event, unit_of_work&>;
template <class Handler, class Event>
concept event_handler =
    event_handler_with_unit<Handler, Event> || std::is_invocable_v<Handler&, Event, event_context&> ||
    std::is_invocable_v<Handler&, Event, std::stop_token> || std::is_invocable_v<Handler&, Event>;
template <class Handler, class Event>
concept domain_handler = std::is_invocable_v<Handler&, Event, unit_of_work&> || std::is_invocable_v<Handler&, Event>;

// A coroutine may take the event by reference, so the event must stay until what these give has ended.
template <class Handler, class Event>
decltype(auto) call_event_handler(Handler& handler, Event&& event, unit_of_work* unit, event_context& context) {
    static_assert(std::is_rvalue_reference_v<Event&&>, "the event is given away");
    if constexpr (std::is_invocable_v<Handler&, Event, unit_of_work&, event_context&>)
        return handler(std::forward<Event>(event), *unit, context);
    else if constexpr (std::is_invocable_v<Handler&, Event, unit_of_work&, std::stop_token>)
        return handler(std::forward<Event>(event), *unit, context.stop_token());
    else if constexpr (std::is_invocable_v<Handler&, Event, unit_of_work&>)
        return handler(std::forward<Event>(event), *unit);
    else if constexpr (std::is_invocable_v<Handler&, Event, event_context&>)
        return handler(std::forward<Event>(event), context);
    else if constexpr (std::is_invocable_v<Handler&, Event, std::stop_token>)
        return handler(std::forward<Event>(event), context.stop_token());
    else return handler(std::forward<Event>(event));
}

template <class Handler, class Event>
decltype(auto) call_domain_handler(Handler& handler, Event&& event, unit_of_work& in) {
    static_assert(std::is_rvalue_reference_v<Event&&>, "the event is given away");
    if constexpr (std::is_invocable_v<Handler&, Event, unit_of_work&>) return handler(std::forward<Event>(event), in);
    else return handler(std::forward<Event>(event));
}

template <class Event>
Event decode_event(const envelope& from) {
    auto decoded = decode<Event>(from.what.body, from.what.version);
    if (!decoded)
        throw undecodable_event("\"" + from.topic + "\" version " + std::to_string(from.what.version) +
                                " does not decode: " + decoded.error().message);
    return std::move(*decoded);
}

template <class Event, class Handler>
class typed_event_consumer final : public event_consumer {
    using handler_result = decltype(call_event_handler<Handler, Event>(std::declval<Handler&>(), std::declval<Event>(),
                                                                       nullptr, std::declval<event_context&>()));
    static_assert(is_handler_value<typename awaited<handler_result>::type>,
                  "a consumer returns void or result<void>, or a task of one of them");

public:
    typed_event_consumer(std::string name, Handler handler, consumer_options options)
        : name_(std::move(name)), handler_(std::move(handler)), options_(std::move(options)) {}

    std::string_view name() const noexcept override { return name_; }
    std::string_view topic() const noexcept override { return event_options_of<Event>().name; }
    const consumer_options& options() const noexcept override { return options_; }
    bool wants_unit() const noexcept override { return event_handler_with_unit<Handler, Event>; }

    task<result<void>> run(const envelope& what, event_context& context, unit_opener* units) override {
        Event event = decode_event<Event>(what);
        unit_of_work* unit = nullptr;
        const auto call = [&]() -> decltype(auto) {
            return call_event_handler(handler_, std::move(event), unit, context);
        };
        if constexpr (is_task<handler_result>) {
            if (units != nullptr) {
                auto opening = units->open();
                const auto opened = co_await std::move(opening);
                if (!opened) co_return std::unexpected(opened.error());
                if (*opened == nullptr) co_return result<void>{};
                unit = *opened;
            }
            auto running = run_handler(context.runtime(), call);
            co_return co_await std::move(running);
        } else {
            context.handler_waits();
            auto running = run_blocking(context.runtime(), [&]() -> result<void> {
                context.handler_begins();
                if (units != nullptr) {
                    const auto opened = sync_wait(context.runtime(), units->open());
                    if (!opened) return std::unexpected(opened.error());
                    if (*opened == nullptr) return {};
                    unit = *opened;
                }
                if constexpr (std::is_void_v<handler_result>) return call(), result<void>{};
                else return call();
            });
            co_return co_await std::move(running);
        }
    }

private:
    const std::string name_;
    Handler handler_;
    const consumer_options options_;
};

template <class Event, class Handler>
class typed_domain_consumer final : public domain_consumer {
    static_assert(is_handler_value<typename awaited<decltype(call_domain_handler<Handler, Event>(
                      std::declval<Handler&>(), std::declval<Event>(), std::declval<unit_of_work&>()))>::type>,
                  "a consumer returns void or result<void>, or a task of one of them");

public:
    typed_domain_consumer(std::string name, Handler handler) : name_(std::move(name)), handler_(std::move(handler)) {}

    std::string_view name() const noexcept override { return name_; }
    std::string_view topic() const noexcept override { return event_options_of<Event>().name; }

    task<result<void>> run(const void* event, const std::type_info& of, runtime& on, unit_of_work& in) override {
        if (of != typeid(Event))
            co_return fail(errc::invalid_argument, "the event raised as \"" + std::string(topic()) +
                                                       "\" is not of the type that its consumer takes");
        Event own = *static_cast<const Event*>(event); // others get it as well
        auto running =
            run_handler(on, [&]() -> decltype(auto) { return call_domain_handler(handler_, std::move(own), in); });
        co_return co_await std::move(running);
    }

private:
    const std::string name_;
    Handler handler_;
};

} // namespace detail

// An integration consumer. See above for what a handler may look like.
template <class Event, class Handler>
std::unique_ptr<event_consumer> event_consumer_of(std::string name, Handler handler, consumer_options options = {}) {
    static_assert(event_options_of<Event>().version > 0);
    static_assert(encodable<Event>, "an event that is consumed needs a codec: include <holdfast/json.hpp> and "
                                    "BOOST_DESCRIBE_STRUCT it, or specialise holdfast::codec");
    static_assert(
        detail::event_handler<Handler, Event>,
        "a consumer takes the event, and optionally, in this order, a unit_of_work& and an event_context& or a "
        "std::stop_token");
    return std::make_unique<detail::typed_event_consumer<Event, Handler>>(std::move(name), std::move(handler),
                                                                          std::move(options));
}

// A domain consumer. It needs no codec: the event is passed on as it is.
template <class Event, class Handler>
std::unique_ptr<domain_consumer> domain_consumer_of(std::string name, Handler handler) {
    static_assert(event_options_of<Event>().version > 0);
    static_assert(detail::domain_handler<Handler, Event>,
                  "a domain consumer takes the event, and optionally the publisher's unit_of_work&");
    return std::make_unique<detail::typed_domain_consumer<Event, Handler>>(std::move(name), std::move(handler));
}

} // namespace holdfast
