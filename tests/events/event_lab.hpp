// Everything that events need on the simulated runtime, with the memory store and the memory transport.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <holdfast/engine.hpp>
#include <holdfast/event_relay.hpp>
#include <holdfast/event_worker.hpp>
#include <holdfast/simulated_runtime.hpp>
#include <holdfast/store.hpp>
#include <holdfast/sync_wait.hpp>

#include "jobs/kept_log.hpp"
#include "memory_store.hpp"
#include "memory_transport.hpp"

namespace holdfast::test {

// A consumer whose handler is any function, made at run time.
class any_consumer final : public event_consumer {
public:
    using handler = std::function<task<result<void>>(const envelope&, event_context&, unit_of_work*)>;
    any_consumer(std::string name, std::string topic, handler run, consumer_options how, bool unit)
        : name_(std::move(name)), topic_(std::move(topic)), run_(std::move(run)), how_(std::move(how)), unit_(unit) {}

    std::string_view name() const noexcept override { return name_; }
    std::string_view topic() const noexcept override { return topic_; }
    const consumer_options& options() const noexcept override { return how_; }
    bool wants_unit() const noexcept override { return unit_; }
    task<result<void>> run(const envelope& what, event_context& context, unit_opener* units) override {
        unit_of_work* unit = nullptr;
        if (units != nullptr) {
            auto opening = units->open();
            const auto opened = co_await std::move(opening);
            if (!opened) co_return std::unexpected(opened.error());
            if (*opened == nullptr) co_return result<void>{};
            unit = *opened;
        }
        auto running = run_(what, context, unit);
        co_return co_await std::move(running);
    }

private:
    const std::string name_;
    const std::string topic_;
    handler run_;
    const consumer_options how_;
    const bool unit_;
};

inline task<result<void>> ended_well() {
    co_return result<void>{};
}
inline task<result<void>> slept(event_context& c, duration d) {
    co_await sleep_for(c.runtime(), d, c.stop_token());
    if (c.stop_token().stop_requested()) throw operation_cancelled();
    co_return result<void>{};
}
// Does not look at its token.
inline task<result<void>> slept_deaf(event_context& c, duration d) {
    co_await sleep_for(c.runtime(), d);
    co_return result<void>{};
}

struct event_lab {
    explicit event_lab(std::uint64_t order = 0)
        : on(order), made(on, 7), held(memory::make_store({}, &on)), kept(events_memory::make_transport({}, &on)) {}
    ~event_lab() { stop(); }

    event_transport& transport() { return over_transport != nullptr ? *over_transport : *kept; }
    store& the_store() { return over_store != nullptr ? *over_store : *held; }

    template <class T>
    T await(task<result<T>> call) {
        auto answer = sync_wait(on, std::move(call));
        if (!answer) throw failed(answer.error());
        if constexpr (!std::is_void_v<T>) return std::move(*answer);
    }

    // Consumers of "orders" named "billing", unless told otherwise.
    void consume(any_consumer::handler run, consumer_options how = {}, std::string name = "billing",
                 std::string topic = "orders") {
        add(std::make_unique<any_consumer>(std::move(name), std::move(topic), std::move(run), std::move(how), false));
    }
    void consume_in_unit(any_consumer::handler run, consumer_options how = {}, std::string name = "billing") {
        add(std::make_unique<any_consumer>(std::move(name), "orders", std::move(run), std::move(how), true));
    }
    void add(std::unique_ptr<event_consumer> one) {
        if (auto added = consumers.add(std::move(one)); !added) throw failed(added.error());
    }

    event_worker& start(event_worker_options how = {}) {
        if (how.name.empty()) how.name = "lab";
        worker.emplace(
            event_worker_parts{on, transport(), has_inbox ? &the_store() : nullptr, consumers, log, &made.policies()},
            std::move(how), 11);
        if (auto started = worker->start(); !started) throw failed(started.error());
        on.run_ready();
        return *worker;
    }
    event_relay& relay(relay_options how = {}) {
        if (how.name.empty()) how.name = "lab";
        sender.emplace(relay_parts{on, *the_store().outbox(), transport(), log}, std::move(how), 12);
        if (auto started = sender->start(); !started) throw failed(started.error());
        return *sender;
    }
    void stop(std::optional<duration> grace = std::nullopt) {
        if (sender) sync_wait(on, sender->stop());
        if (worker) sync_wait(on, worker->stop(grace));
    }

    envelope message(std::string key = {}, std::string body = "{}", std::string topic = "orders") {
        return {ids.next(std::chrono::system_clock::time_point(std::chrono::milliseconds(++made_ids))),
                std::move(topic),
                std::move(key),
                {.type = "orders", .body = std::move(body)},
                {}};
    }
    // Into the transport, past the outbox.
    identifier publish(std::string key = {}, std::string body = "{}", std::string topic = "orders") {
        auto one = message(std::move(key), std::move(body), std::move(topic));
        const identifier id = one.id;
        await(kept->publish({std::move(one)}));
        return id;
    }
    identifier append(std::string key = {}, std::string body = "{}") {
        auto one = message(std::move(key), std::move(body));
        const identifier id = one.id;
        await(held->outbox()->append({std::move(one)}));
        return id;
    }
    consumer_snapshot counts(std::size_t which = 0) { return worker->snapshot().consumers.at(which); }
    std::vector<dead_message> dead() { return await(kept->dead_messages({}, 100)).messages; }
    subscription_view view(const std::string& name = "billing") {
        for (auto& each : await(kept->subscriptions()))
            if (each.name == name) return each;
        return {};
    }
    bool in_inbox(const identifier& id, int generation = 1, const std::string& name = "billing") {
        return await(held->outbox()->received(std::to_string(generation) + ":" + name, {id})).front();
    }

    simulated_runtime on;
    engine made;
    std::unique_ptr<holdfast::store> held;
    std::unique_ptr<event_transport> kept;
    event_transport* over_transport = nullptr;
    holdfast::store* over_store = nullptr;
    bool has_inbox = true;
    kept_log log;
    identifier_source ids{3};
    int made_ids = 0;
    consumer_registry consumers;
    std::optional<event_worker> worker;
    std::optional<event_relay> sender;
};

} // namespace holdfast::test
