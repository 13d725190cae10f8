#include <holdfast/postgres/naming.hpp>
#include <holdfast/store_limits.hpp>

#include "facets.hpp"
#include "rows.hpp"

namespace holdfast::postgres {

namespace {

parameters key_and_token(const std::string& key, std::uint64_t token) {
    parameters p;
    p.one(column::bytes, std::string_view(key)).one(column::int8, static_cast<std::int64_t>(token));
    return p;
}

std::unexpected<error> stale(std::string_view what) {
    return fail(errc::stale_lease, "the lease on this " + std::string(what) + " was lost");
}

} // namespace

task<result<std::optional<lock_lease>>> locks::try_acquire(std::string resource, duration ttl) {
    if (auto ok = store_limits::check_key("resource", resource); !ok) co_return std::unexpected(std::move(ok.error()));
    if (auto ok = store_limits::check_time("a lock", ttl); !ok) co_return std::unexpected(ok.error());
    core_.sweeping.now_and_then();
    auto run = [&](session& here) -> std::optional<lock_lease> {
        parameters p;
        p.one(column::bytes, std::string_view(resource)).one(column::int8, micros(ttl));
        p.one(column::int8, advisory_number(core_.how().name, "lock", resource));
        const auto token = reader(here.run(query::lock_acquire, p), 0).optional_integer();
        if (!token) return std::nullopt;
        return lock_lease(resource, static_cast<std::uint64_t>(*token));
    };
    co_return co_await core_.call<std::optional<lock_lease>>(after_loss::unknown, run);
}

task<result<void>> locks::renew(const lock_lease& held, duration ttl) {
    if (auto ok = store_limits::check_time("a lock", ttl); !ok) co_return std::unexpected(ok.error());
    auto run = [&](session& here) {
        parameters p = key_and_token(held.subject(), held.token());
        p.one(column::int8, micros(ttl));
        return compat::rows(here.run(query::lock_renew, p)) > 0;
    };
    const auto done = co_await core_.call<bool>(after_loss::again, run);
    if (!done) co_return std::unexpected(done.error());
    if (!*done) co_return stale("lock");
    co_return result<void>{};
}

task<result<void>> locks::release(const lock_lease& held) {
    auto run = [&](session& here) { here.run(query::lock_release, key_and_token(held.subject(), held.token())); };
    co_return co_await core_.call<void>(after_loss::again, run);
}

task<result<bool>> idempotency::try_claim(std::string key, duration ttl, unit_of_work* in) {
    if (auto ok = store_limits::check_key("idempotency key", key); !ok)
        co_return std::unexpected(std::move(ok.error()));
    if (auto ok = store_limits::check_time("a claim", ttl); !ok) co_return std::unexpected(ok.error());
    core_.sweeping.now_and_then();
    auto run = [&](session& here) {
        parameters p;
        p.one(column::bytes, std::string_view(key)).one(column::int8, micros(ttl));
        return compat::rows(here.run(query::try_claim, p)) > 0;
    };
    co_return co_await core_.call<bool>(after_loss::unknown, run, in);
}

task<result<begin_answer>> idempotency::begin(begin_request request) {
    if (auto ok = store_limits::check(request); !ok) co_return std::unexpected(std::move(ok.error()));
    core_.sweeping.now_and_then();
    auto run = [&](session& here) -> begin_answer {
        parameters p;
        p.one(column::bytes, std::string_view(request.key)).one(column::bytes, std::string_view(request.fingerprint));
        p.one(column::int8, micros(request.lease_for)).one(column::int8, micros(request.keep_for));
        p.one(column::int8, advisory_number(core_.how().name, "idempotency", request.key));
        const pqxx::result rows = here.run(query::idempotency_begin, p);
        reader cells(rows, 0);
        const std::int64_t outcome = cells.integer();
        const auto token = cells.optional_integer();
        const bool taken_over = cells.flag();
        const auto wait = cells.optional_integer();
        switch (outcome) {
        case 0:
            return idempotency_started{idempotency_lease(request.key, static_cast<std::uint64_t>(token.value_or(0))),
                                       taken_over};
        case 1: return idempotency_in_progress{std::chrono::microseconds{wait.value_or(0)}};
        case 3: return idempotency_mismatch{};
        default: break;
        }
        payload stored;
        stored.type = cells.bytes();
        stored.version = cells.small();
        stored.content_type = cells.bytes();
        stored.body = cells.bytes();
        return idempotency_completed{std::move(stored)};
    };
    co_return co_await core_.call<begin_answer>(after_loss::unknown, run);
}

task<result<void>> idempotency::complete(const idempotency_lease& held, payload answer, duration ttl,
                                         unit_of_work* in) {
    if (auto ok = store_limits::check_body("answer's body", answer.body, core_.how().max_payload); !ok) co_return ok;
    if (auto ok = store_limits::check_time("an answer", ttl); !ok) co_return ok;
    auto run = [&](session& here) {
        parameters p = key_and_token(held.subject(), held.token());
        p.one(column::int8, micros(ttl)).one(column::bytes, std::string_view(answer.type));
        p.one(column::int4, answer.version).one(column::bytes, std::string_view(answer.content_type));
        p.one(column::bytes, std::string_view(answer.body));
        return compat::rows(here.run(query::idempotency_complete, p)) > 0;
    };
    const auto done = co_await core_.call<bool>(after_loss::again, run, in);
    if (!done) co_return std::unexpected(done.error());
    if (!*done) co_return stale("idempotency key");
    co_return result<void>{};
}

task<result<void>> idempotency::abandon(const idempotency_lease& held) {
    auto run = [&](session& here) {
        const bool found =
            compat::rows(here.run(query::idempotency_abandon, key_and_token(held.subject(), held.token()))) > 0;
        return found || here.retried(); // the first try may have done it
    };
    const auto done = co_await core_.call<bool>(after_loss::again, run);
    if (!done) co_return std::unexpected(done.error());
    if (!*done) co_return stale("idempotency key");
    co_return result<void>{};
}

task<result<void>> idempotency::renew(const idempotency_lease& held, duration lease_for) {
    if (auto ok = store_limits::check_time("a lease", lease_for); !ok) co_return std::unexpected(ok.error());
    auto run = [&](session& here) {
        parameters p = key_and_token(held.subject(), held.token());
        p.one(column::int8, micros(lease_for));
        return compat::rows(here.run(query::idempotency_renew, p)) > 0;
    };
    const auto done = co_await core_.call<bool>(after_loss::again, run);
    if (!done) co_return std::unexpected(done.error());
    if (!*done) co_return stale("idempotency key");
    co_return result<void>{};
}

} // namespace holdfast::postgres
