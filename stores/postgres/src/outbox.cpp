#include <algorithm>

#include <holdfast/postgres/naming.hpp>
#include <holdfast/store_limits.hpp>

#include "batch.hpp"
#include "facets.hpp"
#include "rows.hpp"

namespace holdfast::postgres {

namespace {

using entry = postgres::lease_batch::entry;

parameters ids_and_tokens(const std::vector<entry>& sent) {
    parameters p;
    p.many(column::uuid, sent, [](const entry& e) { return e.id; });
    p.many(column::int8, sent, [](const entry& e) { return static_cast<std::int64_t>(e.token); });
    return p;
}

parameters only_ids(const std::vector<identifier>& which) {
    parameters p;
    p.many(column::uuid, which, [](const identifier& id) { return id; });
    return p;
}

std::vector<write_answer> answers_of(std::size_t count, const postgres::lease_batch& batch, const pqxx::result& rows) {
    std::vector<write_answer> answers(count, write_answer::done);
    for (const std::size_t i : batch.never) answers[i] = write_answer::gone;
    for (std::size_t i = 0; i < compat::rows(rows); ++i) {
        reader cells(rows, i);
        const auto place = static_cast<std::size_t>(cells.integer()) - 1;
        answers.at(batch.sent.at(place).from) = static_cast<write_answer>(cells.integer());
    }
    for (const auto& [argument, first] : batch.twice) answers[argument] = answers[batch.sent[first].from];
    return answers;
}

} // namespace

task<result<void>> outbox::append(std::vector<outgoing_message> messages, unit_of_work* in) {
    if (auto ok = store_limits::check_all(messages, core_.how().max_payload); !ok) co_return ok;
    using message = outgoing_message;
    using view = std::string_view;
    // Again after a loss: an id that is there is left alone; one that was sent meanwhile is sent twice, as it may be.
    auto run = [&](session& here) {
        if (messages.empty()) return;
        parameters p;
        p.many(column::uuid, messages, [](const message& m) { return m.id; });
        p.many(column::text, messages, [](const message& m) { return view(m.topic); });
        p.many(column::bytes, messages, [](const message& m) { return view(m.key); });
        p.many(column::bytes, messages, [](const message& m) { return view(m.what.type); });
        p.many(column::int4, messages, [](const message& m) { return std::int64_t{m.what.version}; });
        p.many(column::bytes, messages, [](const message& m) { return view(m.what.content_type); });
        p.many(column::bytes, messages, [](const message& m) { return encode_headers(m.extra); });
        p.many(column::bytes, messages, [](const message& m) { return view(m.what.body); });
        here.run(query::outbox_append, p);
    };
    co_return co_await core_.call<void>(after_loss::again, run, in);
}

task<result<std::vector<leased_message>>> outbox::lease_batch(int limit, duration lease_for, std::string relay) {
    if (limit < 1) co_return fail(errc::invalid_argument, "a batch needs a limit of 1 or more");
    if (auto ok = store_limits::check_time("a lease", lease_for); !ok) co_return std::unexpected(ok.error());
    auto run = [&](session& here) {
        parameters p;
        p.one(column::int4, limit).one(column::int8, micros(lease_for)).one(column::bytes, std::string_view(relay));
        p.one(column::int8, advisory_number(core_.how().name, "outbox"));
        const pqxx::result rows = here.run(query::outbox_lease, p);
        std::vector<leased_message> all;
        for (std::size_t i = 0; i < compat::rows(rows); ++i) all.push_back(read_leased(rows, i));
        return all;
    };
    co_return co_await core_.call<std::vector<leased_message>>(after_loss::unknown, run);
}

task<result<std::vector<write_answer>>> outbox::delivered(std::span<const message_lease* const> sent) {
    const auto batch = make_batch(sent, [](const message_lease* held) -> const message_lease& { return *held; });
    auto run = [&](session& here) {
        return answers_of(sent.size(), batch, here.run(query::outbox_delivered, ids_and_tokens(batch.sent)));
    };
    co_return co_await core_.call<std::vector<write_answer>>(after_loss::again, run);
}

task<result<std::vector<write_answer>>> outbox::failed(std::span<const message_failure> which) {
    const auto batch = make_batch(which, [](const message_failure& f) -> const message_lease& { return *f.held; });
    auto run = [&](session& here) {
        parameters p = ids_and_tokens(batch.sent);
        p.many(column::bytes, batch.sent, [&](const entry& e) { return std::string_view(which[e.from].why); });
        p.many(column::int8, batch.sent, [&](const entry& e) { return micros(which[e.from].retry_after); });
        p.many(column::boolean, batch.sent, [&](const entry& e) { return std::int64_t{which[e.from].set_aside}; });
        p.one(column::int8, advisory_number(core_.how().name, "outbox"));
        return answers_of(which.size(), batch, here.run(query::outbox_failed, p));
    };
    co_return co_await core_.call<std::vector<write_answer>>(after_loss::unknown, run);
}

task<result<std::vector<message_view>>> outbox::set_aside(int limit, std::uint64_t after_position) {
    auto run = [&](session& here) {
        parameters p;
        p.one(column::int8, static_cast<std::int64_t>(after_position)).one(column::int4, std::max(limit, 0));
        const pqxx::result rows = here.run(query::outbox_aside, p);
        std::vector<message_view> all;
        for (std::size_t i = 0; i < compat::rows(rows); ++i) all.push_back(read_set_aside(rows, i));
        return all;
    };
    co_return co_await core_.call<std::vector<message_view>>(after_loss::again, run);
}

task<result<int>> outbox::send_again(std::vector<identifier> which) {
    auto run = [&](session& here) {
        return static_cast<int>(compat::rows(here.run(query::outbox_send_again, only_ids(which))));
    };
    co_return co_await core_.call<int>(after_loss::unknown, run);
}

task<result<int>> outbox::discard(std::vector<identifier> which) {
    auto run = [&](session& here) {
        return static_cast<int>(compat::rows(here.run(query::outbox_discard, only_ids(which))));
    };
    co_return co_await core_.call<int>(after_loss::unknown, run);
}

task<result<std::uint64_t>> outbox::unsent() {
    auto run = [](session& here) {
        return static_cast<std::uint64_t>(reader(here.run(query::outbox_unsent, {}), 0).integer());
    };
    co_return co_await core_.call<std::uint64_t>(after_loss::again, run);
}

task<result<bool>> outbox::receive(std::string consumer, identifier message, duration ttl, unit_of_work* in) {
    if (auto ok = store_limits::check_key("consumer", consumer); !ok) co_return std::unexpected(std::move(ok.error()));
    if (auto ok = store_limits::check_time("a note in the inbox", ttl); !ok) co_return std::unexpected(ok.error());
    core_.sweeping.now_and_then();
    auto run = [&](session& here) {
        parameters p;
        p.one(column::bytes, std::string_view(consumer)).one(column::uuid, message).one(column::int8, micros(ttl));
        return compat::rows(here.run(query::inbox_receive, p)) > 0;
    };
    co_return co_await core_.call<bool>(after_loss::unknown, run, in);
}

task<result<std::vector<bool>>> outbox::received(std::string consumer, std::vector<identifier> messages) {
    auto run = [&](session& here) {
        parameters p;
        p.one(column::bytes, std::string_view(consumer)).many(column::uuid, messages, [](const identifier& id) {
            return id;
        });
        const pqxx::result rows = here.run(query::inbox_received, p);
        std::vector<bool> answers;
        for (std::size_t i = 0; i < compat::rows(rows); ++i) answers.push_back(reader(rows, i).flag());
        return answers;
    };
    co_return co_await core_.call<std::vector<bool>>(after_loss::again, run);
}

} // namespace holdfast::postgres
