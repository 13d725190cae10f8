// What a store case works with: a fresh store, a runtime to call it from, and a way to let time pass on its clock.
#pragma once

#include <chrono>
#include <memory>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <holdfast/identifier.hpp>
#include <holdfast/store_conformance.hpp>
#include <holdfast/sync_wait.hpp>
#include <holdfast/when_all.hpp>

#include "check.hpp"
#include "on_runtime.hpp"

namespace holdfast::conformance {

using namespace std::chrono_literals;

// For leases whose end a case waits for. Long enough that nothing else in the case runs into it.
inline constexpr auto short_lease = 100ms;

class store_lab {
public:
    store_lab(const store_bed& bed, const store_options& how);
    // Quietly removes what is left of the store.
    ~store_lab();
    store_lab(const store_lab&) = delete;
    store_lab& operator=(const store_lab&) = delete;
    // Checks that the store can be removed.
    void close();

    holdfast::store& store() noexcept { return *store_; }
    runtime& on() const noexcept { return *bed_.on; }
    int rounds() const noexcept { return how_.rounds; }

    // These skip the case when the facet is not offered.
    job_store& jobs() { return offered(store_->jobs()); }
    lock_store& locks() { return offered(store_->locks()); }
    idempotency_store& idempotency() { return offered(store_->idempotency()); }
    outbox_store& outbox() { return offered(store_->outbox()); }
    // A second instance that is open at the same time. Skips the case when the store is not shared.
    holdfast::store& other();
    // Closes the store and opens it again. Skips the case when the data goes with the instance.
    void reopen();
    // Skips the case when the store has no units of work.
    void needs_units();
    std::unique_ptr<unit_of_work> begin();

    template <class T>
    T await(task<T> what) {
        return sync_wait(on(), std::move(what));
    }
    // The call must go well; its value.
    template <class T>
    T ok(task<result<T>> call, std::string_view what, std::source_location where = std::source_location::current()) {
        result<T> answer = await(std::move(call));
        return value_of(std::move(answer), what, where);
    }
    template <class T>
    static T value_of(result<T> answer, std::string_view what,
                      std::source_location where = std::source_location::current()) {
        if (!answer)
            fail_check(std::string(what) + ": failed with " + std::string(to_text(answer.error().code)) + " (" +
                           answer.error().message + ")",
                       where);
        if constexpr (!std::is_void_v<T>) return std::move(*answer);
    }
    // The call must be refused with one of these, and say something about it.
    template <class T>
    void refused(task<result<T>> call, std::vector<errc> with, std::string_view what,
                 std::source_location where = std::source_location::current()) {
        const result<T> answer = await(std::move(call));
        if (answer) fail_check(std::string(what) + ": expected to be refused, went well", where);
        for (const errc each : with)
            if (answer.error().code == each) return check(!answer.error().message.empty(), "a refusal says why", where);
        fail_check(std::string(what) + ": expected to be refused with " + shown(with) + ", found " +
                       shown(answer.error().code) + " (" + answer.error().message + ")",
                   where);
    }
    // All at the same time, each from a runtime thread.
    template <class T>
    std::vector<T> at_once(std::vector<task<T>> calls) {
        return await(when_all(on_runtime_threads(std::move(calls))));
    }
    void at_once(std::vector<task<void>> calls) { await(when_all(on_runtime_threads(std::move(calls)))); }

    store_time now() { return ok(store_->now(), "now()"); }
    // Lets at least this much time pass on the store's clock.
    void pass(duration d);

    // Each is newer than the one before.
    identifier next_id();

private:
    template <class Facet>
    static Facet& offered(Facet* facet) {
        if (facet == nullptr) throw case_skipped(not_offered);
        return *facet;
    }
    template <class T>
    std::vector<task<T>> on_runtime_threads(std::vector<task<T>> calls) {
        std::vector<task<T>> there;
        for (auto& each : calls) there.push_back(on_runtime(on(), std::move(each)));
        return there;
    }
    std::unique_ptr<holdfast::store> open(const std::function<std::unique_ptr<holdfast::store>()>& make);

    const store_bed& bed_;
    const store_options& how_;
    std::unique_ptr<holdfast::store> store_;
    std::unique_ptr<holdfast::store> other_;
    identifier_source ids_;
    std::chrono::system_clock::time_point id_time_;
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
store_case_list job_watch_cases();
store_case_list idempotency_cases();
store_case_list lock_cases();
store_case_list outbox_cases();
store_case_list outbox_failure_cases();
store_case_list unit_cases();
store_case_list unit_conflict_cases();

} // namespace holdfast::conformance
