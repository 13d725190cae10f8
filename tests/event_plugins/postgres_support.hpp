// Transports on a PostgreSQL server that all cases of the program share.
#pragma once

#include "event_plugins/support.hpp"
#include "stores/postgres_support.hpp"

namespace holdfast::test::postgres {

// With a namespace of its own, removed at the end.
struct event_desk : test::event_desk {
    explicit event_desk(text_settings more = {}, const std::string& url = shared_server().url())
        : test::event_desk("postgres", settings(std::move(more), url)) {}
    ~event_desk() { (void)sync_wait(on, kept->destroy()); }

    const std::string& space() const { return with.back().second; }

private:
    static text_settings settings(text_settings with, const std::string& url) {
        with.emplace_back("url", url);
        with.emplace_back("namespace", fresh_namespace());
        return with;
    }
};

} // namespace holdfast::test::postgres
