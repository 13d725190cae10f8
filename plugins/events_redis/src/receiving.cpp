#include <holdfast/event_limits.hpp>
#include <holdfast/event_watchers.hpp>

#include "decode.hpp"
#include "transport.hpp"

namespace holdfast::events_redis {

using redis::access;
using redis::arguments;
using redis::call;
using redis::reply;

namespace {

void add_place(arguments& to, const delivery_lease* held) {
    lease_place place = place_of(held);
    to.add(place.position).add(std::move(place.subscription)).add(held == nullptr ? 0 : held->token());
}

} // namespace

task<result<std::vector<delivery>>> transport::receive(std::string subscription, int limit, duration lease_for,
                                                       std::string receiver) {
    if (auto fine = store_limits::check_receive(limit, lease_for); !fine) co_return std::unexpected(fine.error());
    arguments with;
    with.add(subscription).add(limit).add(lease_for).add(std::move(receiver));
    auto receiving = server_.run(script::receive, std::move(with), access::write);
    auto answer = co_await std::move(receiving);
    if (answer && answer->is_nil()) co_return std::unexpected(store_limits::no_subscription(subscription));
    const auto decode = [&](reply& from) {
        std::vector<delivery> all;
        for (reply& each : from.items) all.push_back(decode_delivery(each, subscription));
        return all;
    };
    co_return redis::decoded<std::vector<delivery>>(std::move(answer), decode);
}

task<result<std::vector<write_answer>>> transport::renew(std::span<const delivery_lease* const> held,
                                                         duration lease_for) {
    if (auto fine = store_limits::check_receive(1, lease_for); !fine) co_return std::unexpected(fine.error());
    if (held.empty()) co_return std::vector<write_answer>();
    arguments with;
    with.add(lease_for);
    for (const delivery_lease* each : held) add_place(with, each);
    co_return co_await call<std::vector<write_answer>>(server_, script::renew, std::move(with), access::write,
                                                       redis::decode_answers);
}

task<result<std::vector<write_answer>>> transport::settle(std::span<const delivery_settlement> which) {
    if (which.empty()) co_return std::vector<write_answer>();
    arguments with;
    for (const delivery_settlement& each : which) {
        add_place(with, each.held);
        with.add(static_cast<int>(each.how)).add(each.after).add(each.calls);
        with.add(each.error.type).add(each.error.message).add(each.error.stack);
    }
    co_return co_await call<std::vector<write_answer>>(server_, script::settle, std::move(with), access::write,
                                                       redis::decode_answers);
}

task<result<std::optional<duration>>> transport::next_due(std::string subscription) {
    arguments with;
    with.add(subscription);
    auto asking = server_.run(script::next_due, std::move(with), access::read);
    auto answer = co_await std::move(asking);
    if (!answer) co_return std::unexpected(std::move(answer.error()));
    if (answer->is_nil()) co_return std::unexpected(store_limits::no_subscription(subscription));
    if (answer->number < 0) co_return std::optional<duration>();
    co_return std::optional<duration>(std::chrono::microseconds(answer->number));
}

std::unique_ptr<event_watch> transport::watch(std::string subscription, std::function<void()> hint) {
    return to_event_watch(server_.hints().watch({std::move(subscription)}, std::move(hint)));
}

} // namespace holdfast::events_redis
