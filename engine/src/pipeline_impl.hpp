// The engine's pipeline: one policy, its shared state, and the two drivers (blocking, coroutine) over one set of
// decisions (call.hpp).
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <holdfast/pipeline.hpp>

#include "circuit_breaker.hpp"
#include "concurrency_limiter.hpp"
#include "listeners.hpp"
#include "plan.hpp"
#include "rate_limiter.hpp"
#include "retry_budget.hpp"

namespace holdfast {

class call;

// What a driver has to do next; see call.
enum class call_next : unsigned char {
    finished,      // the execution's report is complete
    wait_for_slot, // then waited_for_slot()
    attempt,       // make the attempt, then after_attempt()
    wait,          // until resume_at(), or not at all when the delay is 0; then woke()
};

class pipeline_impl final : public pipeline {
public:
    pipeline_impl(runtime& on, const policy_cell& cell, std::string key, const listeners& heard_by, std::uint64_t seed);

    std::string_view name() const noexcept override { return cell_.name; }
    runtime& on() const noexcept override { return on_; }
    void run(operation& what, execution& x) noexcept override;
    task<void> run_async(async_operation& what, execution& x) override;
    std::coroutine_handle<> start_async(async_operation& what, execution& x, call_room& run,
                                        std::coroutine_handle<> then) override;
    void fallback_ended(execution& x, bool used) noexcept override;
    policy_options options() const override { return current().options; }
    pipeline_stats stats() const noexcept override;
    void isolate_circuit() noexcept override;
    void close_circuit() noexcept override;

private:
    friend class call;

    // The plan in force. Plans live as long as the pipeline, one per distinct policy, so a call needs no reference
    // count to stay on the one it began with.
    const plan& current() const {
        const plan* p = plan_.load(std::memory_order_acquire);
        if (p->source == cell_.current.load(std::memory_order_acquire)) [[likely]]
            return *p;
        return replan();
    }
    const plan& replan() const;
    std::unique_ptr<plan> make_plan(const policy_options& from) const;
    // A plain plan with nobody watching: run the first attempt and decide only if it did not succeed.
    bool is_plain(const plan& in_force, const execution& x) const noexcept {
        return in_force.plain && x.ledger == nullptr && !listeners_.any() && !x.stop.stop_requested();
    }
    // The short way out of an open circuit, where nothing else has a say.
    bool refused_at_once(const plan& in_force, execution& x) const noexcept;
    void run_full(const plan& in_force, operation& what, execution& x) noexcept;
    void after_plain(const plan& in_force, operation& what, execution& x, invoke_end end,
                     const attempt& first) noexcept;
    void drive(call& c, operation& what, call_next then) noexcept;
    std::coroutine_handle<> start_full(const plan& in_force, call_room& run);
    task<void> drive(call& c, async_operation& what, call_next then);
    struct plain_run;
    struct full_run;
    static std::coroutine_handle<> plain_ended(detail::task_end& of) noexcept;
    static std::coroutine_handle<> full_ended(detail::task_end& of) noexcept;
    static task<void> after_plain(pipeline_impl& self, call_room& run);
    static task<void> after_full(pipeline_impl& self, call_room& run);
    task<void> run_waiting(call& c, async_operation& what, call_next then);
    void circuit_moved(const circuit_breaker::transition& t) const;

    runtime& on_;
    const policy_cell& cell_;
    const std::string key_;
    const listeners& listeners_;
    const std::uint64_t seed_;

    mutable std::atomic<const plan*> plan_ = nullptr;
    mutable std::mutex plans_mutex_;
    mutable std::vector<std::unique_ptr<plan>> plans_;
    mutable std::vector<std::unique_ptr<rate_limiter>> rates_;

    circuit_breaker breaker_;
    concurrency_limiter limiter_;
    retry_budget budget_;
    overdue_count overdue_ = std::make_shared<std::atomic<int>>(0);
    std::atomic<std::uint64_t> late_ = 0;
    std::atomic<std::uint64_t> series_ = 0; // executions that drew a random number
};

} // namespace holdfast
