#include "facets.hpp"

namespace holdfast::memory {

namespace {

result<void> check_key(std::string_view what, const std::string& key, std::string_view lasting, duration ttl) {
    if (auto fine = store_limits::check_key(what, key); !fine) return fine;
    return store_limits::check_time(lasting, ttl);
}

} // namespace

task<result<bool>> idempotency_facet::try_claim(std::string key, duration ttl, unit_of_work* in) {
    if (auto fine = check_key("idempotency key", key, "a claim", ttl); !fine) co_return std::unexpected(fine.error());
    co_return in_.run(
        in, [key = std::move(key), ttl](data& on, store_time now) { return on.keys.try_claim(key, ttl, now); },
        errc::duplicate);
}

task<result<begin_answer>> idempotency_facet::begin(begin_request request) {
    if (auto fine = store_limits::check(request); !fine) co_return std::unexpected(fine.error());
    co_return in_.run([&](data& on, store_time now) { return on.keys.begin(request, now); });
}

task<result<void>> idempotency_facet::complete(const idempotency_lease& held, payload answer, duration ttl,
                                               unit_of_work* in) {
    if (auto fine = store_limits::check_time("an answer", ttl); !fine) co_return fine;
    if (auto fine = store_limits::check_body("answer", answer.body, in_.max_payload()); !fine) co_return fine;
    co_return in_.run(
        in,
        [key = held.subject(), token = held.token(), answer = std::move(answer), ttl](data& on, store_time now) {
            return on.keys.complete(key, token, answer, ttl, now);
        },
        errc::stale_lease);
}

task<result<void>> idempotency_facet::abandon(const idempotency_lease& held) {
    co_return in_.run([&](data& on, store_time now) { return on.keys.abandon(held, now); });
}

task<result<void>> idempotency_facet::renew(const idempotency_lease& held, duration lease_for) {
    if (auto fine = store_limits::check_time("a lease", lease_for); !fine) co_return fine;
    co_return in_.run([&](data& on, store_time now) { return on.keys.renew(held, lease_for, now); });
}

task<result<std::optional<lock_lease>>> lock_facet::try_acquire(std::string resource, duration ttl) {
    if (auto fine = check_key("resource", resource, "a lock", ttl); !fine) co_return std::unexpected(fine.error());
    co_return in_.run([&](data& on, store_time now) { return on.locks.try_acquire(resource, ttl, now); });
}

task<result<void>> lock_facet::renew(const lock_lease& held, duration ttl) {
    if (auto fine = store_limits::check_time("a lock", ttl); !fine) co_return fine;
    co_return in_.run([&](data& on, store_time now) { return on.locks.renew(held, ttl, now); });
}

task<result<void>> lock_facet::release(const lock_lease& held) {
    co_return in_.run([&](data& on, store_time now) {
        on.locks.release(held, now);
        return result<void>();
    });
}

task<result<void>> outbox_facet::append(std::vector<outgoing_message> messages, unit_of_work* in) {
    if (auto fine = store_limits::check_all(messages, in_.max_payload()); !fine) co_return fine;
    co_return in_.run(
        in,
        [messages = std::move(messages)](data& on, store_time now) {
            on.messages.append(messages, now);
            return result<void>();
        },
        errc::duplicate);
}

task<result<std::vector<leased_message>>> outbox_facet::lease_batch(int limit, duration lease_for, std::string) {
    if (limit < 1) co_return fail(errc::invalid_argument, "a batch needs a limit of 1 or more");
    if (auto fine = store_limits::check_time("a lease", lease_for); !fine) co_return std::unexpected(fine.error());
    co_return in_.run([&](data& on, store_time now) { return on.messages.lease_batch(limit, lease_for, now); });
}

task<result<std::vector<write_answer>>> outbox_facet::delivered(std::span<const message_lease* const> sent) {
    co_return in_.run([&](data& on, store_time) { return on.messages.delivered(sent); });
}

task<result<std::vector<write_answer>>> outbox_facet::failed(std::span<const message_failure> which) {
    co_return in_.run([&](data& on, store_time now) { return on.messages.failed(which, now); });
}

task<result<std::vector<message_view>>> outbox_facet::set_aside(int limit, std::uint64_t after_position) {
    if (limit < 1) co_return fail(errc::invalid_argument, "a page needs a limit of 1 or more");
    co_return in_.run([&](data& on, store_time) { return on.messages.set_aside(limit, after_position); });
}

task<result<int>> outbox_facet::send_again(std::vector<identifier> which) {
    co_return in_.run([&](data& on, store_time now) { return on.messages.send_again(which, now); });
}

task<result<int>> outbox_facet::discard(std::vector<identifier> which) {
    co_return in_.run([&](data& on, store_time) { return on.messages.discard(which); });
}

task<result<std::uint64_t>> outbox_facet::unsent() {
    co_return in_.run([](data& on, store_time) { return on.messages.unsent(); });
}

task<result<bool>> outbox_facet::receive(std::string consumer, identifier message, duration ttl, unit_of_work* in) {
    if (auto fine = check_key("consumer", consumer, "a note in the inbox", ttl); !fine)
        co_return std::unexpected(fine.error());
    co_return in_.run(
        in,
        [consumer = std::move(consumer), message, ttl](data& on, store_time now) {
            return on.messages.receive(consumer, message, ttl, now);
        },
        errc::duplicate);
}

task<result<std::vector<bool>>> outbox_facet::received(std::string consumer, std::vector<identifier> messages) {
    co_return in_.run([&](data& on, store_time now) { return on.messages.received(consumer, messages, now); });
}

} // namespace holdfast::memory
