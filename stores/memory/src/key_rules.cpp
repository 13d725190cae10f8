#include "key_rules.hpp"

#include <algorithm>

#include <holdfast/runtime_clock.hpp>

namespace holdfast::memory {

namespace {

std::unexpected<error> stale(const std::string& what) {
    return fail(errc::stale_lease, "the lease on " + what + " was lost");
}

} // namespace

bool key_rules::try_claim(const std::string& key, duration ttl, store_time now) {
    if (claims_.find(key, now) != nullptr) return false;
    claims_.put(key, true, now + in_store_time(ttl), now);
    return true;
}

begin_answer key_rules::begin(const begin_request& request, store_time now) {
    const entry* found = keys_.find(request.key, now);
    if (found != nullptr && found->fingerprint != request.fingerprint) return idempotency_mismatch{};
    if (found != nullptr && found->answer) return idempotency_completed{*found->answer};
    if (found != nullptr && found->leased_until > now) return idempotency_in_progress{found->leased_until - now};
    const bool taken_over = found != nullptr;
    const std::uint64_t token = tokens_.next();
    const store_time until = now + in_store_time(request.lease_for);
    const store_time kept = std::max(until, now + in_store_time(request.keep_for));
    keys_.put(request.key, {request.fingerprint, token, until, kept, std::nullopt}, kept, now);
    return idempotency_started{idempotency_lease(request.key, token), taken_over};
}

const key_rules::entry* key_rules::held_by(const std::string& key, std::uint64_t token, store_time now) const {
    const entry* found = keys_.find(key, now);
    return found != nullptr && found->token == token ? found : nullptr;
}

result<void> key_rules::complete(const std::string& key, std::uint64_t token, const payload& answer, duration ttl,
                                 store_time now) {
    const entry* found = held_by(key, token, now);
    if (found == nullptr) return stale("an idempotency key");
    if (found->answer) return {}; // by the same lease: said twice
    entry ended = *found;
    ended.answer = answer;
    keys_.put(key, std::move(ended), now + in_store_time(ttl), now);
    return {};
}

result<void> key_rules::abandon(const idempotency_lease& held, store_time now) {
    const entry* found = held_by(held.subject(), held.token(), now);
    if (found == nullptr || found->answer) return stale("an idempotency key");
    keys_.erase(held.subject());
    return {};
}

result<void> key_rules::renew(const idempotency_lease& held, duration lease_for, store_time now) {
    const entry* found = held_by(held.subject(), held.token(), now);
    if (found == nullptr || found->answer) return stale("an idempotency key");
    entry renewed = *found;
    renewed.leased_until = now + in_store_time(lease_for);
    renewed.kept_until = std::max(renewed.kept_until, renewed.leased_until);
    keys_.put(held.subject(), renewed, renewed.kept_until, now);
    return {};
}

void key_rules::clear() {
    claims_.clear();
    keys_.clear();
}

std::optional<lock_lease> lock_rules::try_acquire(const std::string& resource, duration ttl, store_time now) {
    if (locks_.find(resource, now) != nullptr) return std::nullopt;
    const std::uint64_t token = tokens_.next();
    locks_.put(resource, token, now + in_store_time(ttl), now);
    return lock_lease(resource, token);
}

result<void> lock_rules::renew(const lock_lease& held, duration ttl, store_time now) {
    const std::uint64_t* token = locks_.find(held.subject(), now);
    if (token == nullptr || *token != held.token()) return stale("a lock");
    locks_.put(held.subject(), held.token(), now + in_store_time(ttl), now);
    return {};
}

void lock_rules::release(const lock_lease& held, store_time now) {
    const std::uint64_t* token = locks_.find(held.subject(), now);
    if (token != nullptr && *token == held.token()) locks_.erase(held.subject());
}

} // namespace holdfast::memory
