// A transport and an outbox that fail, or take their time, on demand: before a call reaches them, or after it was applied.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include <holdfast/event_transport.hpp>
#include <holdfast/sleep.hpp>
#include <holdfast/store.hpp>

namespace holdfast::test {

// What stands between somebody and what he calls.
struct trouble {
    // Asked before each call, and after it was applied; an error is answered in its place.
    std::function<std::optional<error>(std::string_view call)> before = [](auto) { return std::nullopt; };
    std::function<std::optional<error>(std::string_view call)> after = [](auto) { return std::nullopt; };
    // How long a call takes until it is applied, and until its answer comes; on that runtime.
    std::function<duration()> lag = [] { return duration::zero(); };
    runtime* on = nullptr;

    template <class T>
    task<result<T>> pass(std::string_view which, task<result<T>> call) {
        if (auto refused = before(which)) co_return std::unexpected(std::move(*refused));
        if (on != nullptr) co_await sleep_for(*on, lag());
        auto answer = co_await std::move(call);
        if (on != nullptr) co_await sleep_for(*on, lag());
        if (auto refused = after(which)) co_return std::unexpected(std::move(*refused));
        co_return answer;
    }
};

class faulty_transport final : public event_transport {
public:
    explicit faulty_transport(event_transport& inner) : inner_(inner) {}
    trouble with;
    // Asked with each batch.
    std::function<std::optional<error>(const std::vector<envelope>&)> on_publish = [](const auto&) {
        return std::nullopt;
    };

    std::string_view name() const noexcept override { return inner_.name(); }
    transport_capabilities capabilities() const override { return inner_.capabilities(); }
    task<result<void>> prepare() override { return inner_.prepare(); }
    task<result<store_time>> now() override { return inner_.now(); }
    task<result<void>> destroy() override { return inner_.destroy(); }
    task<result<void>> publish(std::vector<envelope> batch) override {
        if (auto refused = on_publish(batch)) return refuse(std::move(*refused));
        return with.pass("publish", inner_.publish(std::move(batch)));
    }
    task<result<void>> subscribe(subscription what) override {
        return with.pass("subscribe", inner_.subscribe(std::move(what)));
    }
    task<result<bool>> unsubscribe(std::string name) override { return inner_.unsubscribe(std::move(name)); }
    task<result<std::vector<subscription_view>>> subscriptions() override { return inner_.subscriptions(); }
    task<result<std::vector<delivery>>> receive(std::string subscription, int limit, duration lease_for,
                                                std::string receiver) override {
        return with.pass("receive", inner_.receive(std::move(subscription), limit, lease_for, std::move(receiver)));
    }
    task<result<std::vector<write_answer>>> renew(std::span<const delivery_lease* const> held,
                                                  duration lease_for) override {
        return with.pass("renew", inner_.renew(held, lease_for));
    }
    task<result<std::vector<write_answer>>> settle(std::span<const delivery_settlement> which) override {
        return with.pass("settle", inner_.settle(which));
    }
    task<result<std::optional<duration>>> next_due(std::string subscription) override {
        return with.pass("next_due", inner_.next_due(std::move(subscription)));
    }
    std::unique_ptr<event_watch> watch(std::string subscription, std::function<void()> hint) override {
        return inner_.watch(std::move(subscription), std::move(hint));
    }
    task<result<dead_message_page>> dead_messages(dead_message_filter filter, int limit, std::string cursor) override {
        return inner_.dead_messages(std::move(filter), limit, std::move(cursor));
    }
    task<result<std::optional<dead_message>>> dead_message_of(std::string subscription, identifier id) override {
        return inner_.dead_message_of(std::move(subscription), id);
    }
    task<result<int>> send_again(std::string subscription, std::vector<identifier> which) override {
        return inner_.send_again(std::move(subscription), std::move(which));
    }
    task<result<int>> discard(std::string subscription, std::vector<identifier> which) override {
        return inner_.discard(std::move(subscription), std::move(which));
    }
    task<result<std::uint64_t>> replay(std::string subscription, replay_point from) override {
        return inner_.replay(std::move(subscription), from);
    }
    task<result<int>> sweep(int limit) override { return with.pass("sweep", inner_.sweep(limit)); }

private:
    static task<result<void>> refuse(error why) { co_return std::unexpected(std::move(why)); }

