// An event is a struct that says its name:
//
//   struct order_placed {
//       static constexpr holdfast::event_options options{.name = "order.placed"};
//       std::string order;
//       int cents = 0;
//       std::string event_key() const { return order; } // optional: events of one key arrive in order
//   };
//
// Two planes. events::raise() runs the domain consumers inline, in the publisher's unit of work; events::publish() records it
// there, and integration consumers get it after the commit.
#pragma once

#include <concepts>
#include <string>
#include <string_view>

#include <holdfast/codec.hpp>
#include <holdfast/error.hpp>

namespace holdfast {

struct event_options {
    std::string_view name{}; // its topic: keep it when the struct is renamed
    int version = 1;         // of the struct, written beside its bytes
};

class invalid_event : public failed {
public:
    explicit invalid_event(const char* why) : failed({errc::invalid_argument, why, std::nullopt}) {}
};

// Throws invalid_event; in a constant expression that is a compile error which quotes the sentence.
constexpr void check(const event_options& o) {
    if (o.name.empty()) throw invalid_event("an event needs a name: .name = \"order.placed\"");
    if (o.version < 1) throw invalid_event("an event's version is 1 or more");
}

template <class Event>
concept has_event_options = requires {
    { Event::options } -> std::convertible_to<const event_options&>;
};

namespace detail {

template <class Event>
concept has_event_key = requires(const Event& event) {
    { event.event_key() } -> std::convertible_to<std::string>;
};

template <class Event>
consteval bool checked_event() {
    check(Event::options);
    return true;
}

} // namespace detail

// The options of an event type, checked.
template <class Event>
constexpr const event_options& event_options_of() {
    static_assert(has_event_options<Event>,
                  "an event declares its options: static constexpr holdfast::event_options options{.name = \"…\"};");
    static_assert(detail::checked_event<Event>());
    return Event::options;
}

namespace event_header {
inline constexpr std::string_view correlation_id = "correlation-id";
inline constexpr std::string_view trace_parent = "traceparent";
inline constexpr std::string_view caused_by = "caused-by"; // the id of the event or job whose handler published it
} // namespace event_header

} // namespace holdfast
