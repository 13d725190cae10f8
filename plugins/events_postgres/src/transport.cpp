#include "transport.hpp"

#include <algorithm>

#include <holdfast/event_limits.hpp>
#include <holdfast/postgres/naming.hpp>
#include <holdfast/postgres/reader.hpp>

#include "rows.hpp"
#include "schema_sql.hpp"

namespace holdfast::events_postgres {

using postgres::after_loss;
using postgres::column;
using postgres::parameters;
using postgres::reader;
namespace compat = postgres::compat;

namespace {

constexpr std::uint64_t lines = 1024;

// Messages of one key are of one line; those without are of none.
std::int64_t line_of(std::string_view key) {
    if (key.empty()) return -1;
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(postgres::advisory_number({}, "line", key)) % lines);
}

parameters published(const std::vector<envelope>& batch) {
    using view = std::string_view;
    parameters p;
    p.many(column::uuid, batch, [](const envelope& m) { return m.id; });
    p.many(column::text, batch, [](const envelope& m) { return view(m.topic); });
    p.many(column::bytes, batch, [](const envelope& m) { return view(m.key); });
    p.many(column::int2, batch, [](const envelope& m) { return line_of(m.key); });
    p.many(column::bytes, batch, [](const envelope& m) { return view(m.what.type); });
    p.many(column::int4, batch, [](const envelope& m) { return std::int64_t{m.what.version}; });
    p.many(column::bytes, batch, [](const envelope& m) { return view(m.what.content_type); });
    p.many(column::bytes, batch, [](const envelope& m) { return postgres::encode_headers(m.extra); });
    p.many(column::bytes, batch, [](const envelope& m) { return view(m.what.body); });
    return p;
}

} // namespace

transport::transport(transport_options how, runtime& on)
    : how_(std::move(how)), locks_(static_cast<std::int32_t>(postgres::advisory_number(how_.name, "events"))),
      server_(static_cast<const postgres::options&>(how_), on) {}

transport_capabilities transport::capabilities() const {
    const std::lock_guard lock(mutex_);
    return {.writes_survive = durability_.writes_survive(), .loses = durability_.loses(), .shared = true};
}

task<result<void>> transport::prepare() {
    auto preparing = postgres::prepare(server_.connections, transport_schema());
    auto found = co_await std::move(preparing);
    if (!found) co_return std::unexpected(std::move(found.error()));
    const std::lock_guard lock(mutex_);
    durability_ = std::move(*found);
    co_return result<void>();
}

task<result<void>> transport::destroy() {
    auto removing = postgres::remove_schema(server_.connections);
    co_return co_await std::move(removing);
}

task<result<store_time>> transport::now() {
    auto run = [](session& here) { return reader(here.run(query::now, {}), 0).time(); };
    co_return co_await server_.call<store_time>(after_loss::again, run);
}

task<result<void>> transport::publish(std::vector<envelope> batch) {
    if (auto fine = store_limits::check_all(batch, how_.max_payload); !fine) co_return fine;
    if (batch.empty()) co_return result<void>();
    std::vector<std::string> woken;
    // Again after a loss: an id that is there is left alone.
    auto run = [&](session& here) {
        parameters p = published(batch);
        p.one(column::int8, how_.max_backlog).one(column::int4, locks_);
        const pqxx::result rows = here.run(query::publish, p);
        woken.clear();
        for (std::size_t i = 0; i < compat::rows(rows); ++i) {
            reader cells(rows, i);
            std::string name = cells.text();
            if (const auto backlog = cells.optional_integer())
                throw failed(store_limits::overloaded(name, static_cast<std::uint64_t>(*backlog),
                                                      static_cast<std::uint64_t>(how_.max_backlog)));
            woken.push_back(std::move(name));
        }
    };
    auto done = co_await server_.call<void>(after_loss::again, run);
    if (done) doorbell_.ring(woken);
    co_return done;
}

task<result<void>> transport::subscribe(subscription what) {
    if (auto fine = store_limits::check(what); !fine) co_return fine;
    auto run = [&](session& here) {
        parameters p;
        p.one(column::text, std::string_view(what.name));
        p.many(column::text, what.topics, [](const std::string& topic) { return std::string_view(topic); });
        p.one(column::boolean, std::int64_t{what.from_start}).one(column::int4, locks_);
        here.run(query::subscribe, p);
    };
    auto done = co_await server_.call<void>(after_loss::again, run);
    if (done && what.from_start) doorbell_.ring({what.name});
    co_return done;
}

task<result<bool>> transport::unsubscribe(std::string name) {
    auto run = [&](session& here) {
        parameters p;
        p.one(column::text, std::string_view(name)).one(column::int4, locks_);
        return reader(here.run(query::unsubscribe, p), 0).flag();
    };
    co_return co_await server_.call<bool>(after_loss::unknown, run);
}

task<result<std::vector<subscription_view>>> transport::subscriptions() {
    auto run = [](session& here) {
        const pqxx::result rows = here.run(query::subscriptions, {});
        std::vector<subscription_view> all;
        for (std::size_t i = 0; i < compat::rows(rows); ++i) all.push_back(read_view(rows, i));
        return all;
    };
    co_return co_await server_.call<std::vector<subscription_view>>(after_loss::again, run);
}

task<result<std::uint64_t>> transport::replay(std::string subscription, replay_point from) {
    constexpr int step = 2000; // messages at a time, for publishers wait meanwhile
    const auto most = static_cast<std::uint64_t>(INT64_MAX);
    auto run = [&](session& here) {
        const std::int64_t newest = reader(here.run(query::newest, {}), 0).integer();
        auto next = static_cast<std::int64_t>(std::min(from.position.value_or(0), most));
        std::uint64_t count = 0;
        for (;;) {
            parameters p;
            p.one(column::text, std::string_view(subscription)).one(column::int8, next).one(column::int8, newest);
            p.one(column::int8, from.time.value_or(store_time()).time_since_epoch().count());
            p.one(column::int4, step).one(column::int4, locks_);
            const pqxx::result rows = here.run(query::replay, p);
            if (compat::rows(rows) == 0) throw failed(store_limits::no_subscription(subscription));
            reader cells(rows, 0);
            count += static_cast<std::uint64_t>(cells.integer());
            const auto further = cells.optional_integer();
            if (!further) return count;
            next = *further;
        }
    };
    auto count = co_await server_.call<std::uint64_t>(after_loss::unknown, run);
    if (count && *count > 0) doorbell_.ring({subscription});
    co_return count;
}

task<result<int>> transport::sweep(int limit) {
    if (limit < 1) co_return fail(errc::invalid_argument, "a sweep needs a limit of 1 or more");
    auto run = [&](session& here) {
        parameters p;
        p.one(column::int8, postgres::micros(how_.keep)).one(column::int4, limit).one(column::int4, locks_);
        return reader(here.run(query::sweep, p), 0).small();
    };
    co_return co_await server_.call<int>(after_loss::again, run);
}

} // namespace holdfast::events_postgres
