// Replies of the scripts as the types of the interface. Pure. A reply of another shape than expected throws
// failed(errc::internal).
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include <holdfast/event_transport.hpp>
#include <holdfast/redis/reader.hpp>

namespace holdfast::events_redis {

// What a lease of this transport names: a subscription, and a position in front of it.
struct lease_place {
    std::uint64_t position = 0; // 0: there is none
    std::string subscription;
};
lease_place place_of(const delivery_lease* held);

delivery decode_delivery(redis::reply& from, const std::string& subscription);
// And the number of its death.
std::pair<dead_message, std::string> decode_dead(redis::reply& from);
subscription_view decode_view(redis::reply& from);

} // namespace holdfast::events_redis
