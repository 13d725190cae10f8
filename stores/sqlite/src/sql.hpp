// The text of every statement, for one namespace. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/job_store.hpp>

namespace holdfast::sqlite {

enum class query : std::size_t {
    begin,
    commit,
    rollback,
    savepoint,
    release,
    rollback_to,
    savepoint_some,
    release_some,
    rollback_some,
    begin_read,
    next_token,

    job_insert,
    job_insert_many,
    job_number,
    job_body_insert,
    job_id_known,
    job_any_tombstone,
    job_tombstone,
    job_by_key,
    job_parent,
    job_load,
    job_save,
    job_delete,
    job_attempts_delete,
    job_body_delete,
    job_output_delete,
    job_output_save,
    job_attempt_append,
    job_next_priority,
    job_due,
    job_take,
    job_done_forget,
    job_done_forget_told,
    job_done_keep,
    job_done_keep_told,
    job_heartbeat,
    job_started,
    job_progress,
    job_stale,
    job_waiting_children,
    job_cancelled_children,
    job_key_taken,
    job_first_due,
    job_purgeable,
    job_purgeable_kept,
    job_expired,
    job_bury,
    job_unbury,
    job_view,
    job_history,
    job_counts,
    queue_note,
    queue_pause,
    queue_paused,
    queue_list,

    claim_key,
    claims_sweep,
    begin_look,
    begin_write,
    begin_complete,
    begin_completed,
    begin_abandon,
    begin_renew,
    begin_sweep,

    lock_take,
    lock_renew,
    lock_release,
    lock_sweep,

    message_insert,
    message_body_insert,
    message_body_delete,
    message_heads,
    message_followers,
    message_load,
    message_take,
    message_known,
    message_delivered,
    message_failed,
    message_set_aside,
    message_unhead,
    message_head,
    message_aside_list,
    message_send_again,
    message_discard,
    message_count,
    inbox_receive,
    inbox_received,
    inbox_sweep,

    count,
};

// An identifier in double quotes, whatever is in it.
std::string quoted(std::string_view name);

// Replaces every {name} by the quoted name of that table or index under the prefix.
std::string expand(std::string_view prefix, std::string_view text);

// Rows of job_insert_many.
inline constexpr std::size_t jobs_at_once = 16;
// Parameters of job_done_forget, job_done_keep and those that tell which: token, default keep, time, then this many ids, some perhaps twice.
inline constexpr std::size_t ids_at_once = 32;

class statements {
public:
    explicit statements(std::string_view prefix);
    const std::string& operator[](query q) const noexcept { return texts_[static_cast<std::size_t>(q)]; }

    // Parameters: ?1 the store's time, ?2 the id to stay below, ?3 limit, then queue and type, if given.
    std::string list_jobs(const job_filter& filter) const;

private:
    std::string prefix_;
    std::array<std::string, static_cast<std::size_t>(query::count)> texts_;
};

// The schema, step by step: element n brings version n to version n + 1.
std::vector<std::string> migrations(std::string_view prefix);
std::string drop_everything(std::string_view prefix);

} // namespace holdfast::sqlite
