#include "schema_sql.hpp"

namespace holdfast::events_postgres {

// Statements that come after a lock are statements of their own: each sees what was committed before it began.
std::string_view work_functions_sql() {
    return R"sql(
-- The names of subscriptions that were given something. With a number beside the name: that one is full, and nothing was
-- published.
CREATE FUNCTION {ns}.publish(_id uuid[], _topic text[], _key bytea[], _line smallint[], _type bytea[], _version integer[],
    _content_type bytea[], _headers bytea[], _body bytea[], _most bigint, _locks integer)
RETURNS TABLE (name text, backlog bigint) LANGUAGE plpgsql
SET search_path = pg_catalog SET jit = off
SET plan_cache_mode = force_generic_plan SET enable_hashjoin = off SET enable_mergejoin = off
SET enable_seqscan = off AS $$
DECLARE
    _now bigint;
    _woken bigint[];
    _opened bigint[];
BEGIN
    PERFORM pg_advisory_xact_lock_shared(_locks, -1);
    PERFORM {ns}.lock_lines(_line, _locks);
    _now := {ns}.clock();
    IF _most > 0 THEN
        RETURN QUERY SELECT s.name, t.open FROM {ns}.subscriptions s
            CROSS JOIN LATERAL (SELECT sum(c.open)::bigint AS open FROM {ns}.tallies c WHERE c.subscription = s.id) t
            WHERE t.open >= _most AND EXISTS (
                SELECT FROM unnest(_id, _topic) AS r(id, topic)
                JOIN {ns}.topics w ON w.topic = r.topic AND w.subscription = s.id
                WHERE NOT EXISTS (SELECT FROM {ns}.messages m WHERE m.id = r.id))
            LIMIT 1;
        IF FOUND THEN RETURN; END IF;
    END IF;
    WITH new AS (
        INSERT INTO {ns}.messages AS m (published, version, line, id, topic, key, type, content_type, headers, body)
        SELECT _now, r.version, r.line, r.id, r.topic, r.key, r.type, r.content_type, r.headers, r.body
        FROM unnest(_id, _topic, _key, _line, _type, _version, _content_type, _headers, _body) WITH ORDINALITY
            AS r(id, topic, key, line, type, version, content_type, headers, body, place)
        ORDER BY r.place ON CONFLICT (id) DO NOTHING
        RETURNING m.position, m.topic, m.key, m.line),
    wanted AS (
        SELECT t.subscription, n.position, n.key, n.line,
            row_number() OVER (PARTITION BY t.subscription, n.key ORDER BY n.position) AS nth
        FROM new n JOIN {ns}.topics t ON t.topic = n.topic),
    opened AS (
        INSERT INTO {ns}.deliveries AS d (subscription, position, key, line, turn)
        SELECT w.subscription, w.position, w.key, w.line, CASE
            WHEN w.key = '' THEN 1
            WHEN w.nth > 1 OR EXISTS (SELECT FROM {ns}.deliveries e WHERE e.subscription = w.subscription
                AND e.key = w.key AND e.turn < 3 AND e.key <> '') THEN 0
            ELSE 1 END
        FROM wanted w RETURNING d.subscription)
    SELECT array_agg(c.subscription), array_agg(c.number) INTO _woken, _opened
    FROM (SELECT o.subscription, count(*) AS number FROM opened o GROUP BY o.subscription) c;
    IF _woken IS NULL THEN RETURN; END IF;
    PERFORM {ns}.count_up(_woken, _opened, array_fill(0::bigint, ARRAY[cardinality(_woken)]),
        array_fill(0::bigint, ARRAY[cardinality(_woken)]));
    RETURN QUERY SELECT s.name, NULL::bigint FROM {ns}.subscriptions s WHERE s.id = ANY (_woken);
END $$;

-- One row without anything: there is no such subscription. One who receives from it at a time, else two could take
-- neighbours of one key. Rows that somebody is settling right now are passed over, and so is what comes after them. When
-- many keys have something, none of them gives more than a few times its share, so that no more is read than is given.
-- Rows that are chosen carry the number of the subscription, a column and not a constant: else a plan for an empty table
-- would read the whole subscription for each of them.
CREATE FUNCTION {ns}.receive(_name text, _limit integer, _lease bigint, _receiver bytea, _locks integer)
RETURNS TABLE (subscription bigint, "position" bigint, token bigint, redeliveries integer, crashes integer, calls integer,
    generation integer, id uuid, topic text, key bytea, type bytea, version integer, content_type bytea, headers bytea,
    body bytea) LANGUAGE plpgsql
SET search_path = pg_catalog SET jit = off
SET plan_cache_mode = force_generic_plan SET enable_hashjoin = off SET enable_mergejoin = off
SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
    _sub bigint;
    _now bigint;
BEGIN
    SELECT s.id INTO _sub FROM {ns}.subscriptions s WHERE s.name = _name;
    IF NOT FOUND THEN RETURN NEXT; RETURN; END IF;
    PERFORM pg_advisory_xact_lock(_locks, 1024 + (_sub % 1000000000)::integer);
    _now := {ns}.clock();
    RETURN QUERY
        WITH ready AS MATERIALIZED (
            SELECT d.position, d.key FROM {ns}.deliveries d WHERE d.subscription = _sub AND d.turn = 1
            ORDER BY d.position LIMIT _limit FOR UPDATE SKIP LOCKED),
        late AS MATERIALIZED (
            SELECT d.position, d.key FROM {ns}.deliveries d
            WHERE d.subscription = _sub AND d.turn = 2 AND d.until <= _now
            ORDER BY d.until LIMIT _limit + 1000 FOR UPDATE SKIP LOCKED),
        heads AS MATERIALIZED (
            SELECT r.position, r.key FROM (SELECT * FROM ready UNION ALL SELECT * FROM late) r
            ORDER BY r.position LIMIT _limit),
        last AS MATERIALIZED (
            SELECT CASE WHEN count(*) < _limit THEN 9223372036854775807 ELSE max(h.position) END AS place,
                least(_limit - 1, greatest(8, 4 * _limit / greatest(count(*), 1))) AS most FROM heads h),
        behind AS MATERIALIZED (
            SELECT f.position, h.key, f.free FROM heads h CROSS JOIN last CROSS JOIN LATERAL (
                SELECT d.position, d.until <= _now AS free FROM {ns}.deliveries d
                WHERE h.key <> '' AND d.subscription = _sub AND d.key = h.key AND d.turn < 3 AND d.key <> ''
                    AND d.position > h.position AND d.position < last.place
                ORDER BY d.position LIMIT last.most) f),
        wanted AS MATERIALIZED (
            SELECT _sub AS subscription, w.position, w.key, w.leads FROM (
                SELECT h.position, h.key, true AS leads, true AS whole FROM heads h UNION ALL
                SELECT b.position, b.key, false, bool_and(b.free) OVER (PARTITION BY b.key ORDER BY b.position)
                FROM behind b) w
            WHERE w.whole ORDER BY w.position LIMIT _limit),
        locked AS MATERIALIZED (
            SELECT d.position FROM wanted w JOIN {ns}.deliveries d
                ON d.subscription = w.subscription AND d.position = w.position AND d.turn = 0 AND d.until <= _now
            WHERE NOT w.leads FOR UPDATE OF d SKIP LOCKED),
        chosen AS MATERIALIZED (
            SELECT c.subscription, c.position FROM (
                SELECT w.subscription, w.position, bool_and(w.leads OR w.position IN (SELECT l.position FROM locked l))
                    OVER (PARTITION BY w.key ORDER BY w.position) AS whole FROM wanted w) c
            WHERE c.whole),
        given AS (
            UPDATE {ns}.deliveries d SET token = d.token + 1, crashes = d.crashes + d.leased::integer, leased = true,
                until = _now + _lease, turn = CASE WHEN d.turn = 0 THEN 0 ELSE 2 END, receiver = _receiver
            FROM chosen c WHERE d.subscription = c.subscription AND d.position = c.position
            RETURNING d.position, d.token, d.redeliveries, d.crashes, d.calls, d.generation)
        SELECT _sub, g.position, g.token, g.redeliveries, g.crashes, g.calls, g.generation, m.id, m.topic, m.key, m.type,
            m.version, m.content_type, m.headers, m.body
        FROM given g JOIN {ns}.messages m ON m.position = g.position ORDER BY g.position;
END $$;

-- Answers for those that were not settled; beside them, with place 0, names of subscriptions in which something may be
-- given out now.
CREATE FUNCTION {ns}.settle(_subscription bigint[], _position bigint[], _token bigint[], _how smallint[], _after bigint[],
    _calls integer[], _error_type bytea[], _error_message bytea[], _error_stack bytea[], _locks integer)
RETURNS TABLE (place integer, answer smallint, name text) LANGUAGE plpgsql
SET search_path = pg_catalog SET jit = off
SET plan_cache_mode = force_generic_plan SET enable_hashjoin = off SET enable_mergejoin = off
SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
    _now bigint := {ns}.clock();
    _done integer[];
    _of bigint[];
    _closed bigint[];
    _acknowledged bigint[];
    _discarded bigint[];
    _keys bytea[];
    _key_of bigint[];
    _woken bigint[];
    _more bigint[];
BEGIN
    PERFORM {ns}.lock_lines(ARRAY(
        SELECT d.line FROM unnest(_subscription, _position, _how) AS r(subscription, place, how)
        JOIN {ns}.deliveries d ON d.subscription = r.subscription AND d.position = r.place
        WHERE r.how NOT IN (1, 2)), _locks);
    WITH changed AS (
        UPDATE {ns}.deliveries d SET settled_by = d.token, leased = false,
            calls = d.calls + CASE WHEN r.how = 2 THEN 0 ELSE r.calls END,
            redeliveries = d.redeliveries + (r.how = 1)::integer,
            until = CASE WHEN r.how IN (1, 2) AND r.after > 0 THEN _now + r.after ELSE 0 END,
            turn = CASE WHEN r.how IN (0, 4) THEN 3 WHEN r.how = 3 THEN 4 WHEN d.turn = 0 THEN 0
                WHEN r.after > 0 THEN 2 ELSE 1 END,
            died = CASE WHEN r.how = 3 THEN _now END,
            death = CASE WHEN r.how = 3 THEN nextval('{ns}.deaths') END,
            error_type = CASE WHEN r.how = 3 THEN r.error_type END,
            error_message = CASE WHEN r.how = 3 THEN r.error_message END,
            error_stack = CASE WHEN r.how = 3 THEN r.error_stack END
        FROM unnest(_subscription, _position, _token, _how, _after, _calls, _error_type, _error_message, _error_stack)
            WITH ORDINALITY AS r(subscription, "position", token, how, after, calls, error_type, error_message,
                error_stack, place)
        WHERE d.subscription = r.subscription AND d.position = r.position AND d.token = r.token AND d.leased
        RETURNING r.place::integer, r.how, d.subscription, d.key, d.turn)
    SELECT array_agg(c.place), array_agg(c.subscription), array_agg((c.turn < 3)::integer - 1),
        array_agg((c.how = 0)::integer), array_agg((c.how = 4)::integer),
        array_agg(c.key) FILTER (WHERE c.turn >= 3 AND c.key <> ''),
        array_agg(c.subscription) FILTER (WHERE c.turn >= 3 AND c.key <> ''),
        array_agg(DISTINCT c.subscription) FILTER (WHERE c.turn = 1)
    INTO _done, _of, _closed, _acknowledged, _discarded, _keys, _key_of, _woken FROM changed c;
    IF _of IS NOT NULL THEN PERFORM {ns}.count_up(_of, _closed, _acknowledged, _discarded); END IF;
    IF _keys IS NOT NULL THEN
        WITH next AS MATERIALIZED (
            SELECT c.subscription, f.position
            FROM (SELECT DISTINCT * FROM unnest(_key_of, _keys)) AS c(subscription, key) CROSS JOIN LATERAL (
                SELECT d.position, d.turn FROM {ns}.deliveries d
                WHERE d.subscription = c.subscription AND d.key = c.key AND d.turn < 3 AND d.key <> ''
                ORDER BY d.position LIMIT 1) f
            WHERE f.turn = 0),
        promoted AS (
            UPDATE {ns}.deliveries d SET turn = CASE WHEN d.until > 0 THEN 2 ELSE 1 END
            FROM next n WHERE d.subscription = n.subscription AND d.position = n.position AND d.turn = 0
            RETURNING d.subscription, d.until)
        SELECT array_agg(DISTINCT p.subscription) INTO _more FROM promoted p WHERE p.until <= _now;
        _woken := _woken || _more;
    END IF;
    IF _woken IS NOT NULL THEN
        RETURN QUERY SELECT 0, 0::smallint, s.name FROM {ns}.subscriptions s WHERE s.id = ANY (_woken);
    END IF;
    IF cardinality(_done) = cardinality(_position) THEN RETURN; END IF;
    RETURN QUERY SELECT r.place::integer,
            CASE WHEN d.position IS NULL THEN 2 WHEN r.token > 0 AND d.settled_by = r.token THEN 0 ELSE 1 END::smallint,
            NULL::text
        FROM unnest(_subscription, _position, _token) WITH ORDINALITY AS r(subscription, "position", token, place)
        LEFT JOIN {ns}.deliveries d ON d.subscription = r.subscription AND d.position = r.position
        WHERE NOT r.place = ANY (coalesce(_done, '{}'));
END $$;

-- Answers for those whose lease was not renewed.
CREATE FUNCTION {ns}.renew(_subscription bigint[], _position bigint[], _token bigint[], _lease bigint)
RETURNS TABLE (place integer, answer smallint) LANGUAGE plpgsql
SET search_path = pg_catalog SET jit = off
SET plan_cache_mode = force_generic_plan SET enable_hashjoin = off SET enable_mergejoin = off
SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
    _until bigint := {ns}.clock() + _lease;
    _done integer[];
BEGIN
    WITH changed AS (
        UPDATE {ns}.deliveries d SET until = _until
        FROM unnest(_subscription, _position, _token) WITH ORDINALITY AS r(subscription, "position", token, place)
        WHERE d.subscription = r.subscription AND d.position = r.position AND d.token = r.token AND d.leased
        RETURNING r.place::integer)
    SELECT coalesce(array_agg(c.place), '{}') INTO _done FROM changed c;
    IF cardinality(_done) = cardinality(_position) THEN RETURN; END IF;
    RETURN QUERY SELECT r.place::integer, CASE WHEN EXISTS (SELECT FROM {ns}.deliveries d
            WHERE d.subscription = r.subscription AND d.position = r.position) THEN 1 ELSE 2 END::smallint
        FROM unnest(_subscription, _position) WITH ORDINALITY AS r(subscription, "position", place)
        WHERE NOT r.place = ANY (_done);
END $$;

-- One row: whether there is such a subscription, and microseconds until something may be given out, if anything is open.
CREATE FUNCTION {ns}.next_due(_name text) RETURNS TABLE (known boolean, wait bigint) LANGUAGE plpgsql
SET search_path = pg_catalog SET jit = off
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
SET enable_bitmapscan = off AS $$
DECLARE
    _sub bigint;
BEGIN
    SELECT s.id INTO _sub FROM {ns}.subscriptions s WHERE s.name = _name;
    known := _sub IS NOT NULL;
    IF EXISTS (SELECT FROM {ns}.deliveries d WHERE d.subscription = _sub AND d.turn = 1) THEN
        wait := 0;
    ELSE
        SELECT greatest(d.until - {ns}.clock(), 0) INTO wait FROM {ns}.deliveries d
        WHERE d.subscription = _sub AND d.turn = 2 ORDER BY d.until LIMIT 1;
    END IF;
    RETURN NEXT;
END $$;
)sql";
}

} // namespace holdfast::events_postgres
