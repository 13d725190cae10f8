// The text of the database schema, pure. Times are microseconds since 1970 on the server's clock; identifiers are uuid;
// what may be any bytes is bytea. Job states and settlement kinds are the numbers of job_state and settlement::kind.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast::postgres {

inline constexpr int schema_version = 1;

// Puts the schema's quoted name where `{ns}` is written.
std::string in_namespace(std::string_view sql, std::string_view name);

// Where it is told that something can be claimed.
std::string channel_name(std::string_view name);

// A number for pg_advisory_lock that stands for a thing in a namespace; the same in every version of this plugin.
std::int64_t advisory_number(std::string_view name, std::string_view kind, std::string_view key = {});

std::string_view tables_sql();           // version 1, from nothing
std::string_view job_functions_sql();    // enqueue, claim, settle, heartbeat, started, progress
std::string_view upkeep_functions_sql(); // recover, sweep, cancel, requeue, purge, next_due
std::string_view other_functions_sql();  // locks, idempotency, outbox, inbox

} // namespace holdfast::postgres
