// Brings the file's schema up to this plugin's version, inside the caller's transaction.
#pragma once

#include <string>
#include <vector>

#include "session.hpp"

namespace holdfast::sqlite {

void migrate(session& s);
// The same with other steps, as migrations() gives them.
void migrate(sqlite3* db, const options& how, const std::vector<std::string>& steps);
void remove_schema(session& s);

} // namespace holdfast::sqlite
