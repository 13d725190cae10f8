// The text of the database schema, pure. Times are microseconds since 1970 on the server's clock; identifiers are uuid;
// what may be any bytes is bytea. Job states and settlement kinds are the numbers of job_state and settlement::kind.
#pragma once

#include <string_view>

#include <holdfast/postgres/schema.hpp>

namespace holdfast::postgres {

std::string_view tables_sql();           // version 1, from nothing
std::string_view job_functions_sql();    // enqueue, claim, settle, heartbeat, started, progress
std::string_view upkeep_functions_sql(); // sweep, cancel, requeue, purge, next_due
std::string_view other_functions_sql();  // locks, idempotency, outbox, inbox
std::string_view handover_sql();         // version 2: jobs for workers that wait, recover

// All of it, version by version.
schema store_schema();

} // namespace holdfast::postgres
