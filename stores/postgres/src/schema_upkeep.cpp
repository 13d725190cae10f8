#include "schema_sql.hpp"

namespace holdfast::postgres {

std::string_view upkeep_functions_sql() {
    return R"sql(
-- Deletes these jobs and their history, and notes that they existed.
CREATE FUNCTION {ns}.forget(_id uuid[], _now bigint) RETURNS integer LANGUAGE plpgsql
SET search_path = pg_catalog SET jit = off
SET plan_cache_mode = force_generic_plan SET enable_hashjoin = off SET enable_mergejoin = off
SET enable_seqscan = off AS $$
DECLARE
    _count integer;
BEGIN
    DELETE FROM {ns}.attempts a WHERE a.job = ANY (_id);
    WITH gone AS (DELETE FROM {ns}.jobs j WHERE j.id = ANY (_id) RETURNING j.id)
    INSERT INTO {ns}.forgotten_jobs (id, forgotten) SELECT g.id, _now FROM gone g
    ON CONFLICT (id) DO UPDATE SET forgotten = excluded.forgotten;
    GET DIAGNOSTICS _count = ROW_COUNT;
    RETURN _count;
END $$;

-- Forgets what has been kept long enough: a little of everything, so that each call stays short. True: there may be
-- more. The lock is that of the schema: nothing is swept while that is changed or removed, nor the other way round, for they
-- would lock the tables in another order.
CREATE FUNCTION {ns}.sweep(_keep bigint, _keep_notes bigint, _lock bigint) RETURNS boolean LANGUAGE plpgsql
SET search_path = pg_catalog SET jit = off
SET plan_cache_mode = force_generic_plan SET enable_hashjoin = off SET enable_mergejoin = off
SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
    _most CONSTANT integer := 1000;
    _now bigint := {ns}.clock();
    _old uuid[];
    _kept_themselves uuid[];
    _count integer;
    _more boolean;
BEGIN
    IF NOT pg_try_advisory_xact_lock_shared(_lock) THEN RETURN false; END IF;
    _old := ARRAY(SELECT j.id FROM {ns}.jobs j WHERE j.state = 4 AND j.ended <= _now - _keep AND j.keep_for IS NULL
        ORDER BY j.ended LIMIT _most FOR UPDATE SKIP LOCKED);
    _kept_themselves := ARRAY(SELECT j.id FROM {ns}.jobs j
        WHERE j.state = 4 AND j.keep_for IS NOT NULL AND j.ended + j.keep_for <= _now
        ORDER BY j.ended + j.keep_for LIMIT _most FOR UPDATE SKIP LOCKED);
    _more := cardinality(_old) = _most OR cardinality(_kept_themselves) = _most;
    _old := _old || _kept_themselves;
    IF cardinality(_old) > 0 THEN PERFORM {ns}.forget(_old, _now); END IF;
    DELETE FROM {ns}.forgotten_jobs f WHERE f.ctid = ANY (ARRAY(SELECT o.ctid FROM {ns}.forgotten_jobs o
        WHERE o.forgotten <= _now - _keep_notes ORDER BY o.forgotten LIMIT _most FOR UPDATE SKIP LOCKED));
    GET DIAGNOSTICS _count = ROW_COUNT;
    _more := _more OR _count = _most;
    DELETE FROM {ns}.idempotency f WHERE f.ctid = ANY (ARRAY(SELECT o.ctid FROM {ns}.idempotency o
        WHERE o.until <= _now ORDER BY o.until LIMIT _most FOR UPDATE SKIP LOCKED));
    GET DIAGNOSTICS _count = ROW_COUNT;
    _more := _more OR _count = _most;
    DELETE FROM {ns}.claims f WHERE f.ctid = ANY (ARRAY(SELECT o.ctid FROM {ns}.claims o
        WHERE o.until <= _now ORDER BY o.until LIMIT _most FOR UPDATE SKIP LOCKED));
    GET DIAGNOSTICS _count = ROW_COUNT;
    _more := _more OR _count = _most;
    DELETE FROM {ns}.locks f WHERE f.ctid = ANY (ARRAY(SELECT o.ctid FROM {ns}.locks o
        WHERE o.until <= _now ORDER BY o.until LIMIT _most FOR UPDATE SKIP LOCKED));
    GET DIAGNOSTICS _count = ROW_COUNT;
    _more := _more OR _count = _most;
    DELETE FROM {ns}.inbox f WHERE f.ctid = ANY (ARRAY(SELECT o.ctid FROM {ns}.inbox o
        WHERE o.until <= _now ORDER BY o.until LIMIT _most FOR UPDATE SKIP LOCKED));
    GET DIAGNOSTICS _count = ROW_COUNT;
    _more := _more OR _count = _most;
    RETURN _more;
END $$;

CREATE FUNCTION {ns}.purge(_state smallint, _older bigint, _limit integer) RETURNS integer LANGUAGE plpgsql
SET search_path = pg_catalog SET jit = off
SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_custom_plan
AS $$
DECLARE
    _now bigint := {ns}.clock();
BEGIN
    RETURN {ns}.forget(ARRAY(SELECT j.id FROM {ns}.jobs j
        WHERE j.state = _state AND j.state >= 4 AND j.ended <= _now - _older
        ORDER BY j.ended LIMIT _limit FOR UPDATE SKIP LOCKED), _now);
END $$;

-- Answers as cancel_answer, one for each.
CREATE FUNCTION {ns}.cancel(_id uuid[]) RETURNS TABLE (place integer, answer smallint) LANGUAGE plpgsql
SET search_path = pg_catalog SET jit = off
SET plan_cache_mode = force_generic_plan SET enable_hashjoin = off SET enable_mergejoin = off
SET enable_seqscan = off AS $$
DECLARE
    _now bigint := {ns}.clock();
    _gone integer[];
    _asked integer[];
    _dead uuid[];
BEGIN
    WITH changed AS (
        UPDATE {ns}.jobs j SET cancel_requested = true, state = CASE WHEN j.state = 2 THEN 2 ELSE 7 END,
            ended = CASE WHEN j.state = 2 THEN j.ended ELSE _now END
        FROM unnest(_id) WITH ORDINALITY AS r(id, place)
        WHERE j.id = r.id AND j.state < 4 RETURNING r.place::integer, j.id, j.state, j.has_children)
    SELECT array_agg(c.place) FILTER (WHERE c.state = 7), array_agg(c.place) FILTER (WHERE c.state = 2),
        array_agg(c.id) FILTER (WHERE c.has_children AND c.state = 7)
    INTO _gone, _asked, _dead FROM changed c;
    IF cardinality(_dead) > 0 THEN PERFORM {ns}.parents_ended(NULL, _dead, _now); END IF;
    RETURN QUERY SELECT r.place::integer, CASE
            WHEN r.place = ANY (_gone) THEN 0 WHEN r.place = ANY (_asked) THEN 1
            WHEN EXISTS (SELECT FROM {ns}.jobs j WHERE j.id = r.id) THEN 3 ELSE 2 END::smallint
        FROM unnest(_id) WITH ORDINALITY AS r(id, place);
END $$;

-- A job whose unique key another one has now stays as it is, and so does a child of a requeued one.
CREATE FUNCTION {ns}.requeue(_id uuid[]) RETURNS integer LANGUAGE plpgsql
SET search_path = pg_catalog SET jit = off
SET plan_cache_mode = force_generic_plan SET enable_hashjoin = off SET enable_mergejoin = off
SET enable_seqscan = off AS $$
DECLARE
    _now bigint := {ns}.clock();
    _each uuid;
    _again uuid[];
    _count integer;
BEGIN
    WITH changed AS (
        UPDATE {ns}.jobs j SET generation = j.generation + 1, attempts = 0, crash_count = 0, cancel_requested = false,
            cancelled_by_parent = false, waits = false, ended = NULL, due = _now, state = 1
        WHERE j.id = ANY (_id) AND j.state > 4 AND j.unique_key IS NULL RETURNING j.id)
    SELECT coalesce(array_agg(c.id), '{}') INTO _again FROM changed c;
    FOR _each IN SELECT j.id FROM {ns}.jobs j WHERE j.id = ANY (_id) AND j.state > 4 AND j.unique_key IS NOT NULL LOOP
        BEGIN
            UPDATE {ns}.jobs j SET generation = j.generation + 1, attempts = 0, crash_count = 0,
                cancel_requested = false, cancelled_by_parent = false, waits = false, ended = NULL, due = _now, state = 1
            WHERE j.id = _each AND j.state > 4;
            IF FOUND THEN _again := _again || _each; END IF;
        EXCEPTION WHEN unique_violation THEN NULL;
        END;
    END LOOP;
    _count := cardinality(_again);
    IF _count > 0 THEN
        PERFORM {ns}.ring(array_agg(j.queue)) FROM {ns}.jobs j WHERE j.id = ANY (_again);
    END IF;
    WHILE cardinality(_again) > 0 LOOP
        SELECT array_agg(c.id) INTO _id FROM {ns}.jobs c
        WHERE c.parent = ANY (_again) AND c.parent IS NOT NULL AND c.cancelled_by_parent AND c.state = 7;
        _again := '{}';
        CONTINUE WHEN _id IS NULL;
        FOREACH _each IN ARRAY _id LOOP
            BEGIN
                UPDATE {ns}.jobs j SET cancelled_by_parent = false, waits = true, ended = NULL, state = 0
                WHERE j.id = _each AND j.cancelled_by_parent AND j.state = 7;
                IF FOUND THEN _again := _again || _each; END IF;
            EXCEPTION WHEN unique_violation THEN NULL;
            END;
        END LOOP;
    END LOOP;
    RETURN _count;
END $$;

-- Microseconds until something may be claimed; nothing when nothing is waiting.
CREATE FUNCTION {ns}.next_due(_queues text[]) RETURNS bigint LANGUAGE plpgsql
SET search_path = pg_catalog SET jit = off
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
SET enable_bitmapscan = off SET enable_sort = off AS $$
DECLARE
    _now bigint := {ns}.clock();
    _first bigint;
    _due bigint;
    _q text;
    _p bigint;
BEGIN
    FOREACH _q IN ARRAY _queues LOOP
        CONTINUE WHEN EXISTS (SELECT FROM {ns}.queues s WHERE s.name = _q AND s.paused);
        _p := 2147483648;
        LOOP
            SELECT j.priority, j.due INTO _p, _due FROM {ns}.jobs j
            WHERE j.queue = _q AND j.state IN (0, 1, 3) AND NOT j.waits AND j.priority < _p
            ORDER BY j.queue, j.priority DESC, j.due LIMIT 1;
            EXIT WHEN NOT FOUND;
            IF _due <= _now THEN RETURN 0; END IF;
            _first := least(_first, _due);
        END LOOP;
    END LOOP;
    RETURN _first - _now;
END $$;
)sql";
}

} // namespace holdfast::postgres
