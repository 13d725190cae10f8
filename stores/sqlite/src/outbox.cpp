#include "facets.hpp"
#include "outbox_calls.hpp"

namespace holdfast::sqlite {

namespace {

result<void> check_limit(int limit) {
    if (limit > 0) return {};
    return fail(errc::invalid_argument, "the limit is " + std::to_string(limit) + ", it must be 1 or more");
}

} // namespace

task<result<void>> outbox_facet::append(std::vector<outgoing_message> messages, unit_of_work* in) {
    if (auto ok = store_limits::check_all(messages, core_.how.max_payload); !ok) co_return ok;
    co_return co_await write(core_, in, [&](session& s) { sqlite::append(s, messages); });
}

task<result<std::vector<leased_message>>> outbox_facet::lease_batch(int limit, duration lease_for, std::string relay) {
    if (auto ok = check_limit(limit); !ok) co_return std::unexpected(ok.error());
    if (auto ok = store_limits::check_time("a lease", lease_for); !ok) co_return std::unexpected(ok.error());
    co_return co_await write(core_, nullptr,
                             [&](session& s) { return sqlite::lease_batch(s, limit, lease_for, relay); });
}

task<result<std::vector<write_answer>>> outbox_facet::delivered(std::span<const message_lease* const> sent) {
    co_return co_await write(core_, nullptr, [=](session& s) { return note_delivered(s, sent); });
}

task<result<std::vector<write_answer>>> outbox_facet::failed(std::span<const message_failure> which) {
    co_return co_await write(core_, nullptr, [=](session& s) { return note_failed(s, which); });
}

task<result<std::vector<message_view>>> outbox_facet::set_aside(int limit, std::uint64_t after_position) {
    if (auto ok = check_limit(limit); !ok) co_return std::unexpected(ok.error());
    co_return co_await read(core_, [=](session& s) { return list_set_aside(s, limit, after_position); });
}

task<result<int>> outbox_facet::send_again(std::vector<identifier> which) {
    co_return co_await write(core_, nullptr, [&](session& s) { return sqlite::send_again(s, which); });
}

task<result<int>> outbox_facet::discard(std::vector<identifier> which) {
    co_return co_await write(core_, nullptr, [&](session& s) { return sqlite::discard(s, which); });
}

task<result<std::uint64_t>> outbox_facet::unsent() {
    co_return co_await read(core_, [](session& s) { return count_unsent(s); });
}

task<result<bool>> outbox_facet::receive(std::string consumer, identifier message, duration ttl, unit_of_work* in) {
    if (auto ok = store_limits::check_key("consumer", consumer); !ok) co_return std::unexpected(ok.error());
    if (auto ok = store_limits::check_time("a note in the inbox", ttl); !ok) co_return std::unexpected(ok.error());
    co_return co_await write(core_, in, [&](session& s) {
        return s.exec(query::inbox_receive, bytes{consumer}, message, after(s.now(), ttl), s.now()) > 0;
    });
}

task<result<std::vector<bool>>> outbox_facet::received(std::string consumer, std::vector<identifier> messages) {
    co_return co_await read(core_, [&](session& s) {
        std::vector<bool> answers;
        for (const identifier& each : messages)
            answers.push_back(s.any(s.run(query::inbox_received, bytes{consumer}, each, s.now())));
        return answers;
    });
}

} // namespace holdfast::sqlite
