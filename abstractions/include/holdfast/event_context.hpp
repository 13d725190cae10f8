// What a consumer is told about the delivery it is in.
#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include <holdfast/event.hpp>
#include <holdfast/event_transport.hpp>
#include <holdfast/handler_clock.hpp>
#include <holdfast/logger.hpp>
#include <holdfast/runtime.hpp>

namespace holdfast {

class events;

// Valid until the handler has ended. Any thread.
class event_context {
public:
    // Filled in by whoever runs the handler: an event worker, a test.
    struct facts {
        const envelope* message = nullptr;
        std::string_view consumer{};
        std::uint64_t position = 0;
        int attempt = 1; // calls of this consumer for this message, this one included
        int redeliveries = 0;
        int crashes = 0;
        int generation = 1;
        handler_clock* clock = nullptr; // if there is one to ask
    };
    event_context(const facts& what, holdfast::runtime& on, logger& log, std::stop_token stop, holdfast::events* client)
        : facts_(what), on_(on), log_(log), stop_(std::move(stop)), events_(client) {}
    event_context(const event_context&) = delete;
    event_context& operator=(const event_context&) = delete;

    // The same at every attempt: pass it to whatever must not happen twice.
    const identifier& event_id() const noexcept { return facts_.message->id; }
    std::string_view topic() const noexcept { return facts_.message->topic; }
    std::string_view key() const noexcept { return facts_.message->key; }
    std::string_view consumer() const noexcept { return facts_.consumer; }
    std::uint64_t position() const noexcept { return facts_.position; }

    int attempt() const noexcept { return facts_.attempt; } // 1 for the first
    int redeliveries() const noexcept { return facts_.redeliveries; }
    int crashes() const noexcept { return facts_.crashes; }       // receivers that died over it so far
    int generation() const noexcept { return facts_.generation; } // above 1: a replay, or a dead letter sent again

    // Fires when the attempt is out of time, its lease is lost, or the process must stop now.
    const std::stop_token& stop_token() const noexcept { return stop_; }

    const headers& all_headers() const noexcept { return facts_.message->extra; }
    // The header's value, or nothing.
    std::optional<std::string_view> header(std::string_view name) const {
        const auto found = facts_.message->extra.find(name);
        if (found == facts_.message->extra.end()) return std::nullopt;
        return found->second;
    }
    // Of the request that this event belongs to; the event's own id where nobody gave one.
    std::string correlation_id() const {
        const auto given = header(event_header::correlation_id);
        return given ? std::string(*given) : to_text(event_id());
    }

    logger& log() const noexcept { return log_; }
    holdfast::runtime& runtime() const noexcept { return on_; }
    // To publish others. Throws failed(errc::unsupported) where there is none.
    holdfast::events& events() const {
        if (events_ == nullptr)
            throw failed({errc::unsupported, "this context has no events to publish with", std::nullopt});
        return *events_;
    }

    // For whoever calls a blocking handler; see handler_clock.
    void handler_waits() const noexcept {
        if (facts_.clock != nullptr) facts_.clock->handler_waits();
    }
    // Throws operation_cancelled where the run has to stop by now.
    void handler_begins() const { detail::begin_handler(facts_.clock, stop_); }

private:
    const facts facts_;
    holdfast::runtime& on_;
    logger& log_;
    const std::stop_token stop_;
    holdfast::events* const events_;
};

} // namespace holdfast
