// Answers of the server as values. What is not as it must be throws failed(errc::internal).
#pragma once

#include <cstdint>
#include <utility>

#include <holdfast/event_transport.hpp>
#include <holdfast/postgres/reader.hpp>

namespace holdfast::events_postgres {

// A row of receive().
delivery read_delivery(const pqxx::result& from, std::size_t row);
// And its number among the dead letters.
std::pair<dead_message, std::int64_t> read_dead(const pqxx::result& from, std::size_t row);
subscription_view read_view(const pqxx::result& from, std::size_t row);

} // namespace holdfast::events_postgres
