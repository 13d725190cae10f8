#include <holdfast/store_limits.hpp>

#include "call.hpp"
#include "facets.hpp"

namespace holdfast::redis {

task<result<std::optional<lock_lease>>> lock_facet::try_acquire(std::string resource, duration ttl) {
    if (auto ok = store_limits::check_key("resource", resource); !ok) co_return std::unexpected(ok.error());
    if (auto ok = check_lock_time(ttl); !ok) co_return std::unexpected(ok.error());
    arguments with;
    with.add(resource).add(ttl);
    const auto token = co_await call<std::string>(core_, script::lock_acquire, std::move(with), access::write,
                                                  [](reply& r) { return std::move(r.text); });
    if (!token) co_return std::unexpected(token.error());
    if (token->empty()) co_return std::optional<lock_lease>();
    co_return std::optional<lock_lease>(lock_lease(std::move(resource), std::stoull(*token)));
}

task<result<void>> lock_facet::renew(const lock_lease& held, duration ttl) {
    if (auto ok = check_lock_time(ttl); !ok) co_return ok;
    arguments with;
    with.add(&held).add(ttl);
    co_return co_await call<void>(core_, script::lock_renew, std::move(with), access::write, owner_only);
}

task<result<void>> lock_facet::release(const lock_lease& held) {
    arguments with;
    with.add(&held);
    co_return co_await call<void>(core_, script::lock_release, std::move(with), access::write, [](reply&) {});
}

} // namespace holdfast::redis
