// What a store case works with: a fresh store.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <holdfast/store_conformance.hpp>

#include "plugin_lab.hpp"

namespace holdfast::conformance {

class store_lab final : public plugin_lab {
public:
    store_lab(const store_bed& bed, const store_options& how);
    // Quietly removes what is left of the store.
    ~store_lab();
    // Checks that the store can be removed.
    void close();

    holdfast::store& store() noexcept { return *store_; }
    std::uint64_t seed() const noexcept { return seed_; }

    // These skip the case when the facet is not offered.
    job_store& jobs() { return offered(store_->jobs()); }
    lock_store& locks() { return offered(store_->locks()); }
    idempotency_store& idempotency() { return offered(store_->idempotency()); }
    outbox_store& outbox() { return offered(store_->outbox()); }
    // A second instance that is open at the same time. Skips the case when the store is not shared.
    holdfast::store& other();
    // A second process on the same data, ready. Skips the case when the store is not shared, or there is no such program.
    rival& other_process();
    // Closes the store and opens it again. Skips the case when the data goes with the instance.
    void reopen();
    // Skips the case when the store has no units of work.
    void needs_units();
    std::unique_ptr<unit_of_work> begin();

    store_time now() override { return ok(store_->now(), "now()"); }

private:
    template <class Facet>
    static Facet& offered(Facet* facet) {
        if (facet == nullptr) throw case_skipped(not_offered);
        return *facet;
    }
    std::unique_ptr<holdfast::store> open(const std::function<std::unique_ptr<holdfast::store>()>& make);

    const store_bed& bed_;
    const std::uint64_t seed_;
    std::unique_ptr<holdfast::store> store_;
    std::unique_ptr<holdfast::store> other_;
    std::unique_ptr<rival> rival_;
};

struct store_case {
    std::string name;
    void (*run)(store_lab&);
};
using store_case_list = std::vector<store_case>;

// By file. Several lists may belong to one group.
store_case_list store_basics();
store_case_list job_enqueue_cases();
store_case_list job_claim_cases();
store_case_list job_settle_cases();
store_case_list job_fencing_cases();
store_case_list job_recovery_cases();
store_case_list job_cancel_cases();
store_case_list job_family_cases();
store_case_list job_requeue_cases();
store_case_list job_reading_cases();
store_case_list job_content_cases();
store_case_list job_race_cases();
store_case_list job_walk_cases();
store_case_list job_watch_cases();
store_case_list job_process_cases();
store_case_list job_handover_cases();
store_case_list idempotency_cases();
store_case_list idempotency_process_cases();
store_case_list lock_cases();
store_case_list lock_process_cases();
store_case_list outbox_cases();
store_case_list outbox_failure_cases();
store_case_list outbox_process_cases();
store_case_list unit_cases();
store_case_list unit_conflict_cases();

} // namespace holdfast::conformance
