// Brings the file's schema up to this plugin's version, inside the caller's transaction.
#pragma once

#include "session.hpp"

namespace holdfast::sqlite {

void migrate(session& s);
void remove_schema(session& s);

} // namespace holdfast::sqlite
