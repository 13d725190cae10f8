#include "schema_sql.hpp"

namespace holdfast::events_postgres {

std::string_view upkeep_functions_sql() {
    return R"sql(
-- Messages of these keys were opened: the first open one of each is next, all others are behind it.
CREATE FUNCTION {ns}.line_up(_sub bigint, _keys bytea[]) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog SET jit = off
SET plan_cache_mode = force_generic_plan SET enable_hashjoin = off SET enable_mergejoin = off
SET enable_seqscan = off SET enable_bitmapscan = off AS $$
BEGIN
    WITH first AS MATERIALIZED (
        SELECT k.key, f.position FROM (SELECT DISTINCT unnest(_keys)) AS k(key) CROSS JOIN LATERAL (
            SELECT d.position FROM {ns}.deliveries d
            WHERE d.subscription = _sub AND d.key = k.key AND d.turn < 3 AND d.key <> ''
            ORDER BY d.position LIMIT 1) f),
    wrong AS MATERIALIZED (
        SELECT d.position, d.position = f.position AS leads FROM first f JOIN {ns}.deliveries d
            ON d.subscription = _sub AND d.key = f.key AND d.turn < 3 AND d.key <> ''
        WHERE (d.turn = 0) = (d.position = f.position))
    UPDATE {ns}.deliveries d
    SET turn = CASE WHEN NOT w.leads THEN 0 WHEN d.until > 0 THEN 2 ELSE 1 END
    FROM wrong w WHERE d.subscription = _sub AND d.position = w.position;
END $$;

CREATE FUNCTION {ns}.subscribe(_name text, _topics text[], _from_start boolean, _locks integer)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog SET jit = off AS $$
DECLARE
    _sub bigint;
    _number bigint;
BEGIN
    IF _from_start THEN PERFORM pg_advisory_xact_lock(_locks, -3); END IF;
    PERFORM pg_advisory_xact_lock(_locks, -1);
    SELECT s.id INTO _sub FROM {ns}.subscriptions s WHERE s.name = _name;
    IF FOUND THEN
        DELETE FROM {ns}.topics t WHERE t.subscription = _sub AND NOT t.topic = ANY (_topics);
    ELSE
        INSERT INTO {ns}.subscriptions AS s (name) VALUES (_name) RETURNING s.id INTO _sub;
        IF _from_start THEN
            INSERT INTO {ns}.deliveries (subscription, position, key, line, turn)
            SELECT _sub, m.position, m.key, m.line, CASE WHEN m.key = '' OR row_number()
                OVER (PARTITION BY m.key ORDER BY m.position) = 1 THEN 1 ELSE 0 END
            FROM {ns}.messages m WHERE m.topic = ANY (_topics);
            GET DIAGNOSTICS _number = ROW_COUNT;
            PERFORM {ns}.count_up(ARRAY[_sub], ARRAY[_number], ARRAY[0::bigint], ARRAY[0::bigint]);
        END IF;
    END IF;
    INSERT INTO {ns}.topics (topic, subscription) SELECT DISTINCT unnest(_topics), _sub ON CONFLICT DO NOTHING;
END $$;

CREATE FUNCTION {ns}.unsubscribe(_name text, _locks integer) RETURNS boolean LANGUAGE plpgsql
SET search_path = pg_catalog SET jit = off AS $$
DECLARE
    _sub bigint;
BEGIN
    PERFORM pg_advisory_xact_lock(_locks, -1);
    DELETE FROM {ns}.subscriptions s WHERE s.name = _name RETURNING s.id INTO _sub;
    IF _sub IS NULL THEN RETURN false; END IF;
    PERFORM pg_advisory_xact_lock(_locks, 1024 + (_sub % 1000000000)::integer);
    DELETE FROM {ns}.topics t WHERE t.subscription = _sub;
    DELETE FROM {ns}.deliveries d WHERE d.subscription = _sub;
    DELETE FROM {ns}.tallies t WHERE t.subscription = _sub;
    RETURN true;
END $$;

CREATE FUNCTION {ns}.send_again(_name text, _id uuid[], _locks integer) RETURNS integer LANGUAGE plpgsql
SET search_path = pg_catalog SET jit = off SET enable_seqscan = off AS $$
DECLARE
    _sub bigint;
    _keys bytea[];
    _number integer;
BEGIN
    SELECT s.id INTO _sub FROM {ns}.subscriptions s WHERE s.name = _name;
    IF NOT FOUND THEN RETURN 0; END IF;
    PERFORM pg_advisory_xact_lock(_locks, 1024 + (_sub % 1000000000)::integer);
    PERFORM pg_advisory_xact_lock(_locks, -2);
    WITH changed AS (
        UPDATE {ns}.deliveries d SET turn = CASE WHEN d.key = '' THEN 1 ELSE 0 END, until = 0, redeliveries = 0,
            crashes = 0, calls = 0, generation = d.generation + 1, died = NULL, death = NULL, error_type = NULL,
            error_message = NULL, error_stack = NULL
        FROM {ns}.messages m
        WHERE m.id = ANY (_id) AND d.subscription = _sub AND d.position = m.position AND d.turn = 4 RETURNING d.key)
    SELECT count(*), array_agg(c.key) FILTER (WHERE c.key <> '') INTO _number, _keys FROM changed c;
    IF _number = 0 THEN RETURN 0; END IF;
    IF _keys IS NOT NULL THEN PERFORM {ns}.line_up(_sub, _keys); END IF;
    PERFORM {ns}.count_up(ARRAY[_sub], ARRAY[_number::bigint], ARRAY[0::bigint], ARRAY[0::bigint]);
    RETURN _number;
END $$;

-- At most _limit messages from _from to _to. Gives how many were opened, and where to go on, if anywhere; nothing when
-- there is no such subscription.
CREATE FUNCTION {ns}.replay(_name text, _from bigint, _to bigint, _since bigint, _limit integer, _locks integer)
RETURNS TABLE (number bigint, next bigint) LANGUAGE plpgsql
SET search_path = pg_catalog SET jit = off SET enable_seqscan = off AS $$
DECLARE
    _sub bigint;
    _keys bytea[];
    _all bigint[];
BEGIN
    SELECT s.id INTO _sub FROM {ns}.subscriptions s WHERE s.name = _name;
    IF NOT FOUND THEN RETURN; END IF;
    PERFORM pg_advisory_xact_lock(_locks, -3);
    PERFORM pg_advisory_xact_lock(_locks, 1024 + (_sub % 1000000000)::integer);
    PERFORM pg_advisory_xact_lock(_locks, -2);
    _all := ARRAY(SELECT m.position FROM {ns}.messages m
        JOIN {ns}.topics t ON t.topic = m.topic AND t.subscription = _sub
        WHERE m.position BETWEEN _from AND _to AND m.published >= _since ORDER BY m.position LIMIT _limit);
    WITH opened AS (
        INSERT INTO {ns}.deliveries AS d (subscription, position, key, line, turn, generation)
        SELECT _sub, m.position, m.key, m.line, CASE WHEN m.key = '' THEN 1 ELSE 0 END, 2
        FROM {ns}.messages m WHERE m.position = ANY (_all)
        ON CONFLICT ON CONSTRAINT deliveries_pkey DO UPDATE SET turn = excluded.turn, until = 0, redeliveries = 0,
            crashes = 0, calls = 0, generation = d.generation + 1, died = NULL, death = NULL, error_type = NULL,
            error_message = NULL, error_stack = NULL
        WHERE d.turn >= 3 RETURNING d.key)
    SELECT count(*), array_agg(o.key) FILTER (WHERE o.key <> '') INTO number, _keys FROM opened o;
    IF _keys IS NOT NULL THEN PERFORM {ns}.line_up(_sub, _keys); END IF;
    IF number > 0 THEN
        PERFORM {ns}.count_up(ARRAY[_sub], ARRAY[number], ARRAY[0::bigint], ARRAY[0::bigint]);
    END IF;
    IF cardinality(_all) = _limit THEN next := _all[_limit] + 1; END IF;
    RETURN NEXT;
END $$;

CREATE FUNCTION {ns}.sweep(_keep bigint, _limit integer, _locks integer) RETURNS integer LANGUAGE plpgsql
SET search_path = pg_catalog SET jit = off
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
    _before bigint := {ns}.clock() - _keep;
    _old bigint[];
BEGIN
    PERFORM pg_advisory_xact_lock(_locks, -3);
    _old := ARRAY(SELECT m.position FROM {ns}.messages m WHERE m.published < _before
        AND NOT EXISTS (SELECT FROM {ns}.deliveries d WHERE d.position = m.position AND d.turn <> 3)
        ORDER BY m.published LIMIT _limit);
    DELETE FROM {ns}.deliveries d USING {ns}.subscriptions s, unnest(_old) AS o(place)
    WHERE d.subscription = s.id AND d.position = o.place;
    DELETE FROM {ns}.messages m WHERE m.position = ANY (_old);
    RETURN cardinality(_old);
END $$;
)sql";
}

} // namespace holdfast::events_postgres
