// A user of the outbox facet, with the calls that cases make most.
#pragma once

#include <string>
#include <vector>

#include "store_lab.hpp"

namespace holdfast::conformance {

class outbox_user {
public:
    explicit outbox_user(store_lab& in) : outbox_user(in, in.outbox()) {}
    outbox_user(store_lab& in, outbox_store& through) : in_(in), outbox_(through) {}

    outbox_store& outbox() const { return outbox_; }

    outgoing_message make(std::string key, std::string body = "{}") const {
        return {in_.next_id(), "topic", std::move(key), {.type = "test.event", .body = std::move(body)}, {}};
    }
    identifier append(outgoing_message m) const {
        const identifier id = m.id;
        in_.ok(outbox_.append({std::move(m)}), "append");
        return id;
    }
    identifier append(std::string key) const { return append(make(std::move(key))); }

    std::vector<leased_message> lease(int limit, duration lease_for = 5min) const {
        auto leased = in_.ok(outbox_.lease_batch(limit, lease_for, "relay"), "lease_batch");
        check(leased.size() <= static_cast<std::size_t>(limit), "a batch has no more messages than were asked for");
        return leased;
    }
    leased_message lease_one(duration lease_for = 5min) const {
        auto leased = lease(1, lease_for);
        check_equal(leased.size(), std::size_t{1}, "messages leased");
        return std::move(leased.front());
    }
    write_answer delivered(const leased_message& m) const {
        const message_lease* one[] = {&m.lease};
        return in_.ok(outbox_.delivered(one), "delivered").at(0);
    }
    write_answer failed(const leased_message& m, duration retry_after, bool set_aside = false) const {
        const message_failure one[] = {{&m.lease, "unreachable", retry_after, set_aside}};
        return in_.ok(outbox_.failed(one), "failed").at(0);
    }
    // Leases and delivers until nothing is left; what was sent, in order.
    std::vector<identifier> drain(int at_a_time) const {
        std::vector<identifier> sent;
        for (auto leased = lease(at_a_time); !leased.empty(); leased = lease(at_a_time))
            for (const auto& each : leased) {
                check_equal(delivered(each), write_answer::done, "delivered");
                sent.push_back(each.message.id);
            }
        return sent;
    }
    std::uint64_t unsent() const { return in_.ok(outbox_.unsent(), "unsent"); }
    std::vector<message_view> set_aside(int limit = 100, std::uint64_t after = 0) const {
        return in_.ok(outbox_.set_aside(limit, after), "set_aside");
    }

private:
    store_lab& in_;
    outbox_store& outbox_;
};

inline std::vector<identifier> ids_of(const std::vector<leased_message>& messages) {
    std::vector<identifier> ids;
    for (const auto& each : messages) ids.push_back(each.message.id);
    return ids;
}

} // namespace holdfast::conformance
