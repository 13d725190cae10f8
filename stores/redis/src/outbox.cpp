#include <holdfast/redis/texts.hpp>
#include <holdfast/store_limits.hpp>

#include "call.hpp"
#include "facets.hpp"

namespace holdfast::redis {

namespace {

std::vector<leased_message> to_leased(reply& from) {
    std::vector<leased_message> leased;
    for (reader r(from); r.more();) {
        auto [view, token] = decode_message(r.next());
        message_lease held(to_text(view.message.id), token);
        leased.push_back({std::move(held), view.position, view.attempts, std::move(view.message)});
    }
    return leased;
}
std::vector<message_view> to_views(reply& from) {
    std::vector<message_view> views;
    for (reader r(from); r.more();) views.push_back(decode_message(r.next()).first);
    return views;
}
arguments of(const std::vector<identifier>& ids) {
    arguments with;
    for (const identifier& each : ids) with.add(each);
    return with;
}
result<void> check_lease(const message_lease* held) {
    if (held != nullptr) return {};
    return fail(errc::invalid_argument, "redis: a lease is missing");
}

} // namespace

task<result<void>> outbox_facet::append(std::vector<outgoing_message> messages, unit_of_work* in) {
    if (auto ok = store_limits::check_all(messages, core_.how.max_payload); !ok) co_return ok;
    if (messages.empty()) co_return result<void>();
    arguments with;
    for (outgoing_message& each : messages)
        with.add(each.id)
            .add(std::move(each.topic))
            .add(std::move(each.key))
            .add(std::move(each.what))
            .add(encode(each.extra));
    co_return co_await call_in<void>(core_, in, "append", script::append, std::move(with), [](reply&) {});
}

task<result<std::vector<leased_message>>> outbox_facet::lease_batch(int limit, duration lease_for, std::string relay) {
    if (limit < 1) co_return fail(errc::invalid_argument, "a batch needs a limit of 1 or more");
    if (auto ok = store_limits::check_time("a lease", lease_for); !ok) co_return std::unexpected(ok.error());
    arguments with;
    with.add(limit).add(lease_for).add(std::move(relay));
    co_return co_await call<std::vector<leased_message>>(core_, script::lease_batch, std::move(with), access::write,
                                                         to_leased);
}

task<result<std::vector<write_answer>>> outbox_facet::delivered(std::span<const message_lease* const> sent) {
    if (sent.empty()) co_return std::vector<write_answer>();
    arguments with;
    for (const message_lease* each : sent) {
        if (auto ok = check_lease(each); !ok) co_return std::unexpected(ok.error());
        with.add(each);
    }
    co_return co_await call<std::vector<write_answer>>(core_, script::delivered, std::move(with), access::write,
                                                       decode_answers);
}

task<result<std::vector<write_answer>>> outbox_facet::failed(std::span<const message_failure> which) {
    if (which.empty()) co_return std::vector<write_answer>();
    arguments with;
    for (const message_failure& each : which) {
        if (auto ok = check_lease(each.held); !ok) co_return std::unexpected(ok.error());
        with.add(each.held).add(each.why).add(each.retry_after).add(each.set_aside);
    }
    co_return co_await call<std::vector<write_answer>>(core_, script::message_failed, std::move(with), access::write,
                                                       decode_answers);
}

task<result<std::vector<message_view>>> outbox_facet::set_aside(int limit, std::uint64_t after_position) {
    if (limit < 1) co_return fail(errc::invalid_argument, "a page needs a limit of 1 or more");
    arguments with;
    with.add(limit).add(after_position);
    co_return co_await call<std::vector<message_view>>(core_, script::set_aside, std::move(with), access::read,
                                                       to_views);
}

task<result<int>> outbox_facet::send_again(std::vector<identifier> which) {
    if (which.empty()) co_return 0;
    co_return co_await call<int>(core_, script::send_again, of(which), access::write, to_count);
}

task<result<int>> outbox_facet::discard(std::vector<identifier> which) {
    if (which.empty()) co_return 0;
    co_return co_await call<int>(core_, script::discard, of(which), access::write, to_count);
}

task<result<std::uint64_t>> outbox_facet::unsent() {
    co_return co_await call<std::uint64_t>(core_, script::unsent, {}, access::read,
                                           [](reply& r) { return static_cast<std::uint64_t>(r.number); });
}

task<result<bool>> outbox_facet::receive(std::string consumer, identifier message, duration ttl, unit_of_work* in) {
    if (auto ok = store_limits::check_key("consumer", consumer); !ok) co_return std::unexpected(ok.error());
    if (auto ok = store_limits::check_time("a note in the inbox", ttl); !ok) co_return std::unexpected(ok.error());
    arguments with;
    with.add(std::move(consumer)).add(message).add(ttl);
    co_return co_await call_in<bool>(core_, in, "receive", script::receive, std::move(with), to_flag);
}

task<result<std::vector<bool>>> outbox_facet::received(std::string consumer, std::vector<identifier> messages) {
    if (messages.empty()) co_return std::vector<bool>();
    arguments with;
    with.add(std::move(consumer));
    for (const identifier& each : messages) with.add(each);
    co_return co_await call<std::vector<bool>>(core_, script::received, std::move(with), access::read, [](reply& from) {
        std::vector<bool> answers;
        for (reader each(from); each.more();) answers.push_back(each.flag());
        return answers;
    });
}

} // namespace holdfast::redis
