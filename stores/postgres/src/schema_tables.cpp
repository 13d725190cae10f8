#include "schema_sql.hpp"

namespace holdfast::postgres {

schema store_schema() {
    return {"meta",
            {{tables_sql(), job_functions_sql(), upkeep_functions_sql(), other_functions_sql()}, {handover_sql()}}};
}

// jobs: a claim and a settlement change `state`, which partial indexes look at, so they write new index entries; what
// happens in between (started, progress) does not, and fits on the page thanks to the fillfactor. A job is in the due
// index while it may be claimed, in the leased index while it runs, in the ended indexes afterwards, so neither
// finished nor future jobs are in the way of a claim. Workers and lease times are left in the row when an attempt ends
// and mean nothing then. attempts: only ended ones, only ever added to; the running one is the job's own row, and so is
// the last one of a job that has succeeded, for such a job never changes again. Tokens of jobs and messages are never
// behind the clock: a row may go, and who holds an old token still cannot pass for the holder of a new row of that id.
std::string_view tables_sql() {
    return R"sql(
CREATE TABLE {ns}.jobs (
    id uuid PRIMARY KEY,
    token bigint NOT NULL DEFAULT 0,
    due bigint NOT NULL,
    created bigint NOT NULL,
    ended bigint,
    claimed_at bigint,
    leased_until bigint,
    keep_for bigint,
    priority integer NOT NULL,
    attempts integer NOT NULL DEFAULT 0,
    max_attempts integer NOT NULL,
    crash_count integer NOT NULL DEFAULT 0,
    max_crashes integer NOT NULL,
    generation integer NOT NULL DEFAULT 1,
    version integer NOT NULL,
    percent integer NOT NULL DEFAULT 0,
    state smallint NOT NULL,
    may_restart boolean NOT NULL,
    started boolean NOT NULL DEFAULT false,
    waits boolean NOT NULL DEFAULT false,
    cancel_requested boolean NOT NULL DEFAULT false,
    cancelled_by_parent boolean NOT NULL DEFAULT false,
    has_children boolean NOT NULL DEFAULT false,
    has_history boolean NOT NULL DEFAULT false,
    parent uuid,
    queue text COLLATE "C" NOT NULL,
    type text COLLATE "C" NOT NULL,
    content_type bytea NOT NULL,
    headers bytea,
    unique_key bytea,
    worker bytea,
    note bytea,
    error_type bytea,
    error_message bytea,
    output bytea,
    body bytea NOT NULL
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
        autovacuum_analyze_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX jobs_due ON {ns}.jobs (queue, priority DESC, due, id) WHERE state IN (0, 1, 3) AND NOT waits;
CREATE INDEX jobs_leased ON {ns}.jobs (leased_until) WHERE state = 2;
CREATE UNIQUE INDEX jobs_unique ON {ns}.jobs (type, unique_key) WHERE unique_key IS NOT NULL AND state < 4;
CREATE INDEX jobs_children ON {ns}.jobs (parent) WHERE parent IS NOT NULL;
CREATE INDEX jobs_ended_list ON {ns}.jobs (state, id) WHERE state >= 4;
CREATE INDEX jobs_ended_age ON {ns}.jobs (state, ended) WHERE state >= 4;
CREATE INDEX jobs_own_keep ON {ns}.jobs ((ended + keep_for)) WHERE state = 4 AND keep_for IS NOT NULL;

CREATE TABLE {ns}.attempts (
    job uuid NOT NULL,
    token bigint NOT NULL,
    started bigint NOT NULL,
    ended bigint NOT NULL,
    generation integer NOT NULL,
    number integer NOT NULL,
    outcome text COLLATE "C" NOT NULL,
    worker bytea NOT NULL,
    error_type bytea,
    error_message bytea,
    PRIMARY KEY (job, token)
);

CREATE TABLE {ns}.forgotten_jobs (id uuid PRIMARY KEY, forgotten bigint NOT NULL);
CREATE INDEX forgotten_jobs_age ON {ns}.forgotten_jobs (forgotten);

CREATE TABLE {ns}.queues (name text COLLATE "C" PRIMARY KEY, paused boolean NOT NULL DEFAULT false);

-- Fencing tokens of locks and idempotency records, one series for all, so that rows can go and tokens still grow.
CREATE SEQUENCE {ns}.tokens;

CREATE TABLE {ns}.locks (resource bytea PRIMARY KEY, token bigint NOT NULL, until bigint NOT NULL)
    WITH (fillfactor = 70);
CREATE INDEX locks_age ON {ns}.locks (until);

CREATE TABLE {ns}.idempotency (
    key bytea PRIMARY KEY,
    token bigint NOT NULL,
    leased_until bigint NOT NULL,
    until bigint NOT NULL,
    version integer NOT NULL DEFAULT 0,
    completed boolean NOT NULL DEFAULT false,
    fingerprint bytea NOT NULL,
    type bytea,
    content_type bytea,
    body bytea
) WITH (fillfactor = 80);
CREATE INDEX idempotency_age ON {ns}.idempotency (until);

CREATE TABLE {ns}.claims (key bytea PRIMARY KEY, until bigint NOT NULL);
CREATE INDEX claims_age ON {ns}.claims (until);

-- not_before: the end of the lease, or the next try; 0 when it may go at once.
CREATE TABLE {ns}.outbox (
    position bigint GENERATED ALWAYS AS IDENTITY,
    id uuid PRIMARY KEY,
    token bigint NOT NULL DEFAULT 0,
    not_before bigint NOT NULL DEFAULT 0,
    attempts integer NOT NULL DEFAULT 0,
    version integer NOT NULL,
    aside boolean NOT NULL DEFAULT false,
    topic text COLLATE "C" NOT NULL,
    type bytea NOT NULL,
    content_type bytea NOT NULL,
    key bytea NOT NULL,
    headers bytea,
    last_error bytea,
    relay bytea,
    body bytea NOT NULL
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
CREATE INDEX outbox_line ON {ns}.outbox (position) WHERE NOT aside;
CREATE INDEX outbox_held ON {ns}.outbox (not_before) WHERE NOT aside AND not_before > 0;
CREATE INDEX outbox_aside ON {ns}.outbox (position) WHERE aside;

CREATE TABLE {ns}.inbox (consumer bytea, message uuid, until bigint NOT NULL, PRIMARY KEY (consumer, message));
CREATE INDEX inbox_age ON {ns}.inbox (until);

CREATE FUNCTION {ns}.clock() RETURNS bigint LANGUAGE sql VOLATILE
    AS $$ SELECT floor(extract(epoch FROM clock_timestamp()) * 1000000)::bigint $$;

-- Something in these queues can be claimed once this transaction is committed.
CREATE FUNCTION {ns}.ring(_queues text[]) RETURNS void LANGUAGE sql VOLATILE
    AS $$ SELECT pg_notify('holdfast_' || btrim('{ns}', '"'), q) FROM (SELECT DISTINCT unnest(_queues)) AS r(q) $$;
)sql";
}

} // namespace holdfast::postgres
