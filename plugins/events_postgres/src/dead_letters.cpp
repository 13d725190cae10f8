#include "rows.hpp"
#include "transport.hpp"

namespace holdfast::events_postgres {

using postgres::after_loss;
using postgres::column;
using postgres::parameters;
using postgres::reader;
namespace compat = postgres::compat;

namespace {

parameters name_and_ids(const std::string& subscription, const std::vector<identifier>& which) {
    parameters p;
    p.one(column::text, std::string_view(subscription));
    p.many(column::uuid, which, [](const identifier& id) { return id; });
    return p;
}

} // namespace

task<result<dead_message_page>> transport::dead_messages(dead_message_filter filter, int limit, std::string cursor) {
    if (limit < 1) co_return fail(errc::invalid_argument, "a page needs a limit of 1 or more");
    const auto before = cursor.empty() ? std::optional(INT64_MAX) : postgres::decode_integer(cursor);
    if (!before) co_return fail(errc::invalid_argument, "the cursor is not one that this transport gave");
    auto run = [&](session& here) {
        parameters p;
        p.one(column::text, std::string_view(filter.subscription.value_or("")));
        p.one(column::text, std::string_view(filter.topic.value_or("")));
        p.one(column::int8, *before).one(column::int4, std::int64_t{limit} + 1);
        const pqxx::result rows = here.run(query::dead_messages, p);
        dead_message_page page;
        std::int64_t last = 0;
        for (std::size_t i = 0; i < compat::rows(rows); ++i) {
            if (page.messages.size() == static_cast<std::size_t>(limit)) {
                page.next = std::to_string(last);
                break;
            }
            auto [message, death] = read_dead(rows, i);
            page.messages.push_back(std::move(message));
            last = death;
        }
        return page;
    };
    co_return co_await server_.call<dead_message_page>(after_loss::again, run);
}

task<result<std::optional<dead_message>>> transport::dead_message_of(std::string subscription, identifier id) {
    auto run = [&](session& here) -> std::optional<dead_message> {
        parameters p;
        p.one(column::text, std::string_view(subscription)).one(column::uuid, id);
        const pqxx::result rows = here.run(query::dead_message, p);
        if (compat::rows(rows) == 0) return std::nullopt;
        return read_dead(rows, 0).first;
    };
    co_return co_await server_.call<std::optional<dead_message>>(after_loss::again, run);
}

task<result<int>> transport::send_again(std::string subscription, std::vector<identifier> which) {
    auto run = [&](session& here) {
        parameters p = name_and_ids(subscription, which);
        p.one(column::int4, locks_);
        return reader(here.run(query::send_again, p), 0).small();
    };
    auto count = co_await server_.call<int>(after_loss::unknown, run);
    if (count && *count > 0) doorbell_.ring({subscription});
    co_return count;
}

task<result<int>> transport::discard(std::string subscription, std::vector<identifier> which) {
    auto run = [&](session& here) {
        return static_cast<int>(compat::rows(here.run(query::discard, name_and_ids(subscription, which))));
    };
    co_return co_await server_.call<int>(after_loss::unknown, run);
}

} // namespace holdfast::events_postgres
