#include "statements.hpp"

namespace holdfast::events_postgres {

namespace {

// As read_dead() in rows.hpp wants them.
constexpr std::string_view dead_columns =
    "SELECT s.name, d.position, d.died, d.redeliveries, d.crashes, d.calls, d.generation, d.error_type, "
    "d.error_message, d.error_stack, m.id, m.topic, m.key, m.type, m.version, m.content_type, m.headers, m.body, "
    "d.death "
    "FROM {ns}.deliveries d JOIN {ns}.subscriptions s ON s.id = d.subscription "
    "JOIN {ns}.messages m ON m.position = d.position WHERE d.turn = 4 ";

} // namespace

statements::statements(std::string_view name) : statement_table(name) {
    set(query::now, "now", "SELECT {ns}.clock()");
    set(query::publish, "publish",
        "SELECT * FROM {ns}.publish($1::uuid[], $2::text[], $3::bytea[], $4::int2[], $5::bytea[], $6::int4[], "
        "$7::bytea[], $8::bytea[], $9::bytea[], $10::int8, $11::int4)");
    set(query::subscribe, "subscribe", "SELECT {ns}.subscribe($1::text, $2::text[], $3::bool, $4::int4)");
    set(query::unsubscribe, "unsubscribe", "SELECT {ns}.unsubscribe($1::text, $2::int4)");
    set(query::subscriptions, "subscriptions",
        "SELECT s.name, t.topics, c.open, l.leased, e.dead, c.acknowledged, c.discarded FROM {ns}.subscriptions s "
        "CROSS JOIN LATERAL (SELECT string_agg(encode(convert_to(w.topic, 'UTF8'), 'hex'), ' ') AS topics "
        "FROM {ns}.topics w WHERE w.subscription = s.id) t "
        "CROSS JOIN LATERAL (SELECT coalesce(sum(n.open), 0)::int8 AS open, "
        "coalesce(sum(n.acknowledged), 0)::int8 AS acknowledged, coalesce(sum(n.discarded), 0)::int8 AS discarded "
        "FROM {ns}.tallies n WHERE n.subscription = s.id) c "
        // Each half as an index of open ones knows it, so that what is settled is not looked at.
        "CROSS JOIN LATERAL (SELECT (SELECT count(*) FROM {ns}.deliveries d WHERE d.subscription = s.id "
        "AND d.turn = 2 AND d.leased AND d.until > k.now) + (SELECT count(*) FROM {ns}.deliveries d "
        "WHERE d.subscription = s.id AND d.turn = 0 AND d.leased AND d.until > k.now) "
        "AS leased FROM (SELECT {ns}.clock() AS now OFFSET 0) k) l "
        "CROSS JOIN LATERAL (SELECT count(*) AS dead FROM {ns}.deliveries d WHERE d.subscription = s.id "
        "AND d.turn = 4) e ORDER BY s.name COLLATE \"C\"");
    set(query::receive, "receive", "SELECT * FROM {ns}.receive($1::text, $2::int4, $3::int8, $4::bytea, $5::int4)");
    set(query::renew, "renew", "SELECT * FROM {ns}.renew($1::int8[], $2::int8[], $3::int8[], $4::int8)");
    set(query::settle, "settle",
        "SELECT * FROM {ns}.settle($1::int8[], $2::int8[], $3::int8[], $4::int2[], $5::int8[], $6::int4[], "
        "$7::bytea[], $8::bytea[], $9::bytea[], $10::int4)");
    set(query::next_due, "next_due", "SELECT * FROM {ns}.next_due($1::text)");
    // Empty names stand for any.
    set(query::dead_messages, "dead_messages",
        std::string(dead_columns) +
            "AND ($1::text = '' OR d.subscription = (SELECT id FROM {ns}.subscriptions WHERE name = $1)) "
            "AND ($2::text = '' OR m.topic = $2) AND d.death < $3::int8 ORDER BY d.death DESC LIMIT $4::int4");
    set(query::dead_message, "dead_message", std::string(dead_columns) + "AND s.name = $1::text AND m.id = $2::uuid");
    set(query::send_again, "send_again", "SELECT {ns}.send_again($1::text, $2::uuid[], $3::int4)");
    set(query::discard, "discard",
        "UPDATE {ns}.deliveries d SET turn = 3 FROM {ns}.messages m, {ns}.subscriptions s "
        "WHERE s.name = $1::text AND m.id = ANY ($2::uuid[]) AND d.subscription = s.id AND d.position = m.position "
        "AND d.turn = 4 RETURNING 1");
    set(query::newest, "newest", "SELECT coalesce(max(position), 0) FROM {ns}.messages");
    set(query::replay, "replay",
        "SELECT * FROM {ns}.replay($1::text, $2::int8, $3::int8, $4::int8, $5::int4, $6::int4)");
    set(query::sweep, "sweep", "SELECT {ns}.sweep($1::int8, $2::int4, $3::int4)");
}

} // namespace holdfast::events_postgres
