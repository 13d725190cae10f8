#include "rows.hpp"

#include <algorithm>

#include "lease_places.hpp"

namespace holdfast::events_postgres {

using postgres::reader;

delivery read_delivery(const pqxx::result& from, std::size_t row) {
    reader cells(from, row);
    const std::int64_t subscription = cells.integer();
    const std::int64_t position = cells.integer();
    delivery one{.lease = make_lease(subscription, position, cells.integer()), .message = {}};
    one.position = static_cast<std::uint64_t>(position);
    one.redeliveries = cells.small();
    one.crashes = cells.small();
    one.calls = cells.small();
    one.generation = cells.small();
    const identifier id = cells.id();
    one.message = read_message(cells, id);
    return one;
}

std::pair<dead_message, std::int64_t> read_dead(const pqxx::result& from, std::size_t row) {
    reader cells(from, row);
    dead_message one;
    one.subscription = cells.text();
    one.position = static_cast<std::uint64_t>(cells.integer());
    one.died = cells.time();
    one.redeliveries = cells.small();
    one.crashes = cells.small();
    one.calls = cells.small();
    one.generation = cells.small();
    one.error.type = cells.bytes();
    one.error.message = cells.bytes();
    one.error.stack = cells.bytes();
    const identifier id = cells.id();
    one.message = read_message(cells, id);
    const std::int64_t death = cells.integer();
    return {std::move(one), death};
}

namespace {

// Hexadecimal names with blanks between them.
std::vector<std::string> read_topics(std::string_view text) {
    std::vector<std::string> all;
    while (!text.empty()) {
        const auto blank = std::min(text.find(' '), text.size());
        all.push_back(postgres::decode_bytes("\\x" + std::string(text.substr(0, blank))).value_or(std::string()));
        text.remove_prefix(std::min(blank + 1, text.size()));
    }
    std::ranges::sort(all);
    return all;
}

} // namespace

subscription_view read_view(const pqxx::result& from, std::size_t row) {
    reader cells(from, row);
    const auto number = [&] { return static_cast<std::uint64_t>(std::max<std::int64_t>(cells.integer(), 0)); };
    subscription_view view;
    view.name = cells.text();
    view.topics = read_topics(cells.text());
    const std::uint64_t open = number();
    view.leased = number();
    view.waiting = open - std::min(open, view.leased);
    view.dead = number();
    view.acknowledged = number();
    view.discarded = number();
    return view;
}

} // namespace holdfast::events_postgres
