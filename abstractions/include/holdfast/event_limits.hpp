// For authors of events plugins: the limits that every transport keeps, checked before anything is written. Pure.
// Envelopes are checked by store_limits::check_all().
#pragma once

#include <cstdint>
#include <string>

#include <holdfast/event_transport.hpp>
#include <holdfast/store_limits.hpp>

namespace holdfast::store_limits {

inline result<void> check(const subscription& what) {
    if (auto ok = check_name("subscription", what.name); !ok) return ok;
    if (what.topics.empty())
        return fail(errc::invalid_argument, "the subscription \"" + what.name + "\" has no topics");
    for (const std::string& each : what.topics)
        if (auto ok = check_name("topic", each); !ok) return ok;
    return {};
}

inline result<void> check_receive(int limit, duration lease_for) {
    if (limit < 1) return fail(errc::invalid_argument, "receiving needs a limit of 1 or more");
    if (lease_for <= duration::zero()) return fail(errc::invalid_argument, "a lease must last longer than 0");
    return {};
}

inline error no_subscription(const std::string& name) {
    return {errc::not_found, "there is no subscription \"" + name + "\"", {}};
}

// A subscription is full.
inline error overloaded(const std::string& name, std::uint64_t open, std::uint64_t max_backlog) {
    return {errc::overloaded,
            "subscription \"" + name + "\" has " + std::to_string(open) + " open messages, max_backlog allows " +
                std::to_string(max_backlog),
            std::chrono::milliseconds{100}};
}

} // namespace holdfast::store_limits
