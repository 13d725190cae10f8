// Redis stores.
#pragma once

#include <chrono>
#include <string>
#include <thread>

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

// Whether it holds within ten seconds.
template <class Condition>
bool soon(Condition holds) {
    for (int i = 0; i < 10'000 && !holds(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds{1});
    return holds();
}

// The newest connection that listens, as "id=7"; empty: there is none.
inline std::string subscriber(const harness::redis_server& server) {
    const auto all = server.lines("CLIENT LIST TYPE pubsub");
    return all.empty() ? std::string() : all.back().substr(0, all.back().find(' '));
}

} // namespace holdfast::test::redis
