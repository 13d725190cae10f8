// One job's record in the file: found, changed by the state machine, written back with all that follows from it.
#pragma once

#include <optional>

#include "rows.hpp"

namespace holdfast::sqlite {

std::optional<stored_job> find_job(session& s, const identifier& id);
std::vector<stored_job> jobs_of(use rows);

// After the machine changed it. An attempt that ended goes into the history; a job that ended has its children told,
// and is deleted when nobody wants to keep it.
void store_transition(session& s, stored_job& job, std::string_view output = {});

// Another unfinished job of its type has its unique key.
bool key_taken(session& s, const stored_job& job);
// Children that the parent's end had cancelled wait for it again, and theirs for them.
void rearm_children(session& s, const stored_job& parent);

// Deletes it with all that belongs to it; `remember`: leaves a note that it existed.
void forget_job(session& s, const stored_job& job, bool remember);

} // namespace holdfast::sqlite
