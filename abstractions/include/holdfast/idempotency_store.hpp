// Remembers what was already done, by key, so that a repeated request gets the first one's answer and no second effect.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include <holdfast/duration.hpp>
#include <holdfast/error.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/payload.hpp>
#include <holdfast/task.hpp>
#include <holdfast/unit_of_work.hpp>

namespace holdfast {

struct of_idempotency;
using idempotency_lease = lease<of_idempotency>;

inline constexpr duration default_idempotency_ttl = std::chrono::hours{24};

struct begin_request {
    std::string key;
    std::string fingerprint;                      // of the request; the same key with another is a mismatch
    duration lease_for = std::chrono::minutes{1}; // after this a holder that did not complete is taken over
    duration keep_for = default_idempotency_ttl;  // how long an unfinished record is remembered
};

struct idempotency_started {
    idempotency_lease lease;
    bool taken_over = false; // an earlier holder began and never ended: its effect may or may not have happened
};
struct idempotency_in_progress {
    duration retry_after{}; // when its lease ends
};
struct idempotency_completed {
    payload result;
};
struct idempotency_mismatch {};

using begin_answer =
    std::variant<idempotency_started, idempotency_in_progress, idempotency_completed, idempotency_mismatch>;

// Every key is at most 1024 bytes. Any thread.
class idempotency_store {
public:
    // The short form: true for the first caller within ttl, false for every other.
    virtual task<result<bool>> try_claim(std::string key, duration ttl = default_idempotency_ttl,
                                         unit_of_work* in = nullptr) = 0;

    // The full form: exactly one of many callers is started; the token grows with every take-over.
    virtual task<result<begin_answer>> begin(begin_request request) = 0;
    // errc::stale_lease when somebody took over. The lease is spent either way but for errc::unavailable and
    // errc::unknown_outcome, after which the same call may be made again. Completing twice with the same lease is fine.
    virtual task<result<void>> complete(const idempotency_lease& held, payload answer,
                                        duration ttl = default_idempotency_ttl, unit_of_work* in = nullptr) = 0;
    // Forgets the key, so that the next caller starts afresh (with a higher token). errc::stale_lease as above.
    virtual task<result<void>> abandon(const idempotency_lease& held) = 0;
    // Holds on for longer.
    virtual task<result<void>> renew(const idempotency_lease& held, duration lease_for) = 0;

protected:
    ~idempotency_store() = default;
};

} // namespace holdfast
