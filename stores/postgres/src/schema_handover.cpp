#include "schema_sql.hpp"

namespace holdfast::postgres {

// A job that somebody enqueues alone is claimed for an idle worker in the same commit, which so waits for the disk once for both.
// What the worker does about it, collecting and saying again that it is idle, writes only here, and waits for no disk.
std::string_view handover_sql() {
    return R"sql(
-- Workers that found less than they asked for, once per queue. While `free`, whoever enqueues a job claims it for one on
-- these terms and puts it down here (job, token). address: the channel that its process listens to, and a number there.
-- listener: an advisory lock that the session which listens holds; nobody does when it is free. Unlogged: after a crash of the
-- server nobody listens, and what was not collected comes back when its lease has run out. Several rows are locked by
-- address, then by queue, so that no two wait for each other. A change writes no index entry, so the dead versions of a row
-- go without a vacuum, but not while a transaction that began before, wherever in the database, goes on.
CREATE UNLOGGED TABLE {ns}.idle (
    queue text COLLATE "C",
    address text COLLATE "C",
    free boolean NOT NULL,
    listener bigint NOT NULL,
    lease bigint NOT NULL,
    token bigint,
    job uuid,
    worker bytea NOT NULL,
    PRIMARY KEY (queue, address)
) WITH (fillfactor = 50);
CREATE INDEX idle_address ON {ns}.idle (address);

-- Who may work with jobs may work with this: the application's role need not be the one that migrates.
DO $$
DECLARE
    _each record;
BEGIN
    FOR _each IN SELECT a.privilege_type AS what, a.grantee FROM pg_catalog.pg_class c,
            pg_catalog.aclexplode(coalesce(c.relacl, pg_catalog.acldefault('r', c.relowner))) a
        WHERE c.oid = '{ns}.jobs'::regclass
    LOOP
        EXECUTE format('GRANT %s ON {ns}.idle TO %s', _each.what,
            CASE WHEN _each.grantee = 0 THEN 'PUBLIC' ELSE _each.grantee::regrole::text END);
    END LOOP;
END $$;

-- One job that is told about, without parent and unique key. 0: there is or was one of that id; 1: made, and told to all; 2:
-- claimed for an idle worker, and told to that one.
CREATE FUNCTION {ns}.enqueue_and_tell(_id uuid, _queue text, _type text, _version integer, _content_type bytea,
    _priority integer, _absolute boolean, _due bigint, _max_attempts integer, _max_crashes integer,
    _may_restart boolean, _keep_for bigint, _headers bytea, _body bytea) RETURNS integer LANGUAGE plpgsql
SET search_path = pg_catalog SET jit = off
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
DECLARE
    _now bigint := {ns}.clock();
    _at bigint := CASE WHEN _absolute THEN _due ELSE _now + _due END;
    _idle {ns}.idle%ROWTYPE;
BEGIN
    IF EXISTS (SELECT FROM {ns}.forgotten_jobs f WHERE f.id = _id) THEN RETURN 0; END IF;
    WHILE _at <= _now LOOP
        SELECT * INTO _idle FROM {ns}.idle i WHERE i.queue = _queue AND i.free
        ORDER BY random() LIMIT 1 FOR UPDATE SKIP LOCKED;
        EXIT WHEN NOT FOUND;
        IF pg_try_advisory_xact_lock_shared(_idle.listener) THEN
            UPDATE {ns}.idle i SET free = false WHERE i.queue = _queue AND i.address = _idle.address;
            CONTINUE;
        END IF;
        -- Nobody is overtaken.
        EXIT WHEN {ns}.next_due(ARRAY[_queue]) <= 0 IS TRUE
            OR EXISTS (SELECT FROM {ns}.queues s WHERE s.name = _queue AND s.paused);
        UPDATE {ns}.idle i SET free = false, job = _id, token = _now
        WHERE i.queue = _queue AND i.address = _idle.address;
        INSERT INTO {ns}.jobs (id, queue, type, version, content_type, priority, created, due, state, max_attempts,
            max_crashes, may_restart, keep_for, headers, body, token, attempts, worker, claimed_at, leased_until)
        VALUES (_id, _queue, _type, _version, _content_type, _priority, _now, _at, 2, _max_attempts,
            _max_crashes, _may_restart, nullif(_keep_for, -1), nullif(_headers, ''), _body, _now, 1, _idle.worker, _now,
            _now + _idle.lease);
        PERFORM pg_notify(split_part(_idle.address, ' ', 1), split_part(_idle.address, ' ', 2));
        RETURN 2;
    END LOOP;
    INSERT INTO {ns}.jobs (id, queue, type, version, content_type, priority, created, due, state, max_attempts,
        max_crashes, may_restart, keep_for, headers, body)
    VALUES (_id, _queue, _type, _version, _content_type, _priority, _now, _at, CASE WHEN _at > _now THEN 0 ELSE 1 END,
        _max_attempts, _max_crashes, _may_restart, nullif(_keep_for, -1), nullif(_headers, ''), _body);
    IF _at <= _now THEN PERFORM pg_notify('holdfast_' || btrim('{ns}', '"'), _queue); END IF;
    RETURN 1;
END $$;

-- What was put down for this address, and is not recovered meanwhile; once. As {ns}.claim answers.
CREATE FUNCTION {ns}.collect(_address text, _limit integer)
RETURNS TABLE (id uuid, token bigint, due bigint, queue text, priority integer, attempts integer,
    max_attempts integer, crash_count integer, generation integer, may_restart boolean, cancel_requested boolean,
    type text, version integer, content_type bytea, headers bytea, body bytea) LANGUAGE plpgsql
SET search_path = pg_catalog SET jit = off
SET plan_cache_mode = force_generic_plan SET enable_hashjoin = off SET enable_mergejoin = off
SET enable_seqscan = off AS $$
DECLARE
    _ids uuid[];
    _tokens bigint[];
BEGIN
    WITH mine AS (
        SELECT i.queue, i.job, i.token FROM {ns}.idle i WHERE i.address = _address AND i.job IS NOT NULL
        ORDER BY i.queue LIMIT _limit FOR UPDATE),
    taken AS (
        UPDATE {ns}.idle i SET job = NULL, token = NULL FROM mine m WHERE i.queue = m.queue AND i.address = _address
        RETURNING m.job, m.token)
    SELECT array_agg(t.job), array_agg(t.token) INTO _ids, _tokens FROM taken t;
    IF _ids IS NULL THEN RETURN; END IF;
    RETURN QUERY SELECT j.id, j.token, j.due, j.queue, j.priority, j.attempts, j.max_attempts, j.crash_count,
            j.generation, j.may_restart, j.cancel_requested, j.type, j.version, j.content_type, j.headers, j.body
        FROM unnest(_ids, _tokens) AS t(id, token) JOIN {ns}.jobs j ON j.id = t.id
        WHERE j.token = t.token AND j.state + 0 = 2;
END $$;

-- In these queues, of this address (NULL: any): nobody is idle any more, and what was not collected goes back unburnt. _late:
-- only that of it whose lease has run out.
CREATE FUNCTION {ns}.give_back(_queues text[], _address text, _late boolean DEFAULT false) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog SET jit = off SET plan_cache_mode = force_custom_plan AS $$
DECLARE
    _ids uuid[];
    _tokens bigint[];
    _count integer;
    _now bigint := {ns}.clock();
BEGIN
    WITH these AS (
        SELECT i.queue, i.address, i.job, i.token FROM {ns}.idle i
        WHERE (_queues IS NULL OR i.queue = ANY (_queues)) AND (_address IS NULL OR i.address = _address)
            AND CASE WHEN _late THEN i.token + i.lease <= _now ELSE i.free OR i.job IS NOT NULL END
        ORDER BY i.address, i.queue FOR UPDATE),
    changed AS (
        UPDATE {ns}.idle i SET free = false, job = NULL, token = NULL FROM these t
        WHERE i.queue = t.queue AND i.address = t.address RETURNING t.job, t.token)
    SELECT array_agg(c.job ORDER BY c.job), array_agg(c.token ORDER BY c.job) INTO _ids, _tokens
    FROM changed c WHERE c.job IS NOT NULL;
    _count := cardinality(_ids);
    IF _count > 0 THEN
        PERFORM {ns}.settle(_ids, _tokens, array_fill(5::smallint, ARRAY[_count]), array_fill(false, ARRAY[_count]),
            array_fill(0::bigint, ARRAY[_count]), array_fill(NULL::bytea, ARRAY[_count]),
            array_fill(NULL::bytea, ARRAY[_count]), array_fill(NULL::bytea, ARRAY[_count]), 0);
    END IF;
END $$;

-- It is idle no more, for good.
CREATE FUNCTION {ns}.leave(_address text) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog SET jit = off AS $$
BEGIN
    PERFORM FROM {ns}.idle i WHERE i.address = _address ORDER BY i.queue FOR UPDATE;
    PERFORM {ns}.give_back(NULL, _address);
    DELETE FROM {ns}.idle i WHERE i.address = _address;
END $$;

-- Workers whose process does not listen any more leave, and what others have not collected by the end of its lease goes back:
-- of all of them, or of those that something in these queues was put down for.
CREATE FUNCTION {ns}.bury(_queues text[]) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog SET jit = off SET plan_cache_mode = force_custom_plan AS $$
DECLARE
    _each record;
BEGIN
    FOR _each IN SELECT i.address, i.listener, bool_or(i.token + i.lease <= {ns}.clock()) AS late FROM {ns}.idle i
        WHERE _queues IS NULL OR i.queue = ANY (_queues) AND i.job IS NOT NULL
        GROUP BY i.address, i.listener ORDER BY i.address
    LOOP
        IF pg_try_advisory_xact_lock_shared(_each.listener) THEN
            PERFORM FROM {ns}.idle i WHERE i.address = _each.address ORDER BY i.queue FOR UPDATE;
            PERFORM {ns}.give_back(NULL, _each.address);
            DELETE FROM {ns}.idle i WHERE i.address = _each.address AND i.listener = _each.listener;
        ELSIF _each.late THEN
            PERFORM {ns}.give_back(NULL, _each.address, true);
        END IF;
    END LOOP;
END $$;

-- A claim by this worker found less than it asked for. Gives what was put down for it and not heard of, and what follows
-- may be put down for it again. _listener 0: no more is.
CREATE FUNCTION {ns}.wait_for_jobs(_queues text[], _limit integer, _lease bigint, _worker bytea, _address text,
    _listener bigint)
RETURNS TABLE (id uuid, token bigint, due bigint, queue text, priority integer, attempts integer,
    max_attempts integer, crash_count integer, generation integer, may_restart boolean, cancel_requested boolean,
    type text, version integer, content_type bytea, headers bytea, body bytea) LANGUAGE plpgsql
SET search_path = pg_catalog SET jit = off
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
BEGIN
    IF EXISTS (SELECT FROM {ns}.idle i WHERE i.queue = ANY (_queues) AND i.job IS NOT NULL AND i.address <> _address) THEN
        PERFORM {ns}.bury(_queues);
    END IF;
    IF EXISTS (SELECT FROM {ns}.idle i WHERE i.address = _address AND i.job IS NOT NULL) THEN
        PERFORM FROM {ns}.idle i WHERE i.address = _address ORDER BY i.queue FOR UPDATE;
        RETURN QUERY SELECT * FROM {ns}.collect(_address, _limit);
    END IF;
    -- Who waits already writes nothing: a fleet that polls for days uses up no transaction numbers.
    INSERT INTO {ns}.idle AS i (queue, address, free, listener, lease, worker)
    SELECT q, _address, _listener <> 0, _listener, _lease, _worker
    FROM (SELECT DISTINCT u COLLATE "C" FROM unnest(_queues) u) w (q)
    WHERE NOT EXISTS (SELECT FROM {ns}.queues s WHERE s.name = q AND s.paused)
        AND NOT EXISTS (SELECT FROM {ns}.idle o WHERE o.queue = q AND o.address = _address AND o.free = (_listener <> 0)
            AND o.listener = _listener AND o.lease = _lease AND o.worker = _worker)
    ORDER BY q
    ON CONFLICT ON CONSTRAINT idle_pkey DO UPDATE SET free = excluded.free AND i.job IS NULL,
        listener = excluded.listener, lease = excluded.lease, worker = excluded.worker;
END $$;

CREATE FUNCTION {ns}.pause(_queue text, _paused boolean) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog SET jit = off AS $$
BEGIN
    INSERT INTO {ns}.queues (name, paused) VALUES (_queue, _paused)
    ON CONFLICT (name) DO UPDATE SET paused = excluded.paused;
    IF _paused THEN PERFORM {ns}.give_back(ARRAY[_queue], NULL); ELSE PERFORM {ns}.ring(ARRAY[_queue]); END IF;
END $$;

-- Ends the leases that have run out, then sweeps. First what nobody has collected goes back, also what is late since _now: that
-- has not crashed.
CREATE OR REPLACE FUNCTION {ns}.recover(_limit integer, _keep bigint, _keep_notes bigint, _lock bigint)
RETURNS TABLE (requeued integer, failed integer, deleted integer, dead_letter integer, more boolean) LANGUAGE plpgsql
SET search_path = pg_catalog SET jit = off
SET plan_cache_mode = force_generic_plan SET enable_hashjoin = off SET enable_mergejoin = off
SET enable_seqscan = off AS $$
DECLARE
    _now bigint := {ns}.clock();
    _dead uuid[];
    _woken text[];
BEGIN
    PERFORM {ns}.bury(NULL);
    WITH changed AS (
        UPDATE {ns}.jobs j SET
            attempts = j.attempts - 1,
            crash_count = j.crash_count + CASE WHEN j.may_restart AND NOT j.cancel_requested THEN 1 ELSE 0 END,
            state = CASE WHEN j.cancel_requested THEN 7 WHEN NOT j.may_restart AND j.started THEN 5
                WHEN j.crash_count + j.may_restart::integer > j.max_crashes THEN 6 ELSE 1 END,
            ended = CASE WHEN j.cancel_requested OR NOT j.may_restart AND j.started
                OR j.crash_count + j.may_restart::integer > j.max_crashes THEN _now END,
            leased_until = NULL,
            has_history = true,
            error_type = CASE WHEN NOT j.cancel_requested AND (NOT j.may_restart AND j.started
                OR j.crash_count + j.may_restart::integer > j.max_crashes) THEN 'crash'::bytea ELSE j.error_type END,
            error_message = CASE WHEN j.cancel_requested THEN j.error_message
                WHEN NOT j.may_restart AND j.started THEN 'crash, restart not allowed'::bytea
                WHEN j.crash_count + j.may_restart::integer > j.max_crashes THEN 'crashed too often'::bytea
                ELSE j.error_message END
        WHERE j.ctid = ANY (ARRAY(
            SELECT s.ctid FROM {ns}.jobs s WHERE s.state = 2 AND s.leased_until <= _now
            ORDER BY s.leased_until LIMIT _limit FOR UPDATE SKIP LOCKED))
        RETURNING j.id, j.token, j.state, j.generation, j.attempts, j.claimed_at, j.worker, j.has_children,
            j.error_type, j.error_message, j.queue),
    written AS (
        INSERT INTO {ns}.attempts (job, token, started, ended, generation, number, outcome, worker, error_type,
            error_message)
        SELECT c.id, c.token, c.claimed_at, _now, c.generation, c.attempts + 1, 'crashed', c.worker,
            CASE WHEN c.state IN (5, 6) THEN c.error_type END, CASE WHEN c.state IN (5, 6) THEN c.error_message END
        FROM changed c)
    SELECT count(*) FILTER (WHERE c.state = 1), count(*) FILTER (WHERE c.state = 5), count(*) FILTER (WHERE c.state = 7),
        count(*) FILTER (WHERE c.state = 6), array_agg(c.id) FILTER (WHERE c.has_children AND c.state > 4),
        array_agg(c.queue) FILTER (WHERE c.state = 1)
    INTO requeued, failed, deleted, dead_letter, _dead, _woken FROM changed c;
    IF cardinality(_woken) > 0 THEN PERFORM {ns}.ring(_woken); END IF;
    IF cardinality(_dead) > 0 THEN PERFORM {ns}.parents_ended(NULL, _dead, _now); END IF;
    more := {ns}.sweep(_keep, _keep_notes, _lock);
    RETURN NEXT;
END $$;
)sql";
}

} // namespace holdfast::postgres
