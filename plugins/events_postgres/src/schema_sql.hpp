// The text of the database schema, pure. Times are microseconds since 1970 on the server's clock; identifiers are uuid;
// what may be any bytes is bytea. Settlement kinds and answers are the numbers of delivery_settlement::kind and
// write_answer.
//
// Who waits for whom: advisory locks of two numbers, the first of the namespace (_locks), the second
//   -3          sweep, and whoever opens what was settled
//   -1          shared by publishers, alone by who changes subscriptions
//   1024 and up one subscription: who receives from it, or opens messages again
//   -2          shared by who locks single lines, alone by who would lock too many of them
//   0 to 1023   a line, which is what keys are hashed to: publishers, and who closes messages of those keys
// and in this order, so that nobody waits in a circle.
#pragma once

#include <string_view>

#include <holdfast/postgres/schema.hpp>

namespace holdfast::events_postgres {

std::string_view tables_sql();
std::string_view work_functions_sql();   // publish, receive, settle
std::string_view upkeep_functions_sql(); // subscribe, send_again, replay, sweep

// All of it, version by version.
postgres::schema transport_schema();

} // namespace holdfast::events_postgres
