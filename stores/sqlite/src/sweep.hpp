#pragma once

#include "session.hpp"

namespace holdfast::sqlite {

// Forgets what has expired, at most `limit` of each kind: kept jobs, notes of jobs, claimed keys, idempotency records,
// locks, inbox entries. True: there may be more.
bool sweep(session& s, int limit);

} // namespace holdfast::sqlite
