#include "sql.hpp"

#include <utility>

namespace holdfast::sqlite {

std::string quoted(std::string_view name) {
    std::string text = "\"";
    for (const char c : name) {
        if (c == '"') text += '"';
        text += c;
    }
    return text + '"';
}

std::string expand(std::string_view prefix, std::string_view text) {
    std::string out;
    for (;;) {
        const auto open = text.find('{');
        out += text.substr(0, open);
        if (open == std::string_view::npos) return out;
        const auto close = text.find('}', open);
        out += quoted(std::string(prefix) + '_' + std::string(text.substr(open + 1, close - open - 1)));
        text.remove_prefix(close + 1);
    }
}

namespace {

// Claimable once due, and in the index {jobs_open}. SQLite compares this word for word with the index's own condition.
#define HOLDFAST_OPEN "state<4 AND state<>2 AND waits=0"

// What the state machine works on; read by read_machine_row.
#define HOLDFAST_MACHINE                                                                                               \
    "seq, id, state, token, attempts, max_attempts, crashes, max_crashes, generation, may_restart, started, "          \
    "cancel_requested, waits, cancelled_by_parent, has_children, runs, large, keep, due, ended, expires, leased, "     \
    "claimed, worker, error_type, error_message"

#define HOLDFAST_BODY "CASE WHEN large THEN (SELECT b.body FROM {job_bodies} b WHERE b.job=seq) ELSE body END"

// The rest of a job_view; read by read_view_row.
#define HOLDFAST_VIEW                                                                                                  \
    HOLDFAST_MACHINE ", queue, priority, created, unique_key, parent, type, version, content_type, headers, percent, " \
                     "note, " HOLDFAST_BODY ", (SELECT o.output FROM {job_outputs} o WHERE o.job=seq)"

#define HOLDFAST_MESSAGE                                                                                               \
    "position, id, topic, key, attempts, type, version, content_type, headers, last_error, "                           \
    "CASE WHEN large THEN (SELECT b.body FROM {message_bodies} b WHERE b.message=position) ELSE body END"

// As many as ids_at_once.
#define HOLDFAST_IDS                                                                                                   \
    "?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19,"                                                       \
    "?20,?21,?22,?23,?24,?25,?26,?27,?28,?29,?30,?31,?32,?33,?34,?35"

#define HOLDFAST_FORGET                                                                                                \
    "DELETE FROM {jobs} WHERE id IN (" HOLDFAST_IDS ") AND token=?1 AND state=2 AND has_children=0 "                   \
    "AND runs=0 AND large=0 AND coalesce(keep, ?2)<=0"
#define HOLDFAST_KEEP                                                                                                  \
    "UPDATE {jobs} SET state=4, ended=?3, expires=?3+keep WHERE id IN (" HOLDFAST_IDS                                  \
    ") AND token=?1 AND state=2 AND has_children=0 AND coalesce(keep, ?2)>0"

struct entry {
    query which;
    std::string_view text;
};

constexpr entry entries[] = {
    {query::begin, "BEGIN IMMEDIATE"},
    {query::commit, "COMMIT"},
    {query::rollback, "ROLLBACK"},
    {query::savepoint, "SAVEPOINT holdfast_call"},
    {query::release, "RELEASE holdfast_call"},
    {query::rollback_to, "ROLLBACK TO holdfast_call"},
    {query::savepoint_some, "SAVEPOINT holdfast_some"},
    {query::release_some, "RELEASE holdfast_some"},
    {query::rollback_some, "ROLLBACK TO holdfast_some"},
    {query::begin_read, "BEGIN"},
    {query::next_token, "UPDATE {meta} SET value=value+1 WHERE key='token' RETURNING value"},

    {query::job_insert,
     "INSERT INTO {jobs}(id, queue, priority, state, due, max_attempts, max_crashes, may_restart, waits, "
     "cancelled_by_parent, large, keep, created, ended, unique_key, parent, type, version, content_type, headers, "
     "body) "
     "VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19,?20,?21) ON CONFLICT DO NOTHING"},
    {query::job_number, "SELECT seq FROM {jobs} WHERE id=?1"},
    {query::job_body_insert, "INSERT INTO {job_bodies}(job, body) VALUES(last_insert_rowid(), ?1)"},
    {query::job_id_known, "SELECT 1 FROM {jobs} WHERE id=?1"},
    {query::job_any_tombstone, "SELECT 1 FROM {tombstones} LIMIT 1"},
    {query::job_tombstone, "SELECT 1 FROM {tombstones} WHERE id=?1 AND expires>?2"},
    {query::job_by_key, "SELECT id FROM {jobs} WHERE type=?1 AND unique_key=?2 AND unique_key IS NOT NULL AND state<4"},
    {query::job_parent, "UPDATE {jobs} SET has_children=1 WHERE id=?1 RETURNING state"},
    {query::job_load, "SELECT " HOLDFAST_MACHINE " FROM {jobs} WHERE id=?1"},
    {query::job_save,
     "UPDATE {jobs} SET state=?2, due=?3, ended=?4, attempts=?5, crashes=?6, generation=?7, cancel_requested=?8, "
     "waits=?9, cancelled_by_parent=?10, worker=?11, leased=?12, error_type=?13, error_message=?14, runs=?15, "
     "expires=?16 WHERE seq=?1"},
    {query::job_delete, "DELETE FROM {jobs} WHERE seq=?1"},
    {query::job_attempts_delete, "DELETE FROM {attempts} WHERE job=?1"},
    {query::job_body_delete, "DELETE FROM {job_bodies} WHERE job=?1"},
    {query::job_output_delete, "DELETE FROM {job_outputs} WHERE job=?1"},
    {query::job_output_save, "INSERT OR REPLACE INTO {job_outputs}(job, output) VALUES(?1, ?2)"},
    {query::job_attempt_append,
     "INSERT INTO {attempts}(job, token, generation, number, worker, started, ended, outcome, error_type, "
     "error_message) VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10)"},
    {query::job_next_priority, "SELECT priority FROM {jobs} INDEXED BY {jobs_open} WHERE " HOLDFAST_OPEN
                               " AND queue=?1 AND priority<?2 ORDER BY priority DESC LIMIT 1"},
    {query::job_due,
     "SELECT id, attempts, max_attempts, crashes, generation, may_restart, cancel_requested, type, version, "
     "content_type, headers, " HOLDFAST_BODY " FROM {jobs} INDEXED BY {jobs_open} WHERE " HOLDFAST_OPEN
     " AND queue=?1 AND priority=?2 AND due<=?3 ORDER BY due, id LIMIT ?4"},
    {query::job_take, // those that job_due gave
     "UPDATE {jobs} SET state=2, token=?5, attempts=attempts+1, started=0, worker=?6, claimed=?3, leased=?7 "
     "WHERE seq IN (SELECT seq FROM {jobs} INDEXED BY {jobs_open} WHERE " HOLDFAST_OPEN
     " AND queue=?1 AND priority=?2 AND due<=?3 ORDER BY due, id LIMIT ?4)"},
    // Successes of jobs that have nothing to them: no children, no earlier attempts to delete, no body elsewhere. When one
    // is kept, its lease is left in the row: that tells that the row is the only record of its last attempt. To be told which
    // rows these were makes it half as dear again.
    {query::job_done_forget, HOLDFAST_FORGET},
    {query::job_done_forget_told, HOLDFAST_FORGET " RETURNING id"},
    {query::job_done_keep, HOLDFAST_KEEP},
    {query::job_done_keep_told, HOLDFAST_KEEP " RETURNING id"},
    {query::job_heartbeat,
     "UPDATE {jobs} SET leased=?3 WHERE id=?1 AND token=?2 AND state=2 RETURNING cancel_requested"},
    {query::job_started, "UPDATE {jobs} SET started=1 WHERE id=?1 AND token=?2 AND state=2"},
    {query::job_progress, "UPDATE {jobs} SET percent=?3, note=?4 WHERE id=?1 AND token=?2 AND state=2"},
    {query::job_stale, "SELECT " HOLDFAST_MACHINE " FROM {jobs} INDEXED BY {jobs_leased} WHERE state=2 AND leased<=?1 "
                       "ORDER BY leased LIMIT ?2"},
    {query::job_waiting_children,
     "SELECT " HOLDFAST_MACHINE " FROM {jobs} WHERE parent=?1 AND parent IS NOT NULL AND waits=1 AND state<4"},
    {query::job_cancelled_children,
     "SELECT " HOLDFAST_MACHINE " FROM {jobs} WHERE parent=?1 AND parent IS NOT NULL AND cancelled_by_parent=1"},
    {query::job_key_taken,
     "SELECT 1 FROM {jobs} mine JOIN {jobs} other ON other.type=mine.type AND other.unique_key=mine.unique_key "
     "WHERE mine.seq=?1 AND other.unique_key IS NOT NULL AND other.state<4 AND other.seq<>mine.seq"},
    {query::job_first_due, "SELECT due FROM {jobs} INDEXED BY {jobs_open} WHERE " HOLDFAST_OPEN
                           " AND queue=?1 AND priority=?2 ORDER BY due LIMIT 1"},
    {query::job_purgeable,
     "SELECT " HOLDFAST_MACHINE " FROM {jobs} INDEXED BY {jobs_ended} WHERE state=?1 AND state>=4 AND expires IS NULL "
     "AND ended<=?2 ORDER BY ended LIMIT ?3"},
    {query::job_purgeable_kept,
     "SELECT " HOLDFAST_MACHINE " FROM {jobs} INDEXED BY {jobs_kept} WHERE expires IS NOT NULL AND ended<=?1 "
     "ORDER BY ended LIMIT ?2"},
    {query::job_expired,
     "SELECT " HOLDFAST_MACHINE " FROM {jobs} INDEXED BY {jobs_expires} WHERE expires IS NOT NULL AND expires<=?1 "
     "ORDER BY expires LIMIT ?2"},
    {query::job_bury, "INSERT OR REPLACE INTO {tombstones}(id, expires) VALUES(?1, ?2)"},
    {query::job_unbury,
     "DELETE FROM {tombstones} WHERE id IN (SELECT id FROM {tombstones} WHERE expires<=?1 LIMIT ?2)"},
    {query::job_view, "SELECT " HOLDFAST_VIEW " FROM {jobs} WHERE id=?1"},
    {query::job_history,
     "SELECT generation, number, token, worker, started, ended, outcome, error_type, error_message FROM {attempts} "
     "WHERE job=?1 ORDER BY token"},
    {query::job_counts,
     "SELECT queue, state, sum(n) FROM ("
     "SELECT queue, state, count(*) n FROM {jobs} INDEXED BY {jobs_final} WHERE state>=4 GROUP BY queue, state "
     "UNION ALL SELECT queue, CASE WHEN due<=?1 THEN 1 ELSE state END s, count(*) FROM {jobs} INDEXED BY {jobs_open} "
     "WHERE " HOLDFAST_OPEN " GROUP BY queue, s "
     "UNION ALL SELECT queue, 2, count(*) FROM {jobs} INDEXED BY {jobs_leased} WHERE state=2 GROUP BY queue "
     "UNION ALL SELECT queue, state, count(*) FROM {jobs} INDEXED BY {jobs_parent} "
     "WHERE parent IS NOT NULL AND waits=1 AND state<4 GROUP BY queue, state"
     ") GROUP BY queue, state ORDER BY queue, state"},
    {query::queue_note, "INSERT INTO {queues}(name, paused) VALUES(?1, 0) ON CONFLICT DO NOTHING"},
    {query::queue_pause,
     "INSERT INTO {queues}(name, paused) VALUES(?1, ?2) ON CONFLICT(name) DO UPDATE SET paused=excluded.paused"},
    {query::queue_paused, "SELECT 1 FROM {queues} WHERE name=?1 AND paused=1"},
    {query::queue_list, "SELECT name, paused FROM {queues} ORDER BY name"},

    {query::claim_key,
     "INSERT INTO {claims}(key, expires) VALUES(?1, ?2) ON CONFLICT(key) DO UPDATE SET expires=excluded.expires "
     "WHERE expires<=?3"},
    {query::claims_sweep, "DELETE FROM {claims} WHERE key IN (SELECT key FROM {claims} WHERE expires<=?1 LIMIT ?2)"},
    {query::begin_look,
     "SELECT done, fingerprint, leased, expires, type, version, content_type, body FROM {idempotency} WHERE key=?1"},
    {query::begin_write,
     "INSERT OR REPLACE INTO {idempotency}(key, token, done, fingerprint, leased, expires) VALUES(?1,?2,0,?3,?4,?5)"},
    {query::begin_complete,
     "UPDATE {idempotency} SET done=1, expires=?3, type=?4, version=?5, content_type=?6, body=?7 "
     "WHERE key=?1 AND token=?2 AND done=0 AND expires>?8"},
    {query::begin_completed, "SELECT 1 FROM {idempotency} WHERE key=?1 AND token=?2 AND done=1 AND expires>?3"},
    {query::begin_abandon, "DELETE FROM {idempotency} WHERE key=?1 AND token=?2 AND done=0 AND expires>?3"},
    {query::begin_renew, "UPDATE {idempotency} SET leased=?3, expires=max(expires, ?3) WHERE key=?1 AND token=?2 AND "
                         "done=0 AND expires>?4"},
    {query::begin_sweep,
     "DELETE FROM {idempotency} WHERE key IN (SELECT key FROM {idempotency} WHERE expires<=?1 LIMIT ?2)"},

    {query::lock_take,
     "INSERT INTO {locks}(resource, token, until) VALUES(?1,?2,?3) ON CONFLICT(resource) DO UPDATE SET "
     "token=excluded.token, until=excluded.until WHERE until<=?4"},
    {query::lock_renew, "UPDATE {locks} SET until=?3 WHERE resource=?1 AND token=?2 AND until>?4"},
    {query::lock_release, "DELETE FROM {locks} WHERE resource=?1 AND token=?2"},
    {query::lock_sweep,
     "DELETE FROM {locks} WHERE resource IN (SELECT resource FROM {locks} WHERE until<=?1 LIMIT ?2)"},

    {query::message_insert,
     "INSERT INTO {outbox}(id, head, due, key, topic, type, version, content_type, headers, large, body) VALUES("
     "?1, ?2=x'' OR NOT EXISTS(SELECT 1 FROM {outbox} WHERE aside=0 AND key=?2), "
     "?3, ?2, ?4, ?5, ?6, ?7, ?8, ?9, ?10) ON CONFLICT DO NOTHING"},
    {query::message_body_insert, "INSERT INTO {message_bodies}(message, body) VALUES(last_insert_rowid(), ?1)"},
    {query::message_body_delete, "DELETE FROM {message_bodies} WHERE message=?1"},
    {query::message_heads,
     "SELECT position, key FROM {outbox} INDEXED BY {outbox_heads} WHERE head=1 AND aside=0 AND due<=?1 "
     "ORDER BY due, position LIMIT ?2"},
    {query::message_followers,
     "SELECT position, due FROM {outbox} INDEXED BY {outbox_line} WHERE aside=0 AND key=?1 AND position>?2 "
     "ORDER BY position LIMIT ?3"},
    {query::message_load, "SELECT " HOLDFAST_MESSAGE " FROM {outbox} WHERE position=?1"},
    {query::message_take, "UPDATE {outbox} SET token=?2, due=?3, relay=?4 WHERE position=?1"},
    {query::message_known, "SELECT 1 FROM {outbox} WHERE id=?1"},
    {query::message_delivered, "DELETE FROM {outbox} WHERE id=?1 AND token=?2 RETURNING position, key, large"},
    {query::message_failed,
     "UPDATE {outbox} SET token=0, attempts=attempts+1, last_error=?3, due=?4 WHERE id=?1 AND token=?2"},
    {query::message_set_aside,
     "UPDATE {outbox} SET token=0, attempts=attempts+1, last_error=?3, aside=1, head=0 WHERE id=?1 AND token=?2 "
     "RETURNING key"},
    {query::message_unhead, "UPDATE {outbox} SET head=0 WHERE aside=0 AND key=?1 AND head=1"},
    {query::message_head,
     "UPDATE {outbox} SET head=1 WHERE position=(SELECT min(position) FROM {outbox} INDEXED BY {outbox_line} "
     "WHERE aside=0 AND key=?1)"},
    {query::message_aside_list,
     "SELECT " HOLDFAST_MESSAGE " FROM {outbox} INDEXED BY {outbox_aside} WHERE aside=1 AND position>?1 "
     "ORDER BY position LIMIT ?2"},
    {query::message_send_again,
     "UPDATE {outbox} SET aside=0, attempts=0, token=0, due=?2, head=(key=x'') WHERE id=?1 AND aside=1 RETURNING key"},
    {query::message_discard, "DELETE FROM {outbox} WHERE id=?1 AND aside=1 RETURNING position, large"},
    {query::message_count, "SELECT count(*) FROM {outbox} INDEXED BY {outbox_line} WHERE aside=0"},
    {query::inbox_receive,
     "INSERT INTO {inbox}(consumer, message, expires) VALUES(?1,?2,?3) ON CONFLICT(consumer, message) DO UPDATE SET "
     "expires=excluded.expires WHERE expires<=?4"},
    {query::inbox_received, "SELECT 1 FROM {inbox} WHERE consumer=?1 AND message=?2 AND expires>?3"},
    {query::inbox_sweep, "DELETE FROM {inbox} WHERE (consumer, message) IN "
                         "(SELECT consumer, message FROM {inbox} WHERE expires<=?1 LIMIT ?2)"},
};

// Jobs without key and parent whose bodies are in the row.
std::string insert_many() {
    std::string text =
        "INSERT INTO {jobs}(id, queue, priority, state, due, max_attempts, max_crashes, may_restart, keep, "
        "created, type, version, content_type, headers, body, waits, cancelled_by_parent, large) VALUES";
    for (std::size_t i = 0; i < jobs_at_once; ++i)
        text.append(i == 0 ? "" : ",").append("(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,0,0,0)");
    return text + " ON CONFLICT DO NOTHING";
}

// The rows of a state that is not final, by an index that finished jobs are not in.
std::string_view unfinished_rows(job_state state) {
    switch (state) {
    case job_state::processing: return "SELECT seq FROM {jobs} INDEXED BY {jobs_leased} WHERE state=2";
    case job_state::pending:
        return "SELECT seq FROM {jobs} INDEXED BY {jobs_open} WHERE " HOLDFAST_OPEN " AND (state=1 OR due<=?1)";
    case job_state::waiting_retry:
        return "SELECT seq FROM {jobs} INDEXED BY {jobs_open} WHERE " HOLDFAST_OPEN " AND state=3 AND due>?1";
    default:
        return "SELECT seq FROM {jobs} INDEXED BY {jobs_open} WHERE " HOLDFAST_OPEN " AND state=0 AND due>?1 "
               "UNION ALL SELECT seq FROM {jobs} INDEXED BY {jobs_parent} WHERE parent IS NOT NULL AND waits=1 AND "
               "state=0";
    }
}

} // namespace

statements::statements(std::string_view prefix) : prefix_(prefix) {
    for (const entry& each : entries) texts_[static_cast<std::size_t>(each.which)] = expand(prefix, each.text);
    texts_[static_cast<std::size_t>(query::job_insert_many)] = expand(prefix, insert_many());
}

std::string statements::list_jobs(const job_filter& filter) const {
    std::string text = "SELECT " HOLDFAST_VIEW " FROM {jobs}";
    const bool final = filter.state && is_final(*filter.state);
    if (final) text += " INDEXED BY {jobs_final}";
    text += " WHERE id<?2";
    if (final) text += " AND state>=4 AND state=" + std::to_string(static_cast<int>(*filter.state));
    else if (filter.state) text += " AND seq IN (" + std::string(unfinished_rows(*filter.state)) + ")";
    int parameter = 3;
    if (filter.queue) text += " AND queue=?" + std::to_string(++parameter);
    if (filter.type) text += " AND type=?" + std::to_string(++parameter);
    return expand(prefix_, text + " ORDER BY id DESC LIMIT ?3");
}

} // namespace holdfast::sqlite
