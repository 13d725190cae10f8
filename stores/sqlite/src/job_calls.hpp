// The calls of job_store, each inside a transaction that somebody else began. They throw holdfast::failed.
#pragma once

#include <span>
#include <vector>

#include <holdfast/job_store.hpp>

#include "session.hpp"

namespace holdfast::sqlite {

std::vector<enqueued> enqueue(session& s, const std::vector<new_job>& jobs);
std::vector<claimed_job> claim(session& s, const claim_request& request);
std::vector<write_answer> note_started(session& s, std::span<const job_lease* const> which);
std::vector<beat> heartbeat(session& s, std::span<const job_lease* const> held, duration lease_for);
std::vector<settled> settle(session& s, std::span<const settlement> which);
std::vector<write_answer> note_progress(session& s, std::span<const progress_report> which);

recovery recover_stale(session& s, int limit);
std::vector<cancel_answer> cancel(session& s, const std::vector<identifier>& which);
int requeue(session& s, const std::vector<identifier>& which);
int purge(session& s, job_state state, duration older_than, int limit);
int discard_jobs(session& s, const std::vector<identifier>& which);
void set_paused(session& s, const std::string& queue, bool paused);

// These only read.
std::optional<duration> next_due(session& s, const std::vector<std::string>& queues);
std::vector<queue_view> list_queues(session& s);
job_lookup find(session& s, const identifier& id);
// `below`: ids from there on were given out already; empty = from the newest.
job_page list(session& s, const job_filter& filter, int limit, std::optional<identifier> below);
std::vector<job_count> count_jobs(session& s);

} // namespace holdfast::sqlite
