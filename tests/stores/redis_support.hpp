// Redis stores.
#pragma once

#include <string>

#include "catch.hpp"
#include "harness/redis_server.hpp"
#include "harness/tcp_proxy.hpp"
#include "stores/support.hpp"

// Ends the case when there is no Redis on this machine.
#define NEEDS_REDIS()                                                                                                  \
    if (!holdfast::harness::redis_binary()) SKIP("Redis is not installed (no redis-server found)")

namespace holdfast::test::redis {

using test::fresh_namespace;
using test::text_settings;

inline std::unique_ptr<store> open(runtime& on, const text_settings& with) {
    return open_store("redis", on, with);
}

// One prepared store, with a namespace of its own unless told otherwise.
struct desk : store_desk {
    explicit desk(std::string url, text_settings more = {}, std::string space = fresh_namespace())
        : name(std::move(space)) {
        with = {{"url", std::move(url)}, {"namespace", name}, {"timeout", "2s"}};
        for (auto& each : more) with.push_back(std::move(each));
        kept = open(on, with);
        await(kept->prepare());
    }

    const std::string& space() const { return name; }

    std::string name;
};

} // namespace holdfast::test::redis
