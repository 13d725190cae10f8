// Creating, migrating and removing the schema.
#pragma once

#include "core.hpp"

namespace holdfast::postgres {

// One transaction under an advisory lock: whole or not at all, and one at a time. Throws failed for a schema that is
// newer than this plugin and for a server that cannot hold it.
void migrate(core& on, pqxx::transaction_base& in);
void remove_schema(core& on, pqxx::transaction_base& in);

} // namespace holdfast::postgres
