#include "pipeline_impl.hpp"

#include <utility>

#include <holdfast/sleep.hpp>
#include <holdfast/sync_wait.hpp>

#include "call.hpp"
#include "hedge.hpp"

namespace holdfast {

pipeline_impl::pipeline_impl(runtime& on, const policy_cell& cell, std::string key, const listeners& heard_by,
                             std::uint64_t seed)
    : on_(on), cell_(cell), key_(std::move(key)), listeners_(heard_by), seed_(seed),
      breaker_([this](const circuit_breaker::transition& t) { circuit_moved(t); }) {
    plans_.push_back(make_plan(*cell.current.load(std::memory_order_acquire)));
    plan_.store(plans_.back().get(), std::memory_order_release);
}

std::unique_ptr<plan> pipeline_impl::make_plan(const policy_options& from) const {
    auto made = std::make_unique<plan>(from);
    if (made->has_rate) {
        for (const auto& known : rates_)
            if (known->options() == from.rate) made->rate = known.get();
        if (made->rate == nullptr) {
            rates_.push_back(std::make_unique<rate_limiter>(from.rate, on_.now()));
            made->rate = rates_.back().get();
        }
    }
    return made;
}

const plan& pipeline_impl::replan() const {
    const std::lock_guard lock(plans_mutex_);
    const policy_options* wanted = cell_.current.load(std::memory_order_acquire);
    const plan* found = nullptr;
    for (const auto& known : plans_)
        if (known->source == wanted) found = known.get();
    if (found == nullptr) {
        plans_.push_back(make_plan(*wanted));
        found = plans_.back().get();
    }
    plan_.store(found, std::memory_order_release);
    return *found;
}

namespace {

task<concurrency_limiter::wait_end> wait_in_line(concurrency_limiter& line, const concurrency_options& o, runtime& on,
                                                 std::stop_token stop) {
    auto in_line = line.wait_for_slot(o, on, std::move(stop));
    co_return co_await in_line;
}

} // namespace

void pipeline_impl::run(operation& what, execution& x) noexcept {
    call c(*this, what, x);
    call::next then = c.enter();
    if (then == call::next::wait_for_slot) [[unlikely]]
        then = c.waited_for_slot(sync_wait(on_, wait_in_line(limiter_, c.plan().options.concurrency, on_, x.stop)));
    if (then == call::next::finished) [[unlikely]] return;
    if (c.plan().has_hedge) [[unlikely]] return sync_wait(on_, run_hedged(c, what));

    then = c.before_attempt();
    for (;;) {
        if (then == call::next::attempt) [[likely]] {
            attempt a(on_, cell_.name, c.stop(), c.number(), c.plan().max_number, c.deadline(), overdue_);
            const invoke_end end = what.invoke(a, 0);
            then = c.after_attempt(end, a);
        }
        if (then == call::next::finished) [[likely]] return;
        if (then != call::next::wait) continue;
        then = c.woke(c.delay() == duration::zero() ? sleep_end::due : block_until(on_, c.resume_at(), x.stop));
    }
}

task<void> pipeline_impl::run_async(async_operation& what, execution& x) {
    call c(*this, what, x);
    call::next then = c.enter();
    if (then == call::next::wait_for_slot) [[unlikely]] {
        auto in_line = limiter_.wait_for_slot(c.plan().options.concurrency, on_, x.stop);
        then = c.waited_for_slot(co_await in_line);
    }
    if (then == call::next::finished) [[unlikely]] co_return;
    if (c.plan().has_hedge) [[unlikely]] {
        co_await run_hedged(c, what);
        co_return;
    }

    then = c.before_attempt();
    for (;;) {
        if (then == call::next::attempt) [[likely]] {
            attempt a(on_, cell_.name, c.stop(), c.number(), c.plan().max_number, c.deadline(), overdue_);
            const invoke_end end = co_await invoke_async{what, a, 0};
            then = c.after_attempt(end, a);
        }
        if (then == call::next::finished) [[likely]] co_return;
        if (then != call::next::wait) continue;
        sleep_end woke = sleep_end::due;
        if (c.delay() > duration::zero()) woke = co_await sleep_until(on_, c.resume_at(), x.stop);
        then = c.woke(woke);
    }
}

void pipeline_impl::fallback_ended(execution& x, bool used) noexcept {
    if (!listeners_.any()) return;
    execution_event e{.kind = event_kind::fallback_used,
                      .policy = name(),
                      .key = key_,
                      .execution = x.id,
                      .at = on_.now(),
                      .attempt = x.report.attempt_count};
    if (used) listeners_.tell(e);
    e.kind = event_kind::completed;
    e.reason = x.report.reason;
    if (x.report.refusal) e.code = make_error_code(*x.report.refusal);
    e.exception = x.report.exception;
    listeners_.tell(e);
}

pipeline_stats pipeline_impl::stats() const noexcept {
    return {.late_attempts = late_.load(std::memory_order_relaxed),
            .overdue_attempts = overdue_->load(std::memory_order_relaxed),
            .running = limiter_.running_now(),
            .queued = limiter_.waiting_now(),
            .circuit = breaker_.state(on_.now())};
}

void pipeline_impl::isolate_circuit() noexcept {
    if (current().has_breaker) breaker_.isolate(on_.now());
}
void pipeline_impl::close_circuit() noexcept {
    if (current().has_breaker) breaker_.close(on_.now());
}

void pipeline_impl::circuit_moved(const circuit_breaker::transition& t) const {
    if (!listeners_.any()) return;
    execution_event e{.kind = event_kind::circuit_closed, .policy = name(), .key = key_, .at = t.at};
    switch (t.to) {
    case circuit_state::closed: break;
    case circuit_state::open:
        e.kind = event_kind::circuit_opened;
        e.delay = t.break_for;
        break;
    case circuit_state::half_open: e.kind = event_kind::circuit_half_opened; break;
    case circuit_state::isolated: e.kind = event_kind::circuit_isolated; break;
    }
    listeners_.tell(e);
}

} // namespace holdfast
