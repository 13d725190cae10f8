// Every statement that the transport sends. Pure.
#pragma once

#include <cstddef>
#include <string_view>

#include <holdfast/postgres/statement_table.hpp>

namespace holdfast::events_postgres {

enum class query : std::size_t {
    now,
    publish,
    subscribe,
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
    newest,
    replay,
    sweep,
    count
};

class statements : public postgres::statement_table<query> {
public:
    explicit statements(std::string_view name);
};

} // namespace holdfast::events_postgres
