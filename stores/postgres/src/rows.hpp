// Answers of the server as values. What is not as it must be throws failed(errc::internal).
#pragma once

#include <holdfast/job_store.hpp>
#include <holdfast/outbox_store.hpp>

#include <holdfast/postgres/reader.hpp>

namespace holdfast::postgres {

// `due` tells the order.
claimed_job read_claimed(const pqxx::result& from, std::size_t row, std::int64_t& due);
// job_columns, from the reader's place on.
job_view read_job(reader& from);
// The answer of query::get.
job_lookup read_lookup(const pqxx::result& from);
leased_message read_leased(const pqxx::result& from, std::size_t row);
message_view read_set_aside(const pqxx::result& from, std::size_t row);

} // namespace holdfast::postgres
