#pragma once

#include <holdfast/unit_of_work.hpp>

#include "core.hpp"

namespace holdfast::sqlite {

// Waits for its turn on the writer and keeps it until the unit ends.
task<result<std::unique_ptr<unit_of_work>>> begin_unit(std::shared_ptr<core> of);
// Inside a transaction that the application has open on `db`, a connection to the same file.
result<std::unique_ptr<unit_of_work>> join_unit(std::shared_ptr<core> of, sqlite3* db);

} // namespace holdfast::sqlite
