#include "event_settings.hpp"

#include <algorithm>

#include <holdfast/nearest.hpp>

#include "section.hpp"

namespace holdfast::detail {

namespace {

constexpr std::int64_t many = 1'000'000;

consumer_override read_override(settings& from, const config_table& table) {
    consumer_override read{.name = table.name, .where = table.where};
    if (from.has("concurrency")) read.concurrency = read_int(from, "concurrency", 1, 1, many);
    if (from.has("timeout")) read.timeout = from.time("timeout", {});
    if (from.has("policy")) read.policy = from.text("policy", "");
    if (from.has("inbox")) read.inbox = from.flag("inbox", true);
    if (from.has("remember")) read.remember = from.time("remember", {});
    if (from.has("max_crashes")) read.max_crashes = read_int(from, "max_crashes", 0, 0, many);
    if (from.has("from_start")) read.from_start = from.flag("from_start", false);
    return read;
}

void read_worker(event_worker_options& into, settings& from) {
    into.lease = from.positive_time("lease", into.lease);
    into.heartbeat = read_heartbeat(from, into.lease);
    into.poll = from.positive_time("poll", into.poll);
    into.sweep = from.positive_time("sweep", into.sweep);
    into.shutdown_grace = from.time("shutdown_grace", into.shutdown_grace);
    into.settle_wait = from.time("settle_wait", into.settle_wait);
    into.unknown_topic_delay = from.time("unknown_event_delay", into.unknown_topic_delay);
    into.batch = read_int(from, "batch", into.batch, 1, 10'000);
    into.name = from.text("name", "");
}

} // namespace

bool relay_settings::says_the_same_as(const relay_settings& other) const {
    return std::ranges::is_permutation(written, other.written, same_text);
}

bool consumer_settings::says_the_same_as(const consumer_settings& other) const {
    return std::ranges::is_permutation(written, other.written, same_text);
}

const consumer_override* consumer_settings::of(std::string_view consumer) const {
    const auto found = std::ranges::find(overrides, consumer, &consumer_override::name);
    return found == overrides.end() ? nullptr : &*found;
}

void consumer_override::apply_to(consumer_options& options) const {
    if (concurrency) options.concurrency = *concurrency;
    if (timeout) options.timeout = *timeout;
    if (policy) options.policy = *policy;
    if (inbox) options.inbox = *inbox;
    if (remember) options.remember = *remember;
    if (max_crashes) options.max_crashes = *max_crashes;
    if (from_start) options.from_start = *from_start;
}

result<relay_settings> read_relay_settings(const config_table& table) {
    relay_settings read;
    read.written = flatten(table);
    auto done = read_section(table, [&](settings& from) {
        read.work = from.flag("work", true);
        read.how.batch = read_int(from, "batch", read.how.batch, 1, 10'000);
        read.how.lease = from.positive_time("lease", read.how.lease);
        read.how.poll = from.positive_time("poll", read.how.poll);
        read.how.in_flight = read_int(from, "in_flight", read.how.in_flight, 1, 64);
        read.how.max_failures = read_int(from, "max_failures", read.how.max_failures, 1, many);
        read.how.name = from.text("name", "");
    });
    if (!done) return std::unexpected(std::move(done.error()));
    return read;
}

result<consumer_settings> read_consumer_settings(const config_table& table) {
    consumer_settings read;
    read.written = flatten(table);
    config_table own = table;
    own.tables.clear();
    auto done = read_section(own, [&](settings& from) {
        read.work = from.flag("work", true);
        read_worker(read.how, from);
    });
    for (const config_table& each : table.tables) {
        if (!done) break;
        done = read_section(each, [&](settings& from) { read.overrides.push_back(read_override(from, each)); });
    }
    if (!done) return std::unexpected(std::move(done.error()));
    return read;
}

} // namespace holdfast::detail
