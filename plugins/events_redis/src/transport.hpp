// Events on a Redis server.
#pragma once

#include <holdfast/event_transport.hpp>
#include <holdfast/redis/call.hpp>

#include "scripts.hpp"
#include "transport_options.hpp"

namespace holdfast::events_redis {

// The server and the transport's scripts on it. Any thread.
class scripted_transport : public redis::scripted_server {
public:
    scripted_transport(const transport_options& how, runtime& on)
        : redis::scripted_server(static_cast<const redis::options&>(how), on, transport_scripts()) {}

    // The script's answer; never an error reply.
    task<result<redis::reply>> run(script which, redis::arguments with, redis::access a) {
        return redis::scripted_server::run(static_cast<std::size_t>(which), std::move(with), a);
    }
};

class transport final : public event_transport {
public:
    transport(transport_options how, runtime& on) : how_(std::move(how)), server_(how_, on) {}

    std::string_view name() const noexcept override { return "redis"; }
    transport_capabilities capabilities() const override;

    task<result<void>> prepare() override;
    task<result<store_time>> now() override;
    task<result<void>> destroy() override;

    task<result<void>> publish(std::vector<envelope> batch) override;
    task<result<void>> subscribe(subscription what) override;
    task<result<bool>> unsubscribe(std::string name) override;
    task<result<std::vector<subscription_view>>> subscriptions() override;

    task<result<std::vector<delivery>>> receive(std::string subscription, int limit, duration lease_for,
                                                std::string receiver) override;
    task<result<std::vector<write_answer>>> renew(std::span<const delivery_lease* const> held,
                                                  duration lease_for) override;
    task<result<std::vector<write_answer>>> settle(std::span<const delivery_settlement> which) override;
    task<result<std::optional<duration>>> next_due(std::string subscription) override;
    std::unique_ptr<event_watch> watch(std::string subscription, std::function<void()> hint) override;

    task<result<dead_message_page>> dead_messages(dead_message_filter filter, int limit, std::string cursor) override;
    task<result<std::optional<dead_message>>> dead_message_of(std::string subscription, identifier id) override;
    task<result<int>> send_again(std::string subscription, std::vector<identifier> which) override;
    task<result<int>> discard(std::string subscription, std::vector<identifier> which) override;
    task<result<std::uint64_t>> replay(std::string subscription, replay_point from) override;
    task<result<int>> sweep(int limit) override;

private:
    const transport_options how_;
    scripted_transport server_;
};

} // namespace holdfast::events_redis
