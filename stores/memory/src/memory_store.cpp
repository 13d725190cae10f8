#include "memory_store.hpp"

#include "facets.hpp"

namespace holdfast::memory {

namespace {

class memory_store final : public store {
public:
    memory_store(const options& with, const runtime* on)
        : core_(with, on), jobs_(core_), idempotency_(core_), locks_(core_), outbox_(core_) {}

    std::string_view name() const noexcept override { return "memory"; }
    store_capabilities capabilities() const override {
        return {.writes_survive = survives::nothing,
                .loses = "everything, when the process ends",
                .shared = false,
                .units_of_work = true,
                .joins_transactions = false};
    }

    idempotency_store* idempotency() noexcept override { return &idempotency_; }
    lock_store* locks() noexcept override { return &locks_; }
    outbox_store* outbox() noexcept override { return &outbox_; }
    job_store* jobs() noexcept override { return &jobs_; }

    task<result<void>> prepare() override { co_return result<void>(); }
    task<result<store_time>> now() override { co_return core_.now(); }
    task<result<void>> destroy() override {
        co_return core_.run([](data& on, store_time) {
            on.clear();
            return result<void>();
        });
    }
    task<result<std::unique_ptr<unit_of_work>>> begin() override { co_return std::make_unique<unit>(core_); }

private:
    core core_;
    job_facet jobs_;
    idempotency_facet idempotency_;
    lock_facet locks_;
    outbox_facet outbox_;
};

} // namespace

std::unique_ptr<store> make_store(const options& with, const runtime* on) {
    return std::make_unique<memory_store>(with, on);
}

} // namespace holdfast::memory
