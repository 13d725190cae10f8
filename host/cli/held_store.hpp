#pragma once

#include <utility>

#include <holdfast/plugin_library.hpp>
#include <holdfast/store.hpp>

namespace holdfast::cli {

// A plugin's store with all that it needs to live, as one object.
class held_store final : public store {
public:
    explicit held_store(plugin_instance<store> made) noexcept : inner_(std::move(made)) {}

    std::string_view name() const noexcept override { return inner_->name(); }
    store_capabilities capabilities() const override { return inner_->capabilities(); }
    idempotency_store* idempotency() noexcept override { return inner_->idempotency(); }
    lock_store* locks() noexcept override { return inner_->locks(); }
    outbox_store* outbox() noexcept override { return inner_->outbox(); }
    job_store* jobs() noexcept override { return inner_->jobs(); }
    task<result<void>> prepare() override { return inner_->prepare(); }
    task<result<store_time>> now() override { return inner_->now(); }
    task<result<void>> destroy() override { return inner_->destroy(); }
    task<result<std::unique_ptr<unit_of_work>>> begin() override { return inner_->begin(); }
    task<result<std::unique_ptr<unit_of_work>>> join(native_transaction yours) override { return inner_->join(yours); }

private:
    plugin_instance<store> inner_;
};

} // namespace holdfast::cli
