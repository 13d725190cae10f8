// Idempotency keys and locks as plain functions of a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <holdfast/idempotency_store.hpp>
#include <holdfast/lock_store.hpp>

#include "expiring_map.hpp"
#include "token_series.hpp"

namespace holdfast::memory {

class key_rules {
public:
    key_rules(journal& undo, token_series& tokens) : claims_(undo), keys_(undo), tokens_(tokens) {}

    bool try_claim(const std::string& key, duration ttl, store_time now);
    begin_answer begin(const begin_request& request, store_time now);
    result<void> complete(const std::string& key, std::uint64_t token, const payload& answer, duration ttl,
                          store_time now);
    result<void> abandon(const idempotency_lease& held, store_time now);
    result<void> renew(const idempotency_lease& held, duration lease_for, store_time now);
    void clear();

private:
    struct entry {
        std::string fingerprint;
        std::uint64_t token = 0;
        store_time leased_until{};
        store_time kept_until{};
        std::optional<payload> answer;
    };

    const entry* held_by(const std::string& key, std::uint64_t token, store_time now) const;

    expiring_map<std::string, bool> claims_;
    expiring_map<std::string, entry> keys_;
    token_series& tokens_;
};

class lock_rules {
public:
    lock_rules(journal& undo, token_series& tokens) : locks_(undo), tokens_(tokens) {}

    std::optional<lock_lease> try_acquire(const std::string& resource, duration ttl, store_time now);
    result<void> renew(const lock_lease& held, duration ttl, store_time now);
    void release(const lock_lease& held, store_time now);
    void clear() { locks_.clear(); }

private:
    expiring_map<std::string, std::uint64_t> locks_; // tokens by resource
    token_series& tokens_;
};

} // namespace holdfast::memory
