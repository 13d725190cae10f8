// What a transport case works with: a fresh transport, and the calls that cases make most.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <holdfast/event_conformance.hpp>

#include "plugin_lab.hpp"

namespace holdfast::conformance {

// How long a message is put off where a case looks around meanwhile.
inline constexpr auto a_while = 1s;

class transport_lab final : public plugin_lab {
public:
    transport_lab(const transport_bed& bed, const transport_options& how, const transport_settings& with);
    // Quietly removes what is left of the transport.
    ~transport_lab();
    // Checks that the transport can be removed.
    void close();

    event_transport& transport() noexcept { return *transport_; }
    // A second instance that is open at the same time. Skips the case when the transport is not shared.
    event_transport& other();
    // Closes the transport and opens it again. Skips the case when the data goes with the instance.
    void reopen();

    store_time now() override { return ok(transport_->now(), "now()"); }

private:
    std::unique_ptr<event_transport> opened(std::unique_ptr<event_transport> made);

    const transport_bed& bed_;
    std::unique_ptr<event_transport> transport_;
    std::unique_ptr<event_transport> other_;
};

// A process that publishes and receives.
class event_user {
public:
    using kind = delivery_settlement::kind;

    // Through the lab's own instance, also after it was opened again.
    explicit event_user(transport_lab& in) : in_(in) {}
    event_user(transport_lab& in, event_transport& through) : in_(in), through_(&through) {}

    event_transport& transport() const { return through_ != nullptr ? *through_ : in_.transport(); }

    envelope make(std::string key, std::string topic = "orders", std::string body = "{}") const {
        return {in_.next_id(), std::move(topic), std::move(key), {.type = "test.event", .body = std::move(body)}, {}};
    }
    identifier publish(envelope one) const {
        const identifier id = one.id;
        in_.ok(transport().publish({std::move(one)}), "publish");
        return id;
    }
    identifier publish(std::string key = {}, std::string topic = "orders") const {
        return publish(make(std::move(key), std::move(topic)));
    }
    // In one call.
    std::vector<identifier> publish(int count, const std::string& key) const {
        std::vector<envelope> batch;
        std::vector<identifier> ids;
        for (int i = 0; i < count; ++i) ids.push_back(batch.emplace_back(make(key)).id);
        in_.ok(transport().publish(std::move(batch)), "publish");
        return ids;
    }

    void subscribe(std::string name = "billing", std::vector<std::string> topics = {"orders"},
                   bool from_start = false) const {
        in_.ok(transport().subscribe({std::move(name), std::move(topics), from_start}), "subscribe");
    }
    subscription_view view(const std::string& name = "billing") const {
        for (auto& each : in_.ok(transport().subscriptions(), "subscriptions"))
            if (each.name == name) return each;
        throw check_failed("there is no subscription \"" + name + "\" in the list");
    }

    std::vector<delivery> receive(int limit, duration lease_for = 5min, std::string name = "billing") const {
        auto got = in_.ok(transport().receive(std::move(name), limit, lease_for, "kit"), "receive");
        check(got.size() <= static_cast<std::size_t>(limit), "no more messages than were asked for");
        for (std::size_t i = 1; i < got.size(); ++i)
            check(got[i - 1].position < got[i].position, "messages come with the lowest position first");
        return got;
    }
    delivery receive_one(duration lease_for = 5min, std::string name = "billing") const {
        auto got = receive(1, lease_for, std::move(name));
        check_equal(got.size(), std::size_t{1}, "messages received");
        return std::move(got.front());
    }
    std::size_t waiting_for(std::string name = "billing") const { return receive(100, 5min, std::move(name)).size(); }

    write_answer settle(const delivery& which, kind how = kind::acknowledge, duration after = {}, int calls = 1,
                        delivery_error error = {}) const {
        const delivery_settlement one[] = {{&which.lease, how, after, calls, std::move(error)}};
        return in_.ok(transport().settle(one), "settle").at(0);
    }
    void done(const delivery& which, kind how = kind::acknowledge, duration after = {}, int calls = 1,
              std::source_location where = std::source_location::current()) const {
        check_equal(settle(which, how, after, calls), write_answer::done, "settle", where);
    }
    void bury(const delivery& which, delivery_error error = {"smtp_error", "no such mailbox", ""},
              int calls = 1) const {
        check_equal(settle(which, kind::dead_letter, {}, calls, std::move(error)), write_answer::done, "dead letter");
    }
    write_answer renew(const delivery& which, duration lease_for = 5min) const {
        const delivery_lease* one[] = {&which.lease};
        return in_.ok(transport().renew(one, lease_for), "renew").at(0);
    }
    // Receives and acknowledges until nothing is left; what came, in order.
    std::vector<identifier> drain(int at_a_time, const std::string& name = "billing") const {
        std::vector<identifier> seen;
        for (auto got = receive(at_a_time, 5min, name); !got.empty(); got = receive(at_a_time, 5min, name))
            for (const delivery& each : got) {
                done(each);
                seen.push_back(each.message.id);
            }
        return seen;
    }

    std::vector<dead_message> dead(dead_message_filter filter = {}) const {
        return in_.ok(transport().dead_messages(std::move(filter), 100), "dead_messages").messages;
    }

private:
    transport_lab& in_;
    event_transport* through_ = nullptr;
};

inline std::vector<identifier> ids_of(const std::vector<delivery>& messages) {
    std::vector<identifier> ids;
    for (const auto& each : messages) ids.push_back(each.message.id);
    return ids;
}
inline std::vector<identifier> ids_of(const std::vector<dead_message>& messages) {
    std::vector<identifier> ids;
    for (const auto& each : messages) ids.push_back(each.message.id);
    return ids;
}

struct transport_case {
    std::string name;
    void (*run)(transport_lab&);
    transport_settings with{};
};
using transport_case_list = std::vector<transport_case>;

// By file; each is a group.
transport_case_list publishing_cases();
transport_case_list subscription_cases();
transport_case_list event_order_cases();
transport_case_list delivery_lease_cases();
transport_case_list redelivery_cases();
transport_case_list dead_message_cases();
transport_case_list replay_cases();
transport_case_list transport_care_cases();
transport_case_list transport_fleet_cases();

} // namespace holdfast::conformance
