// What a configuration says about the servers, and what the store keeps there for how long.
#pragma once

#include <holdfast/redis/options.hpp>

namespace holdfast::redis {

struct store_options : options {
    std::vector<address> lock_servers{}; // for locks on a majority of them; empty: locks are where the rest is
    duration keep_succeeded = std::chrono::hours{24};
    duration keep_tombstones = std::chrono::hours{24 * 7};

    // Throws failed(errc::configuration).
    static store_options from(settings& from) {
        store_options o{options::from(from, "holdfast")};
        const std::string locks = from.text("lock_servers", "");
        o.lock_servers = parse_servers("lock_servers", locks, o.where.servers.front());
        if (!locks.empty() && o.lock_servers.size() < 3)
            throw failed(
                {errc::configuration,
                 "lock_servers: a majority needs 3 servers or more, found " + std::to_string(o.lock_servers.size()),
                 {}});
        o.keep_succeeded = from.time("keep_succeeded", o.keep_succeeded);
        o.keep_tombstones = from.time("keep_tombstones", o.keep_tombstones);
        return o;
    }
};

} // namespace holdfast::redis
