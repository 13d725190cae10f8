// The Lua that runs inside the server. Every call is one script: atomic, on the server's clock, one round trip.
//
// All keys start with P = "{namespace}:", so that they share a slot of a cluster; <s> is the name of a subscription:
//   meta      hash: schema, kind, marker, token, position, death, swept
//   s         stream: every message that is kept; its entry is <position>-0. A consumer group for each subscription: an
//             entry that is given out is pending there, with the receiver as its consumer
//   i         hash: id -> position
//   subs      set: subscriptions        w:<s>  set: its topics        t:<topic>  set: subscriptions that want it
//   e:<s>     hash: position -> what it knows of the message, packed; until the message is swept
//   r:<s>     zset: positions that may be given out, by position
//   f:<s>     zset: positions that may be later, by time: the end of a lease or of a delay
//   l:<s>     zset: open messages with a key, score 0; the member is length of the key, key and position, so that it sorts by
//             key and position
//   c:<s>     hash: open, dead, acknowledged, discarded; fill, to: what is still to be opened of an earlier time
//   x, x:<s>  zset: dead letters of all, and of one subscription, by the number of the death
//   g:<s>     hash: position -> why it is dead
//   none      never written: see scripted_server::run_now     hints  channel: names of subscriptions
#pragma once

#include <cstddef>
#include <string_view>

#include <holdfast/redis/scripted_server.hpp>

namespace holdfast::events_redis {

enum class script : unsigned char {
    publish,
    subscribe,
    fill,
    unsubscribe,
    subscriptions,
    receive,
    renew,
    settle,
    next_due,
    dead_messages,
    dead_message,
    send_again,
    discard,
    replay,
    sweep,
};
inline constexpr std::size_t script_count = 15;

// Each whole, with what it needs in front.
const redis::script_library& transport_scripts();

// Parts, by topic.
namespace lua {
extern const std::string_view rules, dead_rules;
extern const std::string_view publish, receive, renew, settle, next_due;
extern const std::string_view subscribe, fill, unsubscribe, subscriptions;
extern const std::string_view dead_messages, dead_message, send_again, discard, replay, sweep;
} // namespace lua

} // namespace holdfast::events_redis
