#pragma once

#include <utility>

#include <holdfast/event_transport.hpp>
#include <holdfast/plugin_library.hpp>

namespace holdfast::cli {

// A plugin's transport of events with all that it needs to live, as one object.
class held_transport final : public event_transport {
public:
    explicit held_transport(plugin_instance<event_transport> made) noexcept : inner_(std::move(made)) {}

    std::string_view name() const noexcept override { return inner_->name(); }
    transport_capabilities capabilities() const override { return inner_->capabilities(); }
    task<result<void>> prepare() override { return inner_->prepare(); }
    task<result<store_time>> now() override { return inner_->now(); }
    task<result<void>> destroy() override { return inner_->destroy(); }
    task<result<void>> publish(std::vector<envelope> batch) override { return inner_->publish(std::move(batch)); }
    task<result<void>> subscribe(subscription what) override { return inner_->subscribe(std::move(what)); }
    task<result<bool>> unsubscribe(std::string name) override { return inner_->unsubscribe(std::move(name)); }
    task<result<std::vector<subscription_view>>> subscriptions() override { return inner_->subscriptions(); }
    task<result<std::vector<delivery>>> receive(std::string subscription, int limit, duration lease_for,
                                                std::string receiver) override {
        return inner_->receive(std::move(subscription), limit, lease_for, std::move(receiver));
    }
    task<result<std::vector<write_answer>>> renew(std::span<const delivery_lease* const> held,
                                                  duration lease_for) override {
        return inner_->renew(held, lease_for);
    }
    task<result<std::vector<write_answer>>> settle(std::span<const delivery_settlement> which) override {
        return inner_->settle(which);
    }
    task<result<std::optional<duration>>> next_due(std::string subscription) override {
        return inner_->next_due(std::move(subscription));
    }
    std::unique_ptr<event_watch> watch(std::string subscription, std::function<void()> hint) override {
        return inner_->watch(std::move(subscription), std::move(hint));
    }
    task<result<dead_message_page>> dead_messages(dead_message_filter filter, int limit, std::string cursor) override {
        return inner_->dead_messages(std::move(filter), limit, std::move(cursor));
    }
    task<result<std::optional<dead_message>>> dead_message_of(std::string subscription, identifier id) override {
        return inner_->dead_message_of(std::move(subscription), id);
    }
    task<result<int>> send_again(std::string subscription, std::vector<identifier> which) override {
        return inner_->send_again(std::move(subscription), std::move(which));
    }
    task<result<int>> discard(std::string subscription, std::vector<identifier> which) override {
        return inner_->discard(std::move(subscription), std::move(which));
    }
    task<result<std::uint64_t>> replay(std::string subscription, replay_point from) override {
        return inner_->replay(std::move(subscription), from);
    }
    task<result<int>> sweep(int limit) override { return inner_->sweep(limit); }

private:
    plugin_instance<event_transport> inner_;
};

} // namespace holdfast::cli
