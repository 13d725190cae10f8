#include "memory_transport.hpp"

#include <exception>
#include <mutex>
#include <type_traits>
#include <utility>

#include <holdfast/event_limits.hpp>
#include <holdfast/event_watchers.hpp>
#include <holdfast/runtime_clock.hpp>

namespace holdfast::events_memory {

namespace {

class memory_transport final : public event_transport {
public:
    memory_transport(const options& with, const runtime* on) : with_(with), clock_(on), rules_(with) {}

    std::string_view name() const noexcept override { return "memory"; }
    transport_capabilities capabilities() const override {
        return {.writes_survive = survives::nothing, .loses = "everything, when the process ends", .shared = false};
    }

    task<result<void>> prepare() override { co_return result<void>(); }
    task<result<store_time>> now() override { co_return clock_.now(); }
    task<result<void>> destroy() override {
        co_return run([](transport_rules& on, store_time) {
            on.clear();
            return result<void>();
        });
    }

    task<result<void>> publish(std::vector<envelope> batch) override {
        if (auto fine = store_limits::check_all(batch, with_.max_payload); !fine) co_return fine;
        co_return run([&](transport_rules& on, store_time now) { return on.publish(std::move(batch), now); });
    }
    task<result<void>> subscribe(subscription what) override {
        if (auto fine = store_limits::check(what); !fine) co_return fine;
        co_return run([&](transport_rules& on, store_time now) {
            on.subscribe(what, now);
            return result<void>();
        });
    }
    task<result<bool>> unsubscribe(std::string name) override {
        co_return run([&](transport_rules& on, store_time) { return on.unsubscribe(name); });
    }
    task<result<std::vector<subscription_view>>> subscriptions() override {
        co_return run([](transport_rules& on, store_time now) { return on.subscriptions(now); });
    }

    task<result<std::vector<delivery>>> receive(std::string subscription, int limit, duration lease_for,
                                                std::string) override {
        if (auto fine = store_limits::check_receive(limit, lease_for); !fine) co_return std::unexpected(fine.error());
        co_return run(
            [&](transport_rules& on, store_time now) { return on.receive(subscription, limit, lease_for, now); });
    }
    task<result<std::vector<write_answer>>> renew(std::span<const delivery_lease* const> held,
                                                  duration lease_for) override {
        if (auto fine = store_limits::check_receive(1, lease_for); !fine) co_return std::unexpected(fine.error());
        co_return run([&](transport_rules& on, store_time now) { return on.renew(held, lease_for, now); });
    }
    task<result<std::vector<write_answer>>> settle(std::span<const delivery_settlement> which) override {
        co_return run([&](transport_rules& on, store_time now) { return on.settle(which, now); });
    }
    task<result<std::optional<duration>>> next_due(std::string subscription) override {
        co_return run([&](transport_rules& on, store_time now) { return on.next_due(subscription, now); });
    }
    std::unique_ptr<event_watch> watch(std::string subscription, std::function<void()> hint) override {
        return watchers_.add({std::move(subscription)}, std::move(hint));
    }

    task<result<dead_message_page>> dead_messages(dead_message_filter filter, int limit, std::string cursor) override {
        if (limit < 1) co_return fail(errc::invalid_argument, "a page needs a limit of 1 or more");
        co_return run([&](transport_rules& on, store_time) { return on.dead_messages(filter, limit, cursor); });
    }
    task<result<std::optional<dead_message>>> dead_message_of(std::string subscription, identifier id) override {
        co_return run([&](transport_rules& on, store_time) { return on.dead_message_of(subscription, id); });
    }
    task<result<int>> send_again(std::string subscription, std::vector<identifier> which) override {
        co_return run([&](transport_rules& on, store_time now) { return on.send_again(subscription, which, now); });
    }
    task<result<int>> discard(std::string subscription, std::vector<identifier> which) override {
        co_return run([&](transport_rules& on, store_time) { return on.discard(subscription, which); });
    }
    task<result<std::uint64_t>> replay(std::string subscription, replay_point from) override {
        co_return run([&](transport_rules& on, store_time now) { return on.replay(subscription, from, now); });
    }
    task<result<int>> sweep(int limit) override {
        if (limit < 1) co_return fail(errc::invalid_argument, "a sweep needs a limit of 1 or more");
        co_return run([&](transport_rules& on, store_time now) { return on.sweep(limit, now); });
    }

private:
    template <class T>
    static result<T> as_result(result<T> r) {
        return r;
    }
    template <class T>
    static result<T> as_result(T value) {
        return value;
    }

    // Takes the lock, applies the rules, then hints to those for whom something has changed. Nothing but results leaves.
    template <class Call>
    auto run(Call call) -> decltype(as_result(call(std::declval<transport_rules&>(), store_time()))) {
        try {
            std::unique_lock lock(mutex_);
            auto answer = as_result(call(rules_, clock_.now()));
            const auto woken = rules_.take_woken();
            lock.unlock();
            if (!woken.empty()) watchers_.ring(woken);
            return answer;
        } catch (const std::exception& e) {
            return fail(errc::internal, std::string("the memory transport failed: ") + e.what());
        } catch (...) {
            return fail(errc::internal, "the memory transport failed");
        }
    }

    const options with_;
    const runtime_clock clock_;
    std::mutex mutex_;
    transport_rules rules_;
    event_watchers watchers_;
};

} // namespace

std::unique_ptr<event_transport> make_transport(const options& with, const runtime* on) {
    return std::make_unique<memory_transport>(with, on);
}

} // namespace holdfast::events_memory
