#include "scripts.hpp"

#include <string>

namespace holdfast::events_redis {

namespace {

std::string script_text(script which) {
    const auto join = [](std::string_view body) {
        return std::string(redis::lua::prelude).append(lua::rules).append(body);
    };
    const auto dead = [&](std::string_view body) { return join(std::string(lua::dead_rules).append(body)); };
    switch (which) {
    case script::publish: return join(lua::publish);
    case script::subscribe: return join(lua::subscribe);
    case script::fill: return join(lua::fill);
    case script::unsubscribe: return join(lua::unsubscribe);
    case script::subscriptions: return join(lua::subscriptions);
    case script::receive: return join(lua::receive);
    case script::renew: return join(lua::renew);
    case script::settle: return join(lua::settle);
    case script::next_due: return join(lua::next_due);
    case script::dead_messages: return dead(lua::dead_messages);
    case script::dead_message: return dead(lua::dead_message);
    case script::send_again: return dead(lua::send_again);
    case script::discard: return dead(lua::discard);
    case script::replay: return dead(lua::replay);
    case script::sweep: return join(lua::sweep);
    }
    return {};
}

} // namespace

const redis::script_library& transport_scripts() {
    static const redis::script_library library = [] {
        redis::script_library made{.schema = 1, .kind = "events", .all = {}};
        for (std::size_t i = 0; i < script_count; ++i) made.all.push_back(script_text(static_cast<script>(i)));
        return made;
    }();
    return library;
}

} // namespace holdfast::events_redis
