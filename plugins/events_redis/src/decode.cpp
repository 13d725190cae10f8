#include "decode.hpp"

#include <algorithm>
#include <charconv>

#include <holdfast/redis/texts.hpp>

namespace holdfast::events_redis {

using redis::reader;
using redis::reply;

namespace {

envelope decode_message(reader& from) {
    envelope message;
    message.id = from.id();
    message.topic = from.text();
    message.key = from.text();
    redis::take_what(from.text(), message.what, message.extra);
    return message;
}

} // namespace

lease_place place_of(const delivery_lease* held) {
    if (held == nullptr) return {};
    const std::string& text = held->subject();
    lease_place place;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), place.position);
    if (problem != std::errc{} || end == text.data() + text.size() || *end != ':') return {};
    place.subscription.assign(end + 1, text.data() + text.size());
    return place;
}

delivery decode_delivery(reply& from, const std::string& subscription) {
    reader r(from);
    const std::string position = r.text();
    delivery one{.lease = {position + ":" + subscription, r.token()}, .message = {}};
    one.position = static_cast<std::uint64_t>(redis::to_number(position));
    one.redeliveries = r.integer();
    one.crashes = r.integer();
    one.calls = r.integer();
    one.generation = r.integer();
    one.message = decode_message(r);
    return one;
}

std::pair<dead_message, std::string> decode_dead(reply& from) {
    reader r(from);
    dead_message one;
    one.subscription = r.text();
    one.position = r.token();
    one.died = store_time(std::chrono::microseconds(r.number()));
    one.redeliveries = r.integer();
    one.crashes = r.integer();
    one.calls = r.integer();
    one.generation = r.integer();
    one.error.type = r.text();
    one.error.message = r.text();
    one.error.stack = r.text();
    one.message = decode_message(r);
    std::string death = r.text();
    return {std::move(one), std::move(death)};
}

subscription_view decode_view(reply& from) {
    reader r(from);
    subscription_view view;
    view.name = r.text();
    for (reader topics(r.next()); topics.more();) view.topics.push_back(topics.text());
    std::ranges::sort(view.topics);
    const std::uint64_t open = r.token();
    view.leased = r.token();
    view.waiting = open - std::min(open, view.leased);
    view.dead = r.token();
    view.acknowledged = r.token();
    view.discarded = r.token();
    return view;
}

} // namespace holdfast::events_redis
