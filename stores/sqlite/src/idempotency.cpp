#include <algorithm>

#include "facets.hpp"

namespace holdfast::sqlite {

namespace {

struct begun {
    bool done = false;
    std::string fingerprint;
    store_time leased{};
    store_time expires{};
    payload answer;
};

std::optional<begun> look(session& s, const std::string& key) {
    auto row = s.run(query::begin_look, bytes{key});
    if (!row.step()) return std::nullopt;
    begun b;
    row.read(b.done, b.fingerprint, b.leased, b.expires, b.answer.type, b.answer.version, b.answer.content_type,
             b.answer.body);
    if (b.expires <= s.now()) return std::nullopt;
    return b;
}

begin_answer begin_work(session& s, const begin_request& request) {
    auto earlier = look(s, request.key);
    if (earlier && earlier->fingerprint != request.fingerprint) return idempotency_mismatch{};
    if (earlier && earlier->done) return idempotency_completed{std::move(earlier->answer)};
    if (earlier && earlier->leased > s.now()) return idempotency_in_progress{earlier->leased - s.now()};
    const std::uint64_t token = s.next_token();
    const store_time leased = after(s.now(), request.lease_for);
    s.exec(query::begin_write, bytes{request.key}, token, bytes{request.fingerprint}, leased,
           std::max(leased, after(s.now(), request.keep_for)));
    return idempotency_started{idempotency_lease(request.key, token), earlier.has_value()};
}

void owner_only(int changed) {
    if (changed == 0)
        throw failed({errc::stale_lease, "sqlite: somebody else has begun this since, or it has ended", {}});
}

} // namespace

task<result<bool>> idempotency_facet::try_claim(std::string key, duration ttl, unit_of_work* in) {
    if (auto ok = store_limits::check_key("idempotency key", key); !ok) co_return std::unexpected(ok.error());
    if (auto ok = store_limits::check_time("a claim", ttl); !ok) co_return std::unexpected(ok.error());
    co_return co_await write(
        core_, in, [&](session& s) { return s.exec(query::claim_key, bytes{key}, after(s.now(), ttl), s.now()) > 0; });
}

task<result<begin_answer>> idempotency_facet::begin(begin_request request) {
    if (auto ok = store_limits::check(request); !ok) co_return std::unexpected(ok.error());
    co_return co_await write(core_, nullptr, [&](session& s) { return begin_work(s, request); });
}

task<result<void>> idempotency_facet::complete(const idempotency_lease& held, payload answer, duration ttl,
                                               unit_of_work* in) {
    if (auto ok = store_limits::check_body("answer", answer.body, core_.how.max_payload); !ok) co_return ok;
    if (auto ok = store_limits::check_time("an answer", ttl); !ok) co_return ok;
    co_return co_await write(core_, in, [&](session& s) {
        // Once more by the same holder: what is there stays.
        if (s.any(s.run(query::begin_completed, bytes{held.subject()}, held.token(), s.now()))) return;
        owner_only(s.exec(query::begin_complete, bytes{held.subject()}, held.token(), after(s.now(), ttl), answer.type,
                          answer.version, answer.content_type, bytes{answer.body}, s.now()));
    });
}

task<result<void>> idempotency_facet::abandon(const idempotency_lease& held) {
    co_return co_await write(core_, nullptr, [&](session& s) {
        owner_only(s.exec(query::begin_abandon, bytes{held.subject()}, held.token(), s.now()));
    });
}

task<result<void>> idempotency_facet::renew(const idempotency_lease& held, duration lease_for) {
    if (auto ok = store_limits::check_time("a lease", lease_for); !ok) co_return std::unexpected(ok.error());
    co_return co_await write(core_, nullptr, [&](session& s) {
        owner_only(s.exec(query::begin_renew, bytes{held.subject()}, held.token(), after(s.now(), lease_for), s.now()));
    });
}

} // namespace holdfast::sqlite
