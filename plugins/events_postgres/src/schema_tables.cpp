#include "schema_sql.hpp"

namespace holdfast::events_postgres {

postgres::schema transport_schema() {
    return {"events_meta", {{tables_sql(), work_functions_sql(), upkeep_functions_sql()}}};
}

// deliveries: one row for each message that a subscription was ever given, until the message is swept. `turn` says what it
// waits for, and partial indexes look at it, so that settled ones are in nobody's way:
//   0  another of its key, earlier and open     1  nothing: it may be given out     2  `until`
//   3  settled                                  4  dead
// `until` is the end of a lease, or of a delay; it is looked at whatever the turn is.
// tallies: counts of each subscription, in several rows, so that those who count do not wait for each other.
std::string_view tables_sql() {
    return R"sql(
CREATE TABLE {ns}.subscriptions (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE
);

CREATE TABLE {ns}.topics (
    topic text NOT NULL,
    subscription bigint NOT NULL,
    PRIMARY KEY (topic, subscription)
);
CREATE INDEX topics_of ON {ns}.topics (subscription);

CREATE TABLE {ns}.tallies (
    subscription bigint NOT NULL,
    shard smallint NOT NULL,
    open bigint NOT NULL DEFAULT 0,
    acknowledged bigint NOT NULL DEFAULT 0,
    discarded bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (subscription, shard)
) WITH (fillfactor = 50);

CREATE TABLE {ns}.messages (
    position bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    published bigint NOT NULL,
    version integer NOT NULL,
    line smallint NOT NULL,
    id uuid NOT NULL UNIQUE,
    topic text NOT NULL,
    key bytea NOT NULL,
    type bytea NOT NULL,
    content_type bytea NOT NULL,
    headers bytea NOT NULL,
    body bytea NOT NULL
);
CREATE INDEX messages_age ON {ns}.messages (published);

CREATE SEQUENCE {ns}.deaths;
CREATE TABLE {ns}.deliveries (
    subscription bigint NOT NULL,
    position bigint NOT NULL,
    token bigint NOT NULL DEFAULT 0,
    settled_by bigint NOT NULL DEFAULT 0,
    until bigint NOT NULL DEFAULT 0,
    died bigint,
    death bigint,
    redeliveries integer NOT NULL DEFAULT 0,
    crashes integer NOT NULL DEFAULT 0,
    calls integer NOT NULL DEFAULT 0,
    generation integer NOT NULL DEFAULT 1,
    turn smallint NOT NULL,
    line smallint NOT NULL,
    leased boolean NOT NULL DEFAULT false,
    key bytea NOT NULL,
    receiver bytea,
    error_type bytea,
    error_message bytea,
    error_stack bytea,
    PRIMARY KEY (subscription, position)
) WITH (fillfactor = 80);
CREATE INDEX deliveries_ready ON {ns}.deliveries (subscription, position) WHERE turn = 1;
CREATE INDEX deliveries_later ON {ns}.deliveries (subscription, until) WHERE turn = 2;
CREATE INDEX deliveries_in_line ON {ns}.deliveries (subscription, key, position) WHERE turn < 3 AND key <> '';
CREATE INDEX deliveries_leased_behind ON {ns}.deliveries (subscription) WHERE turn = 0 AND leased;
CREATE INDEX deliveries_needed ON {ns}.deliveries (position) WHERE turn <> 3;
CREATE INDEX deliveries_dead ON {ns}.deliveries (death) WHERE turn = 4;
CREATE INDEX deliveries_dead_of ON {ns}.deliveries (subscription, death) WHERE turn = 4;

CREATE FUNCTION {ns}.clock() RETURNS bigint LANGUAGE sql VOLATILE
    AS $$ SELECT floor(extract(epoch FROM clock_timestamp()) * 1000000)::bigint $$;

CREATE FUNCTION {ns}.count_up(_subscription bigint[], _open bigint[], _acknowledged bigint[], _discarded bigint[])
RETURNS void LANGUAGE sql VOLATILE AS $$
    INSERT INTO {ns}.tallies AS t (subscription, shard, open, acknowledged, discarded)
    SELECT r.subscription, pg_backend_pid() % 16, sum(r.open), sum(r.acknowledged), sum(r.discarded)
    FROM unnest(_subscription, _open, _acknowledged, _discarded) AS r(subscription, open, acknowledged, discarded)
    GROUP BY r.subscription ORDER BY r.subscription
    ON CONFLICT (subscription, shard) DO UPDATE SET open = t.open + excluded.open,
        acknowledged = t.acknowledged + excluded.acknowledged, discarded = t.discarded + excluded.discarded
$$;

-- Keeps everybody else who opens or closes messages of these lines waiting until the end of the transaction.
CREATE FUNCTION {ns}.lock_lines(_lines smallint[], _locks integer) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog SET jit = off AS $$
DECLARE
    _each integer[] := ARRAY(SELECT DISTINCT l::integer FROM unnest(_lines) AS r(l) WHERE l >= 0 ORDER BY 1);
BEGIN
    IF cardinality(_each) = 0 THEN RETURN; END IF;
    IF cardinality(_each) > 64 THEN
        PERFORM pg_advisory_xact_lock(_locks, -2);
        RETURN;
    END IF;
    PERFORM pg_advisory_xact_lock_shared(_locks, -2);
    PERFORM pg_advisory_xact_lock(_locks, l) FROM unnest(_each) AS r(l);
END $$;
)sql";
}

} // namespace holdfast::events_postgres
