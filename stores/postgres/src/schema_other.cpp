#include "schema_sql.hpp"

namespace holdfast::postgres {

// A token is drawn from the series only while the advisory lock of its key is held, so a later holder's is larger even
// though rows are deleted. The lock ends with the transaction.
std::string_view other_functions_sql() {
    return R"sql(
CREATE FUNCTION {ns}.lock_acquire(_resource bytea, _ttl bigint, _lock bigint) RETURNS bigint LANGUAGE plpgsql
SET search_path = pg_catalog SET jit = off AS $$
DECLARE
    _now bigint;
    _token bigint;
BEGIN
    PERFORM pg_advisory_xact_lock(_lock);
    _now := {ns}.clock();
    UPDATE {ns}.locks SET token = nextval('{ns}.tokens'), until = _now + _ttl
    WHERE resource = _resource AND until <= _now RETURNING token INTO _token;
    IF FOUND THEN RETURN _token; END IF;
    INSERT INTO {ns}.locks (resource, token, until)
    SELECT _resource, nextval('{ns}.tokens'), _now + _ttl
    WHERE NOT EXISTS (SELECT FROM {ns}.locks l WHERE l.resource = _resource)
    ON CONFLICT DO NOTHING RETURNING token INTO _token;
    RETURN _token;
END $$;

-- outcome: 0 started, 1 in progress, 2 completed, 3 mismatch.
CREATE FUNCTION {ns}.idempotency_begin(_key bytea, _fingerprint bytea, _lease bigint, _keep bigint, _lock bigint)
RETURNS TABLE (outcome integer, token bigint, taken_over boolean, wait bigint, type bytea, version integer,
    content_type bytea, body bytea) LANGUAGE plpgsql
SET search_path = pg_catalog SET jit = off AS $$
DECLARE
    _now bigint;
    _old {ns}.idempotency;
BEGIN
    PERFORM pg_advisory_xact_lock(_lock);
    _now := {ns}.clock();
    SELECT * INTO _old FROM {ns}.idempotency i WHERE i.key = _key FOR UPDATE;
    IF FOUND AND _old.until > _now THEN
        IF _old.fingerprint <> _fingerprint THEN
            outcome := 3;
        ELSIF _old.completed THEN
            outcome := 2;
            type := _old.type; version := _old.version; content_type := _old.content_type; body := _old.body;
        ELSIF _old.leased_until > _now THEN
            outcome := 1;
            wait := _old.leased_until - _now;
        END IF;
        IF outcome IS NOT NULL THEN RETURN NEXT; RETURN; END IF;
        taken_over := true;
    END IF;
    outcome := 0;
    taken_over := coalesce(taken_over, false);
    token := nextval('{ns}.tokens');
    INSERT INTO {ns}.idempotency AS i (key, token, leased_until, until, fingerprint)
    VALUES (_key, token, _now + _lease, _now + greatest(_lease, _keep), _fingerprint)
    ON CONFLICT ON CONSTRAINT idempotency_pkey DO UPDATE SET token = excluded.token,
        leased_until = excluded.leased_until, until = excluded.until, fingerprint = excluded.fingerprint,
        completed = false, type = NULL, content_type = NULL, body = NULL;
    RETURN NEXT;
END $$;

-- Messages whose key has an earlier one that is leased, or waits for its next try, stay behind that one. One relay at a
-- time, else two could take neighbours of one key. The line is read in order through its index, which forgets what was
-- deleted as it goes; a bitmap would look at all of it each time. `aside` is written so that no index of rows that are not
-- aside is read from end to end for a join.
CREATE FUNCTION {ns}.outbox_lease(_limit integer, _lease bigint, _relay bytea, _lock bigint)
RETURNS TABLE ("position" bigint, id uuid, token bigint, attempts integer, topic text, key bytea, type bytea,
    version integer, content_type bytea, headers bytea, body bytea) LANGUAGE plpgsql
SET search_path = pg_catalog SET jit = off
SET plan_cache_mode = force_generic_plan SET enable_hashjoin = off SET enable_mergejoin = off
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off AS $$
DECLARE
    _now bigint;
BEGIN
    PERFORM pg_advisory_xact_lock(_lock);
    _now := {ns}.clock();
    RETURN QUERY
        WITH held AS MATERIALIZED (
            SELECT h.key, min(h.position) AS first FROM {ns}.outbox h
            WHERE NOT h.aside AND h.not_before > 0 AND h.not_before > _now AND h.key <> '' GROUP BY h.key),
        free AS MATERIALIZED (
            SELECT f.id FROM {ns}.outbox f
            WHERE NOT f.aside AND f.not_before <= _now AND (f.key = '' OR f.key NOT IN (SELECT held.key FROM held)
                OR f.position < (SELECT h.first FROM held h WHERE h.key = f.key))
            ORDER BY f.position LIMIT _limit)
        UPDATE {ns}.outbox o SET token = greatest(o.token + 1, _now), not_before = _now + _lease, relay = _relay
        FROM free WHERE o.id = free.id AND o.not_before + 0 <= _now AND o.aside::integer = 0
        RETURNING o.position, o.id, o.token, o.attempts, o.topic, o.key, o.type, o.version, o.content_type, o.headers,
            o.body;
END $$;

-- Answers as write_answer, leaving out what was done.
CREATE FUNCTION {ns}.outbox_delivered(_id uuid[], _token bigint[])
RETURNS TABLE (place integer, answer smallint) LANGUAGE plpgsql
SET search_path = pg_catalog SET jit = off
SET plan_cache_mode = force_generic_plan SET enable_hashjoin = off SET enable_mergejoin = off
SET enable_seqscan = off AS $$
DECLARE
    _done integer[];
BEGIN
    WITH gone AS (
        DELETE FROM {ns}.outbox o USING unnest(_id, _token) WITH ORDINALITY AS r(id, token, place)
        WHERE o.id = r.id AND o.token = r.token AND NOT o.aside RETURNING r.place::integer)
    SELECT coalesce(array_agg(g.place), '{}') INTO _done FROM gone g;
    IF cardinality(_done) = cardinality(_id) THEN RETURN; END IF;
    RETURN QUERY SELECT r.place::integer,
            CASE WHEN EXISTS (SELECT FROM {ns}.outbox o WHERE o.id = r.id) THEN 1 ELSE 2 END::smallint
        FROM unnest(_id) WITH ORDINALITY AS r(id, place) WHERE NOT r.place = ANY (_done);
END $$;

-- Never while a batch is being leased: that would pass over the message that has just been given a later time, and take
-- the next of its key.
CREATE FUNCTION {ns}.outbox_failed(_id uuid[], _token bigint[], _why bytea[], _after bigint[], _aside boolean[],
    _lock bigint)
RETURNS TABLE (place integer, answer smallint) LANGUAGE plpgsql
SET search_path = pg_catalog SET jit = off
SET plan_cache_mode = force_generic_plan SET enable_hashjoin = off SET enable_mergejoin = off
SET enable_seqscan = off AS $$
DECLARE
    _now bigint;
    _done integer[];
BEGIN
    PERFORM pg_advisory_xact_lock(_lock);
    _now := {ns}.clock();
    WITH changed AS (
        UPDATE {ns}.outbox o SET attempts = o.attempts + 1, token = o.token + 1, last_error = r.why,
            not_before = CASE WHEN r.after <= 0 THEN 0 ELSE _now + r.after END, aside = r.aside
        FROM unnest(_id, _token, _why, _after, _aside) WITH ORDINALITY AS r(id, token, why, after, aside, place)
        WHERE o.id = r.id AND o.token = r.token AND NOT o.aside RETURNING r.place::integer)
    SELECT coalesce(array_agg(c.place), '{}') INTO _done FROM changed c;
    IF cardinality(_done) = cardinality(_id) THEN RETURN; END IF;
    RETURN QUERY SELECT r.place::integer,
            CASE WHEN EXISTS (SELECT FROM {ns}.outbox o WHERE o.id = r.id) THEN 1 ELSE 2 END::smallint
        FROM unnest(_id) WITH ORDINALITY AS r(id, place) WHERE NOT r.place = ANY (_done);
END $$;
)sql";
}

} // namespace holdfast::postgres
