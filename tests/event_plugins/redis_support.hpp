// Transports on Redis servers.
#pragma once

#include "event_plugins/support.hpp"
#include "stores/redis_support.hpp"

namespace holdfast::test::redis {

// With a namespace of its own.
struct event_desk : test::event_desk {
    explicit event_desk(const std::string& url, text_settings more = {})
        : test::event_desk("redis", settings(std::move(more), url)) {}

    const std::string& space() const { return with.back().second; }

private:
    static text_settings settings(text_settings with, const std::string& url) {
        with.emplace_back("url", url);
        with.emplace_back("timeout", "2s");
        with.emplace_back("namespace", fresh_namespace());
        return with;
    }
};

} // namespace holdfast::test::redis
