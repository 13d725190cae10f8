#include "facets.hpp"

namespace holdfast::sqlite {

task<result<std::optional<lock_lease>>> lock_facet::try_acquire(std::string resource, duration ttl) {
    if (auto ok = store_limits::check_key("resource", resource); !ok) co_return std::unexpected(ok.error());
    if (auto ok = store_limits::check_time("a lock", ttl); !ok) co_return std::unexpected(ok.error());
    co_return co_await write(core_, nullptr, [&](session& s) -> std::optional<lock_lease> {
        const std::uint64_t token = s.next_token();
        if (s.exec(query::lock_take, bytes{resource}, token, after(s.now(), ttl), s.now()) == 0) return std::nullopt;
        return lock_lease(resource, token);
    });
}

task<result<void>> lock_facet::renew(const lock_lease& held, duration ttl) {
    if (auto ok = store_limits::check_time("a lock", ttl); !ok) co_return std::unexpected(ok.error());
    co_return co_await write(core_, nullptr, [&](session& s) {
        if (s.exec(query::lock_renew, bytes{held.subject()}, held.token(), after(s.now(), ttl), s.now()) == 0)
            throw failed({errc::stale_lease, "sqlite: the lock was lost", {}});
    });
}

task<result<void>> lock_facet::release(const lock_lease& held) {
    co_return co_await write(core_, nullptr,
                             [&](session& s) { s.exec(query::lock_release, bytes{held.subject()}, held.token()); });
}

} // namespace holdfast::sqlite
