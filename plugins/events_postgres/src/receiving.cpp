#include <holdfast/event_limits.hpp>
#include <holdfast/event_watchers.hpp>

#include "lease_places.hpp"
#include "rows.hpp"
#include "transport.hpp"

namespace holdfast::events_postgres {

using postgres::after_loss;
using postgres::column;
using postgres::parameters;
using postgres::reader;
namespace compat = postgres::compat;

namespace {

parameters places(const std::vector<lease_place>& all) {
    parameters p;
    p.many(column::int8, all, [](const lease_place& l) { return l.subscription; });
    p.many(column::int8, all, [](const lease_place& l) { return l.position; });
    p.many(column::int8, all, [](const lease_place& l) { return l.token; });
    return p;
}

// Of as many as there are arguments: those that were sent are done unless the server says otherwise.
std::vector<write_answer> first_answers(std::size_t count, const std::vector<lease_place>& sent) {
    std::vector<write_answer> answers(count, write_answer::gone);
    for (const lease_place& each : sent) answers[each.from] = write_answer::done;
    return answers;
}

} // namespace

task<result<std::vector<delivery>>> transport::receive(std::string subscription, int limit, duration lease_for,
                                                       std::string receiver) {
    if (auto fine = store_limits::check_receive(limit, lease_for); !fine) co_return std::unexpected(fine.error());
    using deliveries = std::optional<std::vector<delivery>>;
    auto run = [&](session& here) -> deliveries {
        parameters p;
        p.one(column::text, std::string_view(subscription)).one(column::int4, limit);
        p.one(column::int8, postgres::micros(lease_for)).one(column::bytes, std::string_view(receiver));
        p.one(column::int4, locks_);
        const pqxx::result rows = here.run(query::receive, p);
        if (compat::rows(rows) == 1 && !reader(rows, 0).next()) return std::nullopt;
        std::vector<delivery> all;
        for (std::size_t i = 0; i < compat::rows(rows); ++i) all.push_back(read_delivery(rows, i));
        return all;
    };
    auto given = co_await server_.call<deliveries>(after_loss::unknown, run);
    if (!given) co_return std::unexpected(std::move(given.error()));
    if (!*given) co_return std::unexpected(store_limits::no_subscription(subscription));
    co_return std::move(**given);
}

task<result<std::vector<write_answer>>> transport::renew(std::span<const delivery_lease* const> held,
                                                         duration lease_for) {
    if (auto fine = store_limits::check_receive(1, lease_for); !fine) co_return std::unexpected(fine.error());
    const auto sent = places_of(held, [](const delivery_lease* each) { return each; });
    auto run = [&](session& here) {
        auto answers = first_answers(held.size(), sent);
        parameters p = places(sent);
        p.one(column::int8, postgres::micros(lease_for));
        const pqxx::result rows = here.run(query::renew, p);
        for (std::size_t i = 0; i < compat::rows(rows); ++i) {
            reader cells(rows, i);
            const auto place = static_cast<std::size_t>(cells.integer()) - 1;
            answers.at(sent.at(place).from) = static_cast<write_answer>(cells.integer());
        }
        return answers;
    };
    co_return co_await server_.call<std::vector<write_answer>>(after_loss::again, run);
}

task<result<std::vector<write_answer>>> transport::settle(std::span<const delivery_settlement> which) {
    const auto sent = places_of(which, [](const delivery_settlement& each) { return each.held; });
    std::vector<std::string> woken;
    // Again after a loss: the row remembers which lease has settled it.
    auto run = [&](session& here) {
        using place = lease_place;
        const auto of = [&](const place& l) -> const delivery_settlement& { return which[l.from]; };
        const auto error_of = [&](const place& l) -> const delivery_error& { return of(l).error; };
        parameters p = places(sent);
        p.many(column::int2, sent, [&](const place& l) { return static_cast<std::int64_t>(of(l).how); });
        p.many(column::int8, sent, [&](const place& l) { return postgres::micros(of(l).after); });
        p.many(column::int4, sent, [&](const place& l) { return std::int64_t{of(l).calls}; });
        p.many(column::bytes, sent, [&](const place& l) { return std::string_view(error_of(l).type); });
        p.many(column::bytes, sent, [&](const place& l) { return std::string_view(error_of(l).message); });
        p.many(column::bytes, sent, [&](const place& l) { return std::string_view(error_of(l).stack); });
        p.one(column::int4, locks_);
        auto answers = first_answers(which.size(), sent);
        woken.clear();
        const pqxx::result rows = here.run(query::settle, p);
        for (std::size_t i = 0; i < compat::rows(rows); ++i) {
            reader cells(rows, i);
            const std::int64_t number = cells.integer();
            const auto answer = static_cast<write_answer>(cells.integer());
            if (number == 0) woken.push_back(cells.text());
            else answers.at(sent.at(static_cast<std::size_t>(number) - 1).from) = answer;
        }
        return answers;
    };
    auto answers = co_await server_.call<std::vector<write_answer>>(after_loss::again, run);
    if (answers) doorbell_.ring(woken);
    co_return answers;
}

task<result<std::optional<duration>>> transport::next_due(std::string subscription) {
    using wait = std::optional<std::optional<duration>>;
    auto run = [&](session& here) -> wait {
        parameters p;
        p.one(column::text, std::string_view(subscription));
        const pqxx::result rows = here.run(query::next_due, p);
        reader cells(rows, 0);
        if (!cells.flag()) return std::nullopt;
        const auto left = cells.optional_integer();
        if (!left) return std::optional<duration>();
        return std::optional<duration>(std::chrono::microseconds(*left));
    };
    auto found = co_await server_.call<wait>(after_loss::again, run);
    if (!found) co_return std::unexpected(std::move(found.error()));
    if (!*found) co_return std::unexpected(store_limits::no_subscription(subscription));
    co_return **found;
}

std::unique_ptr<event_watch> transport::watch(std::string subscription, std::function<void()> hint) {
    return to_event_watch(doorbell_.watch({std::move(subscription)}, std::move(hint)));
}

} // namespace holdfast::events_postgres
