// Transports of events from their plugin files, on an Asio runtime: what the tests of those with a server share.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <holdfast/event_transport.hpp>

#include "stores/support.hpp"

namespace holdfast::test {

using kind = delivery_settlement::kind;

inline std::unique_ptr<event_transport> open_transport(const std::string& plugin, runtime& on,
                                                       const text_settings& with) {
    return open_plugin<event_transport>("events_" + plugin, on, with);
}

// One prepared transport.
struct event_desk {
    event_desk(std::string which, text_settings settings) : plugin(std::move(which)), with(std::move(settings)) {
        kept = open_transport(plugin, on, with);
        await(kept->prepare());
    }
    event_desk(const event_desk&) = delete;
    event_desk& operator=(const event_desk&) = delete;

    // Another instance on the same data, prepared.
    std::unique_ptr<event_transport> another() {
        auto more = open_transport(plugin, on, with);
        await(more->prepare());
        return more;
    }

    // The value, or throws.
    template <class T>
    T await(task<result<T>> call) {
        return value_of(attempt(std::move(call)));
    }
    template <class T>
    result<T> attempt(task<result<T>> call) {
        return sync_wait(on, std::move(call));
    }
    // The error; the call must not go well.
    template <class T>
    error refusal(task<result<T>> call) {
        auto answer = attempt(std::move(call));
        if (answer) throw std::runtime_error("expected a refusal");
        return answer.error();
    }

    envelope message(std::string body = "{}", std::string key = {}) {
        return {ids.next(), "t", std::move(key), {"t", 1, "application/json", std::move(body)}, {{"h", "v"}}};
    }
    identifier add(std::string body = "{}", std::string key = {}) {
        envelope m = message(std::move(body), std::move(key));
        const identifier id = m.id;
        await(kept->publish({std::move(m)}));
        return id;
    }
    void subscribe(std::string name = "s") { await(kept->subscribe({std::move(name), {"t"}})); }
    std::vector<delivery> receive(int limit = 100, duration lease_for = std::chrono::minutes{1}) {
        return await(kept->receive("s", limit, lease_for, "r"));
    }
    delivery receive_one(duration lease_for = std::chrono::minutes{1}) {
        auto got = receive(1, lease_for);
        if (got.size() != 1) throw std::runtime_error("expected a message");
        return std::move(got.front());
    }
    // As soon as something is due, within ten seconds.
    std::vector<delivery> receive_soon(int limit = 100) {
        const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds{10};
        for (;;) {
            auto got = receive(limit);
            if (!got.empty() || std::chrono::steady_clock::now() >= give_up) return got;
            const auto wait = await(kept->next_due("s")).value_or(std::chrono::seconds{10});
            std::this_thread::sleep_for(std::min<duration>(wait, std::chrono::milliseconds{200}));
        }
    }
    static delivery_settlement how(const delivery& of, kind k, duration after = {}) {
        return {.held = &of.lease, .how = k, .after = after, .calls = 1, .error = {"e", "why", "where"}};
    }
    write_answer settle(const delivery& of, kind k = kind::acknowledge, duration after = {}) {
        const delivery_settlement one[] = {how(of, k, after)};
        return await(kept->settle(one)).at(0);
    }
    subscription_view view() { return await(kept->subscriptions()).at(0); }

    asio_runtime on{asio_options{}};
    identifier_source ids;
    std::string plugin;
    text_settings with;
    std::unique_ptr<event_transport> kept;
};

inline std::vector<std::string> bodies(const std::vector<delivery>& of) {
    std::vector<std::string> all;
    for (const delivery& each : of) all.push_back(each.message.what.body);
    return all;
}

} // namespace holdfast::test
