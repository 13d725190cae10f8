// What a configuration says about the server, and what the store keeps there for how long.
#pragma once

#include <holdfast/postgres/options.hpp>

namespace holdfast::postgres {

struct store_options : options {
    duration keep_succeeded = std::chrono::hours{24};
    duration keep_tombstones = std::chrono::hours{24 * 7};

    // Throws failed(errc::configuration).
    static store_options from(settings& from) {
        store_options o{options::from(from, "holdfast")};
        o.keep_succeeded = from.time("keep_succeeded", o.keep_succeeded);
        o.keep_tombstones = from.time("keep_tombstones", o.keep_tombstones);
        return o;
    }
};

} // namespace holdfast::postgres
