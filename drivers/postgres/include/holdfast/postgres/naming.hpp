// What things are called in a database that several namespaces share. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast::postgres {

// Puts the schema's quoted name where `{ns}` is written.
std::string in_namespace(std::string_view sql, std::string_view name);

// Where it is told that something can be claimed.
std::string channel_name(std::string_view name);

// A number for pg_advisory_lock that stands for a thing in a namespace; the same in every version of this plugin.
std::int64_t advisory_number(std::string_view name, std::string_view kind, std::string_view key = {});

} // namespace holdfast::postgres
