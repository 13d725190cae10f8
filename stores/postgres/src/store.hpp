#pragma once

#include <memory>
#include <mutex>

#include <holdfast/postgres/schema.hpp>
#include <holdfast/store.hpp>

#include "facets.hpp"

namespace holdfast::postgres {

class server_store final : public store {
public:
    server_store(store_options how, runtime& on) : core_(std::move(how), on) {}

    std::string_view name() const noexcept override { return "postgres"; }
    store_capabilities capabilities() const override;

    idempotency_store* idempotency() noexcept override { return &idempotency_; }
    lock_store* locks() noexcept override { return &locks_; }
    outbox_store* outbox() noexcept override { return &outbox_; }
    job_store* jobs() noexcept override { return &jobs_; }

    task<result<void>> prepare() override;
    task<result<store_time>> now() override;
    task<result<void>> destroy() override;
    task<result<std::unique_ptr<unit_of_work>>> begin() override { return core_.begin(); }
    task<result<std::unique_ptr<unit_of_work>>> join(native_transaction theirs) override;

private:
    core core_;
    postgres::jobs jobs_{core_};
    postgres::locks locks_{core_};
    postgres::idempotency idempotency_{core_};
    postgres::outbox outbox_{core_};
    mutable std::mutex mutex_;
    durability durability_;
};

} // namespace holdfast::postgres
