// What a configuration says about the servers, and what the transport keeps there for how long.
#pragma once

#include <cstdint>

#include <holdfast/redis/options.hpp>

namespace holdfast::events_redis {

struct transport_options : redis::options {
    duration keep = std::chrono::hours{24 * 7}; // messages that nobody needs, for replays
    std::int64_t max_backlog = 1'000'000;       // open messages of one subscription; 0: no limit

    // Throws failed(errc::configuration).
    static transport_options from(settings& from) {
        transport_options o{redis::options::from(from, "holdfast_events")};
        o.keep = from.time("keep", o.keep);
        o.max_backlog = from.integer("max_backlog", o.max_backlog, 0, std::int64_t{1} << 40);
        return o;
    }
};

} // namespace holdfast::events_redis
