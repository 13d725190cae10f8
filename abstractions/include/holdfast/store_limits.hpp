// For store authors: the limits that every store keeps, checked before anything is written. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <holdfast/error.hpp>
#include <holdfast/idempotency_store.hpp>
#include <holdfast/job_store.hpp>
#include <holdfast/outbox_store.hpp>
#include <holdfast/payload.hpp>

namespace holdfast::store_limits {

inline constexpr std::size_t max_name = 1024;
inline constexpr std::size_t default_max_payload = 10u << 20;

// Well-formed UTF-8; NUL is a character like any other.
constexpr bool is_utf8(std::string_view bytes) noexcept {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
    for (std::size_t i = 0; i < bytes.size();) {
        const unsigned first = byte(i);
        if (first < 0x80) {
            ++i;
            continue;
        }
        const std::size_t size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
        if (first < 0xC2 || first > 0xF4 || i + size > bytes.size()) return false;
        std::uint32_t point = first & (0xFFu >> (size + 1));
        for (std::size_t k = 1; k < size; ++k) {
            if ((byte(i + k) & 0xC0) != 0x80) return false;
            point = (point << 6) | (byte(i + k) & 0x3Fu);
        }
        const std::uint32_t least = size == 4 ? 0x10000 : size == 3 ? 0x800 : 0x80;
        if (point < least || point > 0x10FFFF || (point >= 0xD800 && point <= 0xDFFF)) return false;
        i += size;
    }
    return true;
}

// The same without NUL.
constexpr bool is_text(std::string_view bytes) noexcept {
    return bytes.find('\0') == std::string_view::npos && is_utf8(bytes);
}

// Any bytes, at least one. `what` names it in the message.
inline result<void> check_key(std::string_view what, std::string_view key) {
    if (key.empty()) return fail(errc::invalid_argument, "the " + std::string(what) + " is empty");
    if (key.size() <= max_name) return {};
    return fail(errc::too_large, "the " + std::string(what) + " has " + std::to_string(key.size()) +
                                     " bytes, at most " + std::to_string(max_name) + " are allowed");
}

// A key that is text: queue, type, topic.
inline result<void> check_name(std::string_view what, std::string_view name) {
    if (auto sized = check_key(what, name); !sized) return sized;
    if (is_text(name)) return {};
    return fail(errc::invalid_argument, "the " + std::string(what) + " is not UTF-8 text, or has a NUL in it");
}

inline result<void> check_body(std::string_view what, std::string_view body, std::size_t most) {
    if (body.size() <= most) return {};
    return fail(errc::too_large, "the " + std::string(what) + " has " + std::to_string(body.size()) +
                                     " bytes, max_payload allows " + std::to_string(most));
}

// How long a lease, a lock, an answer or a note is to last. `what` names it in the message.
inline result<void> check_time(std::string_view what, duration lasts) {
    if (lasts > duration::zero()) return {};
    return fail(errc::invalid_argument, std::string(what) + " must last longer than 0");
}

inline result<void> check(const new_job& job, std::size_t max_payload) {
    if (!job.id) return fail(errc::invalid_argument, "the job has no id");
    if (auto ok = check_name("job type", job.what.type); !ok) return ok;
    if (auto ok = check_name("queue", job.queue); !ok) return ok;
    if (job.unique_key)
        if (auto ok = check_key("unique key", *job.unique_key); !ok) return ok;
    if (job.max_attempts < 1 || job.max_attempts > 100)
        return fail(errc::invalid_argument,
                    "max_attempts is " + std::to_string(job.max_attempts) + ", it may be 1 to 100");
    if (job.max_crashes < 0)
        return fail(errc::invalid_argument,
                    "max_crashes is " + std::to_string(job.max_crashes) + ", it may not be negative");
    return check_body("job's body", job.what.body, max_payload);
}

inline result<void> check(const claim_request& request) {
    if (request.limit < 1) return fail(errc::invalid_argument, "a claim needs a limit of 1 or more");
    return check_time("a lease", request.lease_for);
}

inline result<void> check(const outgoing_message& message, std::size_t max_payload) {
    if (!message.id) return fail(errc::invalid_argument, "the message has no id");
    if (auto ok = check_name("topic", message.topic); !ok) return ok;
    if (!message.key.empty())
        if (auto ok = check_key("message key", message.key); !ok) return ok;
    return check_body("message's body", message.what.body, max_payload);
}

inline result<void> check(const begin_request& request) {
    if (auto ok = check_key("idempotency key", request.key); !ok) return ok;
    return check_time("a lease", request.lease_for);
}

// One bad element refuses the whole batch.
template <class Batch>
result<void> check_all(const Batch& batch, std::size_t max_payload) {
    for (const auto& each : batch)
        if (auto ok = check(each, max_payload); !ok) return ok;
    return {};
}

} // namespace holdfast::store_limits
