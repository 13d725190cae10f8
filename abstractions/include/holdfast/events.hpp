// Publishing events.
//
//   auto unit = co_await store.begin();                 // or store.join(your own transaction)
//   co_await events.raise(**unit, order_placed{"A-7"});   // domain consumers, now, in this unit; throws if one fails
//   co_await events.publish(**unit, order_placed{"A-7"}); // recorded; integration consumers get it after the commit
//   co_await (*unit)->commit();                         // a rollback would have delivered nothing
#pragma once

#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <holdfast/codec.hpp>
#include <holdfast/error.hpp>
#include <holdfast/event.hpp>
#include <holdfast/event_consumer.hpp>
#include <holdfast/identifier.hpp>
#include <holdfast/outbox_store.hpp>
#include <holdfast/task.hpp>
#include <holdfast/unit_of_work.hpp>

namespace holdfast {

// What one call says differently from the event itself.
struct publish_options {
    std::optional<std::string> key{}; // instead of the event's event_key()
    std::optional<identifier> id{};   // yours, for a call that you may have to repeat: the same id twice is one event
    headers extra{};                  // travels along; see event_header
};

// One or more domain consumers failed. All of them have run by then.
class consumers_failed : public std::runtime_error {
public:
    struct each {
        std::string consumer;
        std::exception_ptr error; // a returned failure is a holdfast::failed here
    };
    consumers_failed(const std::string& message, std::vector<each> failures)
        : std::runtime_error(message), failures_(std::move(failures)) {}
    const std::vector<each>& failures() const noexcept { return failures_; } // in declared order

private:
    std::vector<each> failures_;
};

// Runs the domain consumers of an event, in declared order, all of them. The engine has the one that hosts use.
class domain_dispatcher {
public:
    virtual task<void> dispatch(std::string_view topic, const void* event, const std::type_info& of,
                                unit_of_work& in) = 0;

protected:
    ~domain_dispatcher() = default;
};

// Any thread. What it is given must outlive it.
class events {
public:
    // Called after an event was recorded outside a unit: the relay need not wait for its next look.
    using nudge = void (*)(void* whom);

    events(outbox_store* outbox, identifier_source& ids, domain_dispatcher* domain) noexcept
        : outbox_(outbox), ids_(ids), domain_(domain) {}
    events(const events&) = delete;
    events& operator=(const events&) = delete;

    // Domain plane: returns when every domain consumer has run. Throws consumers_failed if one failed: let the unit go then.
    template <class Event>
    task<void> raise(unit_of_work& in, Event event) {
        return raise_it(std::move(event), in);
    }

    // Integration plane: part of the unit. The id of the event.
    template <class Event>
    task<result<identifier>> publish(unit_of_work& in, Event event, publish_options options = {}) {
        return append_one(make(event, std::move(options)), &in);
    }
    // The same in a write of its own: acknowledged = it will be delivered.
    template <class Event>
    task<result<identifier>> publish(Event event, publish_options options = {}) {
        return append_one(make(event, std::move(options)), nullptr);
    }
    // All in one write. The options go for each; an id cannot be among them.
    template <class Event>
    task<result<std::vector<identifier>>> publish_all(unit_of_work& in, std::vector<Event> batch,
                                                      publish_options options = {}) {
        return append_all(make_all(batch, options), &in);
    }
    template <class Event>
    task<result<std::vector<identifier>>> publish_all(std::vector<Event> batch, publish_options options = {}) {
        return append_all(make_all(batch, options), nullptr);
    }

    // The message that publish() would record, for events that are written some other way.
    template <class Event>
    result<envelope> make(const Event& event, publish_options options) {
        static_assert(encodable<Event>, "an event that is published needs a codec: include <holdfast/json.hpp> and "
                                        "BOOST_DESCRIBE_STRUCT it, or specialise holdfast::codec");
        constexpr const event_options& about = event_options_of<Event>();
        result<std::string> body = codec<Event>::encode(event);
        if (!body)
            return fail(body.error().code,
                        "event \"" + std::string(about.name) + "\" cannot be encoded: " + body.error().message);
        if constexpr (detail::has_event_key<Event>)
            if (!options.key) options.key = event.event_key();
        return envelope{
            options.id ? *options.id : ids_.next(), std::string(about.name),
            std::move(options.key).value_or(std::string()),
            payload{std::string(about.name), about.version, std::string(codec<Event>::content_type), std::move(*body)},
            std::move(options.extra)};
    }

    // Whoever relays in this process asks to be told. Once, before anything is published.
    void tell(nudge how, void* whom) noexcept {
        nudge_ = how;
        whom_ = whom;
    }

private:
    template <class Event>
    task<void> raise_it(Event event, unit_of_work& in) {
        if (domain_ == nullptr) co_return;
        co_await domain_->dispatch(event_options_of<Event>().name, &event, typeid(Event), in);
    }
    template <class Event>
    result<std::vector<envelope>> make_all(const std::vector<Event>& batch, const publish_options& options) {
        if (options.id) return fail(errc::invalid_argument, "many events cannot share one id");
        std::vector<envelope> made;
        made.reserve(batch.size());
        for (const Event& each : batch) {
            auto one = make(each, options);
            if (!one) return std::unexpected(std::move(one.error()));
            made.push_back(std::move(*one));
        }
        return made;
    }
    task<result<identifier>> append_one(result<envelope> one, unit_of_work* in) {
        if (!one) co_return std::unexpected(std::move(one.error()));
        std::vector<envelope> batch;
        batch.push_back(std::move(*one));
        auto ids = co_await append_all(std::move(batch), in);
        if (!ids) co_return std::unexpected(std::move(ids.error()));
        co_return ids->front();
    }
    task<result<std::vector<identifier>>> append_all(result<std::vector<envelope>> batch, unit_of_work* in) {
        if (!batch) co_return std::unexpected(std::move(batch.error()));
        if (outbox_ == nullptr)
            co_return fail(errc::configuration,
                           "publishing needs a store with an outbox: write [store] or [store.outbox]");
        std::vector<identifier> ids;
        for (const envelope& each : *batch) ids.push_back(each.id);
        auto written = co_await outbox_->append(std::move(*batch), in);
        if (!written) co_return std::unexpected(std::move(written.error()));
        if (in == nullptr && nudge_ != nullptr) nudge_(whom_);
        co_return ids;
    }

    outbox_store* const outbox_;
    identifier_source& ids_;
    domain_dispatcher* const domain_;
    nudge nudge_ = nullptr;
    void* whom_ = nullptr;
};

} // namespace holdfast
