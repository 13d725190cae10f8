#include "schema_sql.hpp"

namespace holdfast::postgres {

// Functions, not statements from the client: several steps in one round trip, each with a snapshot of its own (a child
// enqueued while its parent ends is seen by one or the other), with plans that every session and every proxy keeps.
// Batches come sorted by id, and rows are locked in that order by nested loops over the array, so two batches never
// wait for each other in a circle. Answers leave out what went as usual: the client fills that in.
std::string_view job_functions_sql() {
    return R"sql(
-- Answers the ones that were not created, with the id of the job that stands in their way. With parents (else that
-- array is empty) the jobs are taken one after the other, for a parent may be in the same batch. _ring: tell those who
-- listen, for the client does not know when this is committed.
CREATE FUNCTION {ns}.enqueue(_id uuid[], _queue text[], _type text[], _version integer[], _content_type bytea[],
    _priority integer[], _absolute boolean[], _due bigint[], _max_attempts integer[], _max_crashes integer[],
    _may_restart boolean[], _keep_for bigint[], _headers bytea[], _unique_key bytea[], _body bytea[],
    _parent uuid[], _new_queues text[], _ring boolean)
RETURNS TABLE (wanted uuid, holder uuid) LANGUAGE plpgsql
SET search_path = pg_catalog SET jit = off
SET plan_cache_mode = force_generic_plan SET enable_hashjoin = off SET enable_mergejoin = off
SET enable_seqscan = off AS $$
DECLARE
    _now bigint := {ns}.clock();
    _made uuid[];
    _each record;
BEGIN
    IF cardinality(_new_queues) > 0 THEN
        INSERT INTO {ns}.queues (name) SELECT unnest(_new_queues) ON CONFLICT DO NOTHING;
    END IF;
    IF _ring THEN
        PERFORM {ns}.ring(array_agg(n.queue)) FROM unnest(_queue, _absolute, _due) AS n(queue, absolute, due)
        WHERE CASE WHEN n.absolute THEN n.due <= _now ELSE n.due <= 0 END;
    END IF;
    IF cardinality(_parent) = 0 THEN
        WITH made AS (
            INSERT INTO {ns}.jobs (id, queue, type, version, content_type, priority, created, due, state, max_attempts,
                max_crashes, may_restart, keep_for, headers, unique_key, body)
            SELECT n.id, n.queue, n.type, n.version, n.content_type, n.priority, _now,
                CASE WHEN n.absolute THEN n.due ELSE _now + n.due END,
                CASE WHEN CASE WHEN n.absolute THEN n.due > _now ELSE n.due > 0 END THEN 0 ELSE 1 END,
                n.max_attempts, n.max_crashes, n.may_restart, n.keep_for, n.headers, n.unique_key, n.body
            FROM unnest(_id, _queue, _type, _version, _content_type, _priority, _absolute, _due, _max_attempts,
                _max_crashes, _may_restart, _keep_for, _headers, _unique_key, _body)
                AS n(id, queue, type, version, content_type, priority, absolute, due, max_attempts, max_crashes,
                    may_restart, keep_for, headers, unique_key, body)
            WHERE NOT EXISTS (SELECT FROM {ns}.forgotten_jobs f WHERE f.id = n.id)
            ON CONFLICT DO NOTHING RETURNING jobs.id)
        SELECT array_agg(m.id) INTO _made FROM made m;
        IF cardinality(_made) = cardinality(_id) THEN RETURN; END IF;
    END IF;

    FOR _each IN
        SELECT n.* FROM unnest(_id, _queue, _type, _version, _content_type, _priority, _absolute, _due, _max_attempts,
            _max_crashes, _may_restart, _keep_for, _headers, _unique_key, _body, _parent)
            AS n(id, queue, type, version, content_type, priority, absolute, due, max_attempts, max_crashes,
                may_restart, keep_for, headers, unique_key, body, parent)
        WHERE _made IS NULL OR NOT n.id = ANY (_made)
    LOOP
        wanted := _each.id;
        holder := {ns}.enqueue_one(_each.id, _each.queue, _each.type, _each.version, _each.content_type, _each.priority,
            _each.absolute, _each.due, _each.max_attempts, _each.max_crashes, _each.may_restart, _each.keep_for,
            _each.headers, _each.unique_key, _each.body, _each.parent);
        IF holder IS NOT NULL THEN RETURN NEXT; END IF;
    END LOOP;
END $$;

-- The same for jobs that differ in id, headers and body alone, and have neither parents nor unique keys: the usual bulk.
-- The rest is told once, and nobody expects them to be there already; if one is, they go the long way.
CREATE FUNCTION {ns}.enqueue_alike(_id uuid[], _headers bytea[], _body bytea[], _queue text, _type text,
    _version integer, _content_type bytea, _priority integer, _absolute boolean, _due bigint, _max_attempts integer,
    _max_crashes integer, _may_restart boolean, _keep_for bigint, _new_queues text[], _ring boolean)
RETURNS TABLE (wanted uuid, holder uuid) LANGUAGE plpgsql
SET search_path = pg_catalog SET jit = off
SET plan_cache_mode = force_generic_plan SET enable_hashjoin = off SET enable_mergejoin = off
SET enable_seqscan = off AS $$
DECLARE
    _now bigint := {ns}.clock();
    _at bigint := CASE WHEN _absolute THEN _due ELSE _now + _due END;
    _count integer := cardinality(_id);
    _made integer;
BEGIN
    IF cardinality(_new_queues) > 0 THEN
        INSERT INTO {ns}.queues (name) SELECT unnest(_new_queues) ON CONFLICT DO NOTHING;
    END IF;
    IF _ring AND _at <= _now THEN PERFORM {ns}.ring(ARRAY[_queue]); END IF;
    BEGIN
        INSERT INTO {ns}.jobs (id, queue, type, version, content_type, priority, created, due, state, max_attempts,
            max_crashes, may_restart, keep_for, headers, body)
        SELECT n.id, _queue, _type, _version, _content_type, _priority, _now, _at, CASE WHEN _at > _now THEN 0 ELSE 1 END,
            _max_attempts, _max_crashes, _may_restart, nullif(_keep_for, -1), n.headers, n.body
        FROM (SELECT unnest(_id) AS id, unnest(_headers) AS headers, unnest(_body) AS body) n
        WHERE NOT EXISTS (SELECT FROM {ns}.forgotten_jobs f WHERE f.id = n.id);
        GET DIAGNOSTICS _made = ROW_COUNT;
        IF _made = _count THEN RETURN; END IF;
        RAISE unique_violation; -- takes back what was made
    EXCEPTION WHEN unique_violation THEN
        RETURN QUERY SELECT o.wanted, o.holder FROM {ns}.enqueue(_id, array_fill(_queue, ARRAY[_count]),
            array_fill(_type, ARRAY[_count]), array_fill(_version, ARRAY[_count]),
            array_fill(_content_type, ARRAY[_count]), array_fill(_priority, ARRAY[_count]),
            array_fill(_absolute, ARRAY[_count]), array_fill(_due, ARRAY[_count]),
            array_fill(_max_attempts, ARRAY[_count]), array_fill(_max_crashes, ARRAY[_count]),
            array_fill(_may_restart, ARRAY[_count]), array_fill(nullif(_keep_for, -1), ARRAY[_count]), _headers,
            array_fill(NULL::bytea, ARRAY[_count]), _body, '{}', '{}', false) o;
    END;
END $$;

-- One job, which may have a parent. Nothing when it was created, else the job in its way.
CREATE FUNCTION {ns}.enqueue_one(_id uuid, _queue text, _type text, _version integer, _content_type bytea,
    _priority integer, _absolute boolean, _due bigint, _max_attempts integer, _max_crashes integer,
    _may_restart boolean, _keep_for bigint, _headers bytea, _unique_key bytea, _body bytea, _parent uuid)
RETURNS uuid LANGUAGE plpgsql
SET search_path = pg_catalog SET jit = off
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
DECLARE
    _now bigint := {ns}.clock();
    _at bigint := CASE WHEN _absolute THEN _due ELSE _now + _due END;
    _parent_state smallint;
    _known boolean;
    _waits boolean;
    _dead boolean;
    _found uuid;
BEGIN
    LOOP
        IF EXISTS (SELECT FROM {ns}.jobs WHERE id = _id) OR EXISTS (SELECT FROM {ns}.forgotten_jobs WHERE id = _id) THEN
            RETURN _id;
        END IF;
        IF _parent IS NOT NULL THEN
            -- Holds the parent still: it ends before this job is looked at, or sees it when it ends.
            SELECT state, has_children INTO _parent_state, _known FROM {ns}.jobs WHERE id = _parent FOR NO KEY UPDATE;
            IF NOT _known THEN UPDATE {ns}.jobs SET has_children = true WHERE id = _parent; END IF;
        END IF;
        _waits := _parent_state IS NOT NULL AND _parent_state < 4;
        _dead := _parent_state IS NOT NULL AND _parent_state > 4;
        IF _dead AND _unique_key IS NOT NULL THEN -- the index lets in what has ended
            SELECT id INTO _found FROM {ns}.jobs
            WHERE type = _type AND unique_key = _unique_key AND unique_key IS NOT NULL AND state < 4;
            IF FOUND THEN RETURN _found; END IF;
        END IF;
        INSERT INTO {ns}.jobs (id, queue, type, version, content_type, priority, created, due, state, ended,
            max_attempts, max_crashes, may_restart, keep_for, headers, unique_key, body, parent, waits,
            cancelled_by_parent)
        VALUES (_id, _queue, _type, _version, _content_type, _priority, _now, _at,
            CASE WHEN _dead THEN 7 WHEN _waits OR _at > _now THEN 0 ELSE 1 END, CASE WHEN _dead THEN _now END,
            _max_attempts, _max_crashes, _may_restart, _keep_for, _headers, _unique_key, _body, _parent,
            _waits, _dead)
        ON CONFLICT DO NOTHING;
        IF FOUND THEN RETURN NULL; END IF;
        IF _unique_key IS NOT NULL THEN
            SELECT id INTO _found FROM {ns}.jobs
            WHERE type = _type AND unique_key = _unique_key AND unique_key IS NOT NULL AND state < 4;
            IF FOUND THEN RETURN _found; END IF;
        END IF; -- what was in the way has gone since: again
    END LOOP;
END $$;

-- What the end of these parents does to their children, and to theirs.
CREATE FUNCTION {ns}.parents_ended(_succeeded uuid[], _dead uuid[], _now bigint) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog SET jit = off
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
DECLARE
    _queues text[];
BEGIN
    IF cardinality(_succeeded) > 0 THEN
        WITH freed AS (
            UPDATE {ns}.jobs SET waits = false, state = CASE WHEN due <= _now THEN 1 ELSE state END
            WHERE parent = ANY (_succeeded) AND parent IS NOT NULL AND waits AND state < 4 RETURNING queue, due)
        SELECT array_agg(queue) FILTER (WHERE due <= _now) INTO _queues FROM freed;
        IF cardinality(_queues) > 0 THEN PERFORM {ns}.ring(_queues); END IF;
    END IF;
    WHILE cardinality(_dead) > 0 LOOP
        WITH gone AS (
            UPDATE {ns}.jobs SET waits = false, cancelled_by_parent = true, state = 7, ended = _now
            WHERE parent = ANY (_dead) AND parent IS NOT NULL AND waits AND state < 4 RETURNING id, has_children)
        SELECT array_agg(id) FILTER (WHERE has_children) INTO _dead FROM gone;
    END LOOP;
END $$;

-- Queues in the order of preference. Within one, the priorities there are from the highest, each by due time: what is
-- not due yet is never walked over. Nor is what was taken lately, whose entries stay in the index until a vacuum: _reached
-- is a queue, and the rest the last job that the caller took from it; of that priority, what is earlier comes at the end.
CREATE FUNCTION {ns}.claim(_queues text[], _limit integer, _lease bigint, _worker bytea, _reached text DEFAULT '',
    _priority integer DEFAULT 0, _due bigint DEFAULT 0, _id uuid DEFAULT NULL)
RETURNS TABLE (id uuid, token bigint, due bigint, queue text, priority integer, attempts integer,
    max_attempts integer, crash_count integer, generation integer, may_restart boolean, cancel_requested boolean,
    type text, version integer, content_type bytea, headers bytea, body bytea) LANGUAGE plpgsql
SET search_path = pg_catalog SET jit = off
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
SET enable_bitmapscan = off SET enable_sort = off AS $$
DECLARE
    _first CONSTANT uuid := '00000000-0000-0000-0000-000000000000';
    _now bigint := {ns}.clock();
    _left integer := _limit;
    _taken integer;
    _q text;
    _p bigint;
    _higher bigint;
    _from_due bigint;
    _from_id uuid;
    _to_due bigint;
    _to_id uuid;
BEGIN
    FOREACH _q IN ARRAY _queues LOOP
        CONTINUE WHEN EXISTS (SELECT FROM {ns}.queues s WHERE s.name = _q AND s.paused);
        _p := 2147483648;
        LOOP
            _from_due := -9223372036854775808;
            _from_id := _first;
            _to_due := _now;
            _to_id := 'ffffffff-ffff-ffff-ffff-ffffffffffff';
            IF _q = _reached AND _p > _priority THEN
                SELECT j.priority INTO _higher FROM {ns}.jobs j
                WHERE j.queue = _q AND j.state IN (0, 1, 3) AND NOT j.waits AND j.priority < _p AND j.priority > _priority
                ORDER BY j.queue, j.priority DESC LIMIT 1;
                IF FOUND THEN
                    _p := _higher;
                ELSE
                    _p := _priority;
                    _from_due := _due;
                    _from_id := _id;
                END IF;
            ELSE
                SELECT j.priority INTO _p FROM {ns}.jobs j
                WHERE j.queue = _q AND j.state IN (0, 1, 3) AND NOT j.waits AND j.priority < _p
                ORDER BY j.queue, j.priority DESC LIMIT 1;
                EXIT WHEN NOT FOUND;
            END IF;
            LOOP
                RETURN QUERY
                    UPDATE {ns}.jobs j SET token = greatest(j.token + 1, _now), attempts = j.attempts + 1,
                        started = false, state = 2, worker = _worker, claimed_at = _now, leased_until = _now + _lease
                    WHERE j.ctid = ANY (ARRAY(
                        SELECT d.ctid FROM {ns}.jobs d
                        WHERE d.queue = _q AND d.state IN (0, 1, 3) AND NOT d.waits AND d.priority = _p
                            AND (d.due, d.id) >= (_from_due, _from_id) AND (d.due, d.id) <= (_to_due, _to_id)
                        ORDER BY d.queue, d.priority DESC, d.due, d.id LIMIT _left FOR UPDATE SKIP LOCKED))
                    RETURNING j.id, j.token, j.due, j.queue, j.priority, j.attempts, j.max_attempts, j.crash_count,
                        j.generation, j.may_restart, j.cancel_requested, j.type, j.version, j.content_type, j.headers,
                        j.body;
                GET DIAGNOSTICS _taken = ROW_COUNT;
                _left := _left - _taken;
                IF _left <= 0 THEN RETURN; END IF;
                EXIT WHEN _from_id = _first; -- else: and what is earlier than the place that was reached
                _to_due := _from_due;
                _to_id := _from_id;
                _from_due := -9223372036854775808;
                _from_id := _first;
            END LOOP;
        END LOOP;
    END LOOP;
END $$;

-- _keep: what a job without a keep_for of its own is kept for. Leaves out who is done and succeeded.
CREATE FUNCTION {ns}.settle(_id uuid[], _token bigint[], _how smallint[], _absolute boolean[], _when bigint[],
    _error_type bytea[], _error_message bytea[], _output bytea[], _keep bigint)
RETURNS TABLE (place integer, answer smallint, state smallint) LANGUAGE plpgsql
SET search_path = pg_catalog SET jit = off
SET plan_cache_mode = force_generic_plan SET enable_hashjoin = off SET enable_mergejoin = off
SET enable_seqscan = off AS $$
DECLARE
    _now bigint := {ns}.clock();
    _done integer[];
    _kept integer[];
    _other integer[];
    _other_state smallint[];
    _parents uuid[];
    _dead_parents uuid[];
    _more uuid[];
    _with_history uuid[];
    _woken text[];
    -- The others are likely to be like the first.
    _deleting boolean := _how[1] = 0
        AND coalesce((SELECT coalesce(f.keep_for, _keep) = 0 FROM {ns}.jobs f WHERE f.id = _id[1]), _keep = 0);
BEGIN
    FOR _pass IN 1..2 LOOP
        IF _deleting THEN
            WITH gone AS (
                DELETE FROM {ns}.jobs j
                USING unnest(_id, _token, _how) WITH ORDINALITY AS r(id, token, how, place)
                WHERE j.id = r.id AND j.token = r.token AND j.state + 0 = 2 AND r.how = 0
                    AND coalesce(j.keep_for, _keep) = 0
                RETURNING r.place, j.id, j.has_children, j.has_history)
            SELECT array_agg(g.place::integer), array_agg(g.id) FILTER (WHERE g.has_children),
                array_agg(g.id) FILTER (WHERE g.has_history)
            INTO _done, _more, _with_history FROM gone g;
            _parents := _parents || _more;
            IF cardinality(_with_history) > 0 THEN
                DELETE FROM {ns}.attempts a WHERE a.job = ANY (_with_history);
            END IF;
        ELSE
            WITH changed AS (
                UPDATE {ns}.jobs j SET
                    state = CASE r.how WHEN 0 THEN 4 WHEN 2 THEN 6 WHEN 3 THEN 5 WHEN 4 THEN 7 WHEN 7 THEN 8
                        WHEN 1 THEN CASE WHEN j.cancel_requested THEN 7 WHEN j.attempts >= j.max_attempts THEN 6 ELSE 3 END
                        WHEN 5 THEN CASE WHEN j.cancel_requested THEN 7 ELSE 1 END
                        ELSE CASE WHEN j.cancel_requested THEN 7
                            WHEN (CASE WHEN r.absolute THEN r.at ELSE _now + r.at END) > _now THEN 0 ELSE 1 END END,
                    ended = CASE WHEN r.how IN (0, 2, 3, 4, 7) OR j.cancel_requested
                        OR r.how = 1 AND j.attempts >= j.max_attempts THEN _now END,
                    due = CASE WHEN NOT j.cancel_requested AND (r.how = 6 OR r.how = 1 AND j.attempts < j.max_attempts)
                        THEN CASE WHEN r.absolute THEN r.at ELSE _now + r.at END ELSE j.due END,
                    attempts = CASE WHEN r.how IN (5, 6) THEN j.attempts - 1 ELSE j.attempts END,
                    leased_until = NULL,
                    has_history = j.has_history OR r.how <> 0,
                    error_type = CASE WHEN r.error_type IS NULL THEN j.error_type ELSE r.error_type END,
                    error_message = CASE WHEN r.error_type IS NULL THEN j.error_message ELSE r.error_message END,
                    output = coalesce(r.output, j.output)
                FROM unnest(_id, _token, _how, _absolute, _when, _error_type, _error_message, _output)
                    WITH ORDINALITY AS r(id, token, how, absolute, at, error_type, error_message, output, place)
                WHERE j.id = r.id AND j.token = r.token AND j.state + 0 = 2
                    AND NOT (r.how = 0 AND coalesce(j.keep_for, _keep) = 0)
                RETURNING r.place, r.how, r.error_type, r.error_message, j.id, j.token, j.state, j.generation,
                    j.attempts, j.claimed_at, j.worker, j.has_children, j.queue, j.due),
            written AS (
                INSERT INTO {ns}.attempts (job, token, started, ended, generation, number, outcome, worker, error_type,
                    error_message)
                SELECT c.id, c.token, c.claimed_at, _now, c.generation,
                    CASE WHEN c.how IN (5, 6) THEN c.attempts + 1 ELSE c.attempts END,
                    (ARRAY['succeeded', 'retry', 'dead_letter', 'failed', 'cancelled', 'released', 'snoozed',
                        'indeterminate'])[c.how + 1], c.worker, c.error_type, c.error_message
                FROM changed c WHERE c.how <> 0 OR c.error_type IS NOT NULL)
            SELECT array_agg(c.place::integer),
                array_agg(c.place::integer) FILTER (WHERE c.state <> 4), array_agg(c.state) FILTER (WHERE c.state <> 4),
                array_agg(c.id) FILTER (WHERE c.has_children AND c.state = 4),
                array_agg(c.id) FILTER (WHERE c.has_children AND c.state > 4),
                array_agg(c.queue) FILTER (WHERE c.state < 4 AND c.due <= _now)
            INTO _kept, _other, _other_state, _more, _dead_parents, _woken FROM changed c;
            _parents := _parents || _more;
        END IF;
        EXIT WHEN coalesce(cardinality(_done), 0) + coalesce(cardinality(_kept), 0) = cardinality(_id);
        _deleting := NOT _deleting;
    END LOOP;

    IF cardinality(_parents) > 0 OR cardinality(_dead_parents) > 0 THEN
        PERFORM {ns}.parents_ended(_parents, _dead_parents, _now);
    END IF;
    IF cardinality(_woken) > 0 THEN PERFORM {ns}.ring(_woken); END IF;
    IF cardinality(_other) > 0 THEN
        RETURN QUERY SELECT o.place, 0::smallint, o.state FROM unnest(_other, _other_state) AS o(place, state);
    END IF;
    IF coalesce(cardinality(_done), 0) + coalesce(cardinality(_kept), 0) < cardinality(_id) THEN
        RETURN QUERY SELECT m.place, m.answer, 0::smallint
            FROM {ns}.missing(_id, coalesce(_done, '{}') || coalesce(_kept, '{}')) m;
    END IF;
END $$;

-- Why those not in _done could not be written: 1 stale, 2 gone.
CREATE FUNCTION {ns}.missing(_id uuid[], _done integer[]) RETURNS TABLE (place integer, answer smallint)
LANGUAGE sql STABLE SET search_path = pg_catalog SET jit = off AS $$
    SELECT r.place::integer, CASE WHEN EXISTS (SELECT FROM {ns}.jobs j WHERE j.id = r.id) THEN 1 ELSE 2 END::smallint
    FROM unnest(_id) WITH ORDINALITY AS r(id, place) WHERE NOT r.place = ANY (_done)
$$;

-- Leaves out who is done and not to be cancelled.
CREATE FUNCTION {ns}.heartbeat(_id uuid[], _token bigint[], _lease bigint)
RETURNS TABLE (place integer, answer smallint, cancel boolean) LANGUAGE plpgsql
SET search_path = pg_catalog SET jit = off
SET plan_cache_mode = force_generic_plan SET enable_hashjoin = off SET enable_mergejoin = off
SET enable_seqscan = off AS $$
DECLARE
    _now bigint := {ns}.clock();
    _done integer[];
    _cancelled integer[];
BEGIN
    WITH changed AS (
        UPDATE {ns}.jobs j SET leased_until = _now + _lease
        FROM unnest(_id, _token) WITH ORDINALITY AS r(id, token, place)
        WHERE j.id = r.id AND j.token = r.token AND j.state + 0 = 2 RETURNING r.place::integer, j.cancel_requested)
    SELECT array_agg(c.place), array_agg(c.place) FILTER (WHERE c.cancel_requested) INTO _done, _cancelled FROM changed c;
    RETURN QUERY SELECT c, 0::smallint, true FROM unnest(_cancelled) c;
    IF coalesce(cardinality(_done), 0) = cardinality(_id) THEN RETURN; END IF;
    RETURN QUERY SELECT m.place, m.answer, false FROM {ns}.missing(_id, coalesce(_done, '{}')) m;
END $$;

-- Leaves out who is done. NULL for _percent and _note: the handler has started.
CREATE FUNCTION {ns}.progress(_id uuid[], _token bigint[], _percent integer[], _note bytea[])
RETURNS TABLE (place integer, answer smallint) LANGUAGE plpgsql
SET search_path = pg_catalog SET jit = off
SET plan_cache_mode = force_generic_plan SET enable_hashjoin = off SET enable_mergejoin = off
SET enable_seqscan = off AS $$
DECLARE
    _done integer[];
BEGIN
    WITH changed AS (
        UPDATE {ns}.jobs j SET started = j.started OR r.percent IS NULL, percent = coalesce(r.percent, j.percent),
            note = coalesce(r.note, j.note)
        FROM unnest(_id, _token, _percent, _note) WITH ORDINALITY AS r(id, token, percent, note, place)
        WHERE j.id = r.id AND j.token = r.token AND j.state + 0 = 2 RETURNING r.place::integer)
    SELECT array_agg(c.place) INTO _done FROM changed c;
    IF coalesce(cardinality(_done), 0) = cardinality(_id) THEN RETURN; END IF;
    RETURN QUERY SELECT m.place, m.answer FROM {ns}.missing(_id, coalesce(_done, '{}')) m;
END $$;
)sql";
}

} // namespace holdfast::postgres
