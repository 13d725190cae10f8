#include "statements.hpp"

namespace holdfast::postgres {

const std::string_view job_columns =
    "j.id, CASE WHEN j.state IN (0, 1, 3) AND NOT j.waits AND j.due <= c.now THEN 1 ELSE j.state END, j.queue, "
    "j.priority, j.created, j.due, j.ended, j.attempts, j.max_attempts, j.crash_count, j.max_crashes, j.generation, "
    "j.may_restart, j.cancel_requested, CASE WHEN j.state = 2 THEN j.worker END, j.leased_until, j.unique_key, "
    "j.parent, j.headers, "
    "j.percent, j.note, j.error_type, j.error_message, j.output, j.type, j.version, j.content_type, j.body";

statements::statements(std::string_view name) : statement_table(name) {
    set(query::now, "now", "SELECT {ns}.clock()");

    // Jobs.
    const std::string enqueue_plain_one =
        "INSERT INTO {ns}.jobs (id, queue, type, version, content_type, priority, created, due, state, max_attempts, "
        "max_crashes, may_restart, keep_for, headers, body) "
        "SELECT $1::uuid, $2::text, $3::text, $4::int4, $5::bytea, $6::int4, c.now, "
        "CASE WHEN $7::bool THEN $8::int8 ELSE c.now + $8 END, "
        "CASE WHEN CASE WHEN $7 THEN $8 > c.now ELSE $8 > 0 END THEN 0 ELSE 1 END, $9::int4, $10::int4, $11::bool, "
        "nullif($12::int8, -1), nullif($13::bytea, ''), $14::bytea FROM (SELECT {ns}.clock() AS now OFFSET 0) c "
        "WHERE NOT EXISTS (SELECT FROM {ns}.forgotten_jobs f WHERE f.id = $1) RETURNING ";
    set(query::enqueue_plain_one, "enqueue_plain_one", enqueue_plain_one + "1");
    set(query::enqueue_plain_one_and_ring, "enqueue_plain_one_and_ring",
        // Not {ns}.ring(), which the server would plan each time.
        enqueue_plain_one + "pg_notify('" + channel_name(name) + "', queue)");
    set(query::enqueue_and_tell, "enqueue_and_tell",
        "SELECT {ns}.enqueue_and_tell($1::uuid, $2::text, $3::text, $4::int4, $5::bytea, $6::int4, $7::bool, $8::int8, "
        "$9::int4, $10::int4, $11::bool, $12::int8, $13::bytea, $14::bytea)");
    set(query::enqueue, "enqueue",
        "SELECT wanted, holder FROM {ns}.enqueue($1::uuid[], $2::text[], $3::text[], $4::int4[], $5::bytea[], "
        "$6::int4[], $7::bool[], $8::int8[], $9::int4[], $10::int4[], $11::bool[], $12::int8[], $13::bytea[], "
        "$14::bytea[], $15::bytea[], $16::uuid[], $17::text[], $18::bool)");
    set(query::enqueue_alike, "enqueue_alike",
        "SELECT wanted, holder FROM {ns}.enqueue_alike($1::uuid[], $2::bytea[], $3::bytea[], $4::text, $5::text, "
        "$6::int4, $7::bytea, $8::int4, $9::bool, $10::int8, $11::int4, $12::int4, $13::bool, $14::int8, $15::text[], "
        "$16::bool)");
    set(query::find_jobs, "find_jobs", "SELECT j.id FROM {ns}.jobs j WHERE j.id = ANY ($1::uuid[])");
    set(query::claim, "claim",
        "SELECT * FROM {ns}.claim($1::text[], $2::int4, $3::int8, $4::bytea, $5::text, $6::int4, $7::int8, $8::uuid)");
    set(query::wait_for_jobs, "wait_for_jobs",
        "SELECT * FROM {ns}.wait_for_jobs($1::text[], $2::int4, $3::int8, $4::bytea, $5::text, $6::int8)");
    set(query::give_back, "give_back", "SELECT {ns}.give_back($1::text[], $2::text)");
    set(query::collect, "collect", "SELECT * FROM {ns}.collect($1::text, 1000)");
    set(query::leave, "leave", "SELECT {ns}.leave($1::text)");
    set(query::settle, "settle",
        "SELECT place, answer, state FROM {ns}.settle($1::uuid[], $2::int8[], $3::int2[], $4::bool[], $5::int8[], "
        "$6::bytea[], $7::bytea[], $8::bytea[], $9::int8)");
    set(query::settled_already, "settled_already",
        "SELECT r.place, coalesce(a.outcome, 'succeeded'), j.state FROM unnest($1::uuid[], $2::int8[]) "
        "WITH ORDINALITY AS r(id, token, place) JOIN {ns}.jobs j ON j.id = r.id "
        "LEFT JOIN {ns}.attempts a ON a.job = r.id AND a.token = r.token "
        "WHERE a.job IS NOT NULL OR j.token = r.token AND j.state = 4");
    set(query::heartbeat, "heartbeat",
        "SELECT place, answer, cancel FROM {ns}.heartbeat($1::uuid[], $2::int8[], $3::int8)");
    set(query::progress, "progress",
        "SELECT place, answer FROM {ns}.progress($1::uuid[], $2::int8[], $3::int4[], $4::bytea[])");
    set(query::recover, "recover", "SELECT * FROM {ns}.recover($1::int4, $2::int8, $3::int8, $4::int8)");
    set(query::sweep, "sweep", "SELECT {ns}.sweep($1::int8, $2::int8, $3::int8)");
    set(query::next_due, "next_due", "SELECT {ns}.next_due($1::text[])");
    set(query::cancel, "cancel", "SELECT place, answer FROM {ns}.cancel($1::uuid[])");
    set(query::requeue, "requeue", "SELECT {ns}.requeue($1::uuid[])");
    set(query::purge, "purge", "SELECT {ns}.purge($1::int2, $2::int8, $3::int4)");
    set(query::discard, "discard",
        "SELECT {ns}.forget(ARRAY(SELECT j.id FROM {ns}.jobs j WHERE j.id = ANY ($1::uuid[]) AND j.state >= 4 "
        "ORDER BY j.id FOR UPDATE), {ns}.clock())");
    set(query::pause, "pause", "SELECT {ns}.pause($1::text, $2::bool)");
    set(query::queues, "queues", "SELECT name, paused FROM {ns}.queues ORDER BY name");
    set(query::get, "get",
        "SELECT f.id IS NOT NULL, (SELECT string_agg(concat_ws(',', a.generation, a.number, a.token, a.started, "
        "a.ended, a.outcome, encode(a.worker, 'hex') || '.', encode(coalesce(a.error_type, ''), 'hex') || '.', "
        "encode(coalesce(a.error_message, ''), 'hex') || '.'), ';' ORDER BY a.token) FROM {ns}.attempts a "
        "WHERE a.job = $1::uuid), j.token, j.claimed_at, j.worker, j.state, " +
            std::string(job_columns) +
            " FROM (SELECT {ns}.clock() AS now OFFSET 0) c LEFT JOIN {ns}.jobs j ON j.id = $1 "
            "LEFT JOIN {ns}.forgotten_jobs f ON f.id = $1");
    set(query::counts, "counts",
        "SELECT j.queue, CASE WHEN j.state IN (0, 1, 3) AND NOT j.waits AND j.due <= c.now THEN 1 ELSE j.state END, "
        "count(*) FROM {ns}.jobs j, (SELECT {ns}.clock() AS now OFFSET 0) c GROUP BY 1, 2 ORDER BY 1, 2");

    // Locks and idempotency.
    set(query::lock_acquire, "lock_acquire", "SELECT {ns}.lock_acquire($1::bytea, $2::int8, $3::int8)");
    set(query::lock_renew, "lock_renew",
        "UPDATE {ns}.locks SET until = {ns}.clock() + $3::int8 "
        "WHERE resource = $1::bytea AND token = $2::int8 AND until > {ns}.clock() RETURNING 1");
    set(query::lock_release, "lock_release", "DELETE FROM {ns}.locks WHERE resource = $1::bytea AND token = $2::int8");
    set(query::try_claim, "try_claim",
        "INSERT INTO {ns}.claims AS o (key, until) SELECT $1::bytea, c.now + $2::int8 "
        "FROM (SELECT {ns}.clock() AS now OFFSET 0) c ON CONFLICT (key) DO UPDATE SET until = excluded.until "
        "WHERE o.until <= excluded.until - $2 RETURNING 1");
    set(query::idempotency_begin, "idempotency_begin",
        "SELECT * FROM {ns}.idempotency_begin($1::bytea, $2::bytea, $3::int8, $4::int8, $5::int8)");
    set(query::idempotency_complete, "idempotency_complete",
        // Once more by the same holder: what is there stays.
        "UPDATE {ns}.idempotency SET completed = true, "
        "until = CASE WHEN completed THEN until ELSE {ns}.clock() + $3::int8 END, "
        "type = CASE WHEN completed THEN type ELSE $4::bytea END, "
        "version = CASE WHEN completed THEN version ELSE $5::int4 END, "
        "content_type = CASE WHEN completed THEN content_type ELSE $6::bytea END, "
        "body = CASE WHEN completed THEN body ELSE $7::bytea END "
        "WHERE key = $1::bytea AND token = $2::int8 AND until > {ns}.clock() RETURNING 1");
    set(query::idempotency_abandon, "idempotency_abandon",
        "DELETE FROM {ns}.idempotency WHERE key = $1::bytea AND token = $2::int8 AND NOT completed "
        "AND until > {ns}.clock() RETURNING 1");
    set(query::idempotency_renew, "idempotency_renew",
        "UPDATE {ns}.idempotency SET leased_until = {ns}.clock() + $3::int8, "
        "until = greatest(until, {ns}.clock() + $3) WHERE key = $1::bytea AND token = $2::int8 AND NOT completed "
        "AND until > {ns}.clock() RETURNING 1");

    // Outbox and inbox.
    set(query::outbox_append, "outbox_append",
        "INSERT INTO {ns}.outbox (id, topic, key, type, version, content_type, headers, body) "
        "SELECT * FROM unnest($1::uuid[], $2::text[], $3::bytea[], $4::bytea[], $5::int4[], $6::bytea[], $7::bytea[], "
        "$8::bytea[]) ON CONFLICT (id) DO NOTHING");
    set(query::outbox_lease, "outbox_lease",
        "SELECT * FROM {ns}.outbox_lease($1::int4, $2::int8, $3::bytea, $4::int8) ORDER BY 1");
    set(query::outbox_delivered, "outbox_delivered",
        "SELECT place, answer FROM {ns}.outbox_delivered($1::uuid[], $2::int8[])");
    set(query::outbox_failed, "outbox_failed",
        "SELECT place, answer FROM {ns}.outbox_failed($1::uuid[], $2::int8[], $3::bytea[], $4::int8[], $5::bool[], "
        "$6::int8)");
    set(query::outbox_aside, "outbox_aside",
        "SELECT o.position, o.id, o.token, o.attempts, o.topic, o.key, o.type, o.version, o.content_type, o.headers, "
        "o.body, o.last_error FROM {ns}.outbox o WHERE o.aside AND o.position > $1::int8 ORDER BY o.position "
        "LIMIT $2::int4");
    set(query::outbox_send_again, "outbox_send_again",
        "UPDATE {ns}.outbox SET aside = false, attempts = 0, not_before = 0, token = token + 1 "
        "WHERE id = ANY ($1::uuid[]) AND aside RETURNING 1");
    set(query::outbox_discard, "outbox_discard",
        "DELETE FROM {ns}.outbox WHERE id = ANY ($1::uuid[]) AND aside RETURNING 1");
    set(query::outbox_unsent, "outbox_unsent", "SELECT count(*) FROM {ns}.outbox WHERE NOT aside");
    set(query::inbox_receive, "inbox_receive",
        "INSERT INTO {ns}.inbox AS o (consumer, message, until) SELECT $1::bytea, $2::uuid, c.now + $3::int8 "
        "FROM (SELECT {ns}.clock() AS now OFFSET 0) c ON CONFLICT (consumer, message) "
        "DO UPDATE SET until = excluded.until WHERE o.until <= excluded.until - $3 RETURNING 1");
    set(query::inbox_received, "inbox_received",
        "SELECT o.message IS NOT NULL FROM unnest($2::uuid[]) WITH ORDINALITY AS m (id, place) "
        "CROSS JOIN (SELECT {ns}.clock() AS now OFFSET 0) c "
        // Each by itself: a join could read all that a consumer has ever received.
        "LEFT JOIN LATERAL (SELECT i.message FROM {ns}.inbox i WHERE i.consumer = $1::bytea AND i.message = m.id "
        "AND i.until > c.now OFFSET 0) o ON true ORDER BY m.place");
}

} // namespace holdfast::postgres
