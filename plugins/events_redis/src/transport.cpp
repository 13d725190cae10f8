#include "transport.hpp"

#include <algorithm>

#include <holdfast/event_limits.hpp>
#include <holdfast/redis/texts.hpp>

#include "decode.hpp"

namespace holdfast::events_redis {

using redis::access;
using redis::arguments;
using redis::call;
using redis::reply;

namespace {

constexpr int step = 1000; // messages that a script may look at

} // namespace

transport_capabilities transport::capabilities() const {
    const redis::persistence keeps = server_.keeps();
    return {.writes_survive = keeps.writes_survive(), .loses = keeps.loses(), .shared = true};
}

task<result<void>> transport::prepare() {
    co_return co_await server_.blocking(&redis::scripted_server::prepare_now);
}

task<result<void>> transport::destroy() {
    co_return co_await server_.blocking(&redis::scripted_server::destroy_now);
}

task<result<store_time>> transport::now() {
    co_return co_await server_.blocking(&redis::scripted_server::time_now);
}

task<result<void>> transport::publish(std::vector<envelope> batch) {
    if (auto fine = store_limits::check_all(batch, how_.max_payload); !fine) co_return fine;
    if (batch.empty()) co_return result<void>();
    arguments with;
    with.add(how_.max_backlog);
    for (envelope& each : batch)
        with.add(each.id).add(std::move(each.topic)).add(std::move(each.key)).add(redis::encode(each.what, each.extra));
    auto publishing = server_.run(script::publish, std::move(with), access::write);
    auto answer = co_await std::move(publishing);
    if (!answer) co_return std::unexpected(std::move(answer.error()));
    if (answer->items.empty()) co_return result<void>();
    co_return std::unexpected(store_limits::overloaded(answer->items[0].text,
                                                       static_cast<std::uint64_t>(answer->items[1].number),
                                                       static_cast<std::uint64_t>(how_.max_backlog)));
}

task<result<void>> transport::subscribe(subscription what) {
    if (auto fine = store_limits::check(what); !fine) co_return fine;
    arguments with;
    with.add(what.name).add(what.from_start);
    for (std::string& each : what.topics) with.add(std::move(each));
    auto subscribing = server_.run(script::subscribe, std::move(with), access::write);
    auto more = co_await std::move(subscribing);
    while (more && more->number == 1) { // goes on where another one has stopped, if it has
        arguments next;
        next.add(what.name).add(step);
        auto filling = server_.run(script::fill, std::move(next), access::write);
        more = co_await std::move(filling);
    }
    if (!more) co_return std::unexpected(std::move(more.error()));
    co_return result<void>();
}

task<result<bool>> transport::unsubscribe(std::string name) {
    arguments with;
    with.add(std::move(name));
    co_return co_await call<bool>(server_, script::unsubscribe, std::move(with), access::write, redis::to_flag);
}

task<result<std::vector<subscription_view>>> transport::subscriptions() {
    const auto decode = [](reply& from) {
        std::vector<subscription_view> all;
        for (reply& each : from.items) all.push_back(decode_view(each));
        std::ranges::sort(all, {}, &subscription_view::name);
        return all;
    };
    co_return co_await call<std::vector<subscription_view>>(server_, script::subscriptions, {}, access::read, decode);
}

task<result<std::uint64_t>> transport::replay(std::string subscription, replay_point from) {
    std::uint64_t count = 0;
    std::uint64_t next = std::clamp<std::uint64_t>(from.position.value_or(1), 1, redis::most_microseconds);
    std::uint64_t last = 0; // what is published meanwhile is none of ours
    while (next != 0) {
        arguments with;
        with.add(subscription).add(next).add(last);
        with.add(from.time.value_or(store_time()).time_since_epoch().count()).add(step);
        auto replaying = server_.run(script::replay, std::move(with), access::write);
        auto answer = co_await std::move(replaying);
        if (!answer) co_return std::unexpected(std::move(answer.error()));
        if (answer->is_nil()) co_return std::unexpected(store_limits::no_subscription(subscription));
        redis::reader r(*answer);
        count += r.token();
        next = r.token();
        last = r.token();
    }
    co_return count;
}

task<result<int>> transport::sweep(int limit) {
    if (limit < 1) co_return fail(errc::invalid_argument, "a sweep needs a limit of 1 or more");
    arguments with;
    with.add(how_.keep).add(std::min(limit, 10 * step));
    co_return co_await call<int>(server_, script::sweep, std::move(with), access::write, redis::to_count);
}

} // namespace holdfast::events_redis
