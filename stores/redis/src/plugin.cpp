#include <algorithm>

#include <holdfast/plugin.hpp>
#include <holdfast/store.hpp>
#include <holdfast/version.hpp>

#include "facets.hpp"
#include "redlock.hpp"
#include "unit.hpp"

namespace holdfast::redis {

namespace {

class redis_store final : public store {
public:
    redis_store(store_options how, runtime& on) : core_(std::move(how), on) {
        if (!core_.how.lock_servers.empty()) majority_locks_ = std::make_unique<redlock_facet>(core_.how, on);
    }

    std::string_view name() const noexcept override { return "redis"; }

    store_capabilities capabilities() const override {
        store_capabilities can;
        can.shared = true;
        can.units_of_work = true;
        const persistence keeps = core_.keeps();
        can.writes_survive = keeps.writes_survive();
        can.loses = keeps.loses();
        if (majority_locks_ != nullptr) {
            can.writes_survive = std::min(can.writes_survive, majority_locks_->writes_survive());
            can.loses += "; a lock, when one of the lock_servers comes back without what it said last";
        }
        return can;
    }

    idempotency_store* idempotency() noexcept override { return &idempotency_; }
    lock_store* locks() noexcept override {
        if (majority_locks_ != nullptr) return majority_locks_.get();
        return &locks_;
    }
    outbox_store* outbox() noexcept override { return &outbox_; }
    job_store* jobs() noexcept override { return &jobs_; }

    task<result<void>> prepare() override {
        auto ready = co_await core_.blocking(&core::prepare_now);
        if (!ready || majority_locks_ == nullptr) co_return ready;
        auto preparing = majority_locks_->prepare();
        co_return co_await std::move(preparing);
    }
    task<result<store_time>> now() override { co_return co_await core_.blocking(&core::time_now); }
    task<result<void>> destroy() override {
        auto gone = co_await core_.blocking(&core::destroy_now);
        if (!gone || majority_locks_ == nullptr) co_return gone;
        auto destroying = majority_locks_->destroy();
        co_return co_await std::move(destroying);
    }

    task<result<std::unique_ptr<unit_of_work>>> begin() override { co_return std::make_unique<redis_unit>(core_); }

private:
    core core_;
    idempotency_facet idempotency_{core_};
    lock_facet locks_{core_};
    std::unique_ptr<redlock_facet> majority_locks_;
    outbox_facet outbox_{core_};
    job_facet jobs_{core_};
};

std::unique_ptr<store> make(plugin_context& context) {
    if (context.runtime() == nullptr) throw failed({errc::plugin, "redis: a store needs a runtime", {}});
    return std::make_unique<redis_store>(store_options::from(context.settings()), *context.runtime());
}

} // namespace

HOLDFAST_STORE_PLUGIN("redis", version_text, "jobs, locks, keys and messages on a Redis server", &make)

} // namespace holdfast::redis