    event_transport& inner_;
};

// Has one of the store's own inside.
struct faulty_unit final : unit_of_work {
    faulty_unit(std::unique_ptr<unit_of_work> what, trouble& in) : inner(std::move(what)), with(in) {}
    task<result<void>> commit() override { return with.pass("commit", inner->commit()); }
    task<result<void>> rollback() override { return with.pass("rollback", inner->rollback()); }
    static unit_of_work* inside(unit_of_work* of) {
        auto* mine = dynamic_cast<faulty_unit*>(of);
        return mine != nullptr ? mine->inner.get() : of;
    }
    std::unique_ptr<unit_of_work> inner;
    trouble& with;
};

class faulty_outbox final : public outbox_store {
public:
    faulty_outbox(outbox_store& inner, trouble& with) : inner_(inner), with_(with) {}

    task<result<void>> append(std::vector<outgoing_message> messages, unit_of_work* in) override {
        return with_.pass("append", inner_.append(std::move(messages), faulty_unit::inside(in)));
    }
    task<result<std::vector<leased_message>>> lease_batch(int limit, duration lease_for, std::string relay) override {
        return with_.pass("lease_batch", inner_.lease_batch(limit, lease_for, std::move(relay)));
    }
    task<result<std::vector<write_answer>>> delivered(std::span<const message_lease* const> sent) override {
        return with_.pass("delivered", inner_.delivered(sent));
    }
    task<result<std::vector<write_answer>>> failed(std::span<const message_failure> which) override {
        return with_.pass("failed", inner_.failed(which));
    }
    task<result<std::vector<message_view>>> set_aside(int limit, std::uint64_t after_position) override {
        return inner_.set_aside(limit, after_position);
    }
    task<result<int>> send_again(std::vector<identifier> which) override { return inner_.send_again(std::move(which)); }
    task<result<int>> discard(std::vector<identifier> which) override { return inner_.discard(std::move(which)); }
    task<result<std::uint64_t>> unsent() override { return inner_.unsent(); }
    task<result<bool>> receive(std::string consumer, identifier message, duration ttl, unit_of_work* in) override {
        return with_.pass("inbox", inner_.receive(std::move(consumer), message, ttl, faulty_unit::inside(in)));
    }
    task<result<std::vector<bool>>> received(std::string consumer, std::vector<identifier> messages) override {
        return with_.pass("received", inner_.received(std::move(consumer), std::move(messages)));
    }

private:
    outbox_store& inner_;
    trouble& with_;
};

// A store whose outbox and units of work are in trouble.
class faulty_store final : public store {
public:
    explicit faulty_store(store& inner) : inner_(inner), outbox_(*inner.outbox(), with) {}
    trouble with;

    std::string_view name() const noexcept override { return inner_.name(); }
    store_capabilities capabilities() const override { return inner_.capabilities(); }
    outbox_store* outbox() noexcept override { return &outbox_; }
    task<result<void>> prepare() override { return inner_.prepare(); }
    task<result<store_time>> now() override { return inner_.now(); }
    task<result<void>> destroy() override { return inner_.destroy(); }
    task<result<std::unique_ptr<unit_of_work>>> begin() override {
        auto beginning = with.pass("begin", inner_.begin());
        auto begun = co_await std::move(beginning);
        if (!begun) co_return std::unexpected(std::move(begun.error()));
        co_return std::unique_ptr<unit_of_work>(std::make_unique<faulty_unit>(std::move(*begun), with));
    }

private:
    store& inner_;
    faulty_outbox outbox_;
};

} // namespace holdfast::test
