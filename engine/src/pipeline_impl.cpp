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
    const plan& in_force = current();
    x.report.policy = cell_.name;
    if (is_plain(in_force, x)) {
        attempt a(on_, cell_.name, x.stop, 1, in_force.max_number, never, overdue_);
        const invoke_end end = what.invoke(a, 0);
        x.report.attempt_count = 1;
        if (end == invoke_end::value) [[likely]]
            return;
        call c(*this, in_force, what, x);
        return drive(c, what, c.after_plain_attempt(end, a));
    }
    if (in_force.breaker_decides_first && !breaker_.closed() && refused_at_once(in_force, x)) [[unlikely]]
        return;
    call c(*this, in_force, what, x);
    call::next then = c.enter();
    if (then == call::next::wait_for_slot) [[unlikely]]
        then = c.waited_for_slot(sync_wait(on_, wait_in_line(limiter_, in_force.options.concurrency, on_, x.stop)));
    if (then == call::next::finished) [[unlikely]]
        return;
    if (in_force.has_hedge) [[unlikely]]
        return sync_wait(on_, run_hedged(c, what));
    then = c.before_attempt();
    if (then == call::next::attempt) [[likely]] {
        attempt a(on_, cell_.name, x.stop, 1, in_force.max_number, c.deadline(), overdue_);
        const invoke_end end = what.invoke(a, 0);
        then = c.after_attempt(end, a);
    }
    if (then != call::next::finished) [[unlikely]]
        drive(c, what, then);
}

bool pipeline_impl::refused_at_once(const plan& in_force, execution& x) const noexcept {
    if (in_force.total_timeout == duration::zero() || in_force.timeout == duration::zero()) return false;
    duration retry_after{};
    if (listeners_.any() || x.stop.stop_requested() || !breaker_.refuses(on_.now(), retry_after)) return false;
    x.report.reason = stop_reason::circuit_open;
    x.report.refusal = errc::circuit_open;
    x.report.retry_after = retry_after;
    return true;
}

// Everything after the first attempt.
void pipeline_impl::drive(call& c, operation& what, call_next then) noexcept {
    for (;;) {
        switch (then) {
        case call::next::attempt: {
            attempt a(on_, cell_.name, c.stop(), c.number(), c.plan().max_number, c.deadline(), overdue_);
            const invoke_end end = what.invoke(a, 0);
            then = c.after_attempt(end, a);
            break;
        }
        case call::next::wait:
            then = c.woke(c.delay() == duration::zero() ? sleep_end::due : block_until(on_, c.resume_at(), c.stop()));
            break;
        default: return;
        }
    }
}

task<void> pipeline_impl::run_async(async_operation& what, execution& x) {
    const plan& in_force = current();
    x.report.policy = cell_.name;
    return is_plain(in_force, x) ? run_plain(in_force, what, x) : run_full(in_force, what, x);
}

task<void> pipeline_impl::run_plain(const plan& in_force, async_operation& what, execution& x) {
    attempt a(on_, cell_.name, x.stop, 1, in_force.max_number, never, overdue_);
    const invoke_end end = co_await invoke_async{what, a, 0};
    x.report.attempt_count = 1;
    if (end == invoke_end::value) [[likely]]
        co_return;
    co_await run_rest(in_force, what, x, end, a);
}

// A plain execution whose first attempt failed. A coroutine of its own, so that the frame above stays small.
task<void> pipeline_impl::run_rest(const plan& in_force, async_operation& what, execution& x, invoke_end end,
                                   const attempt& first) {
    call c(*this, in_force, what, x);
    const call::next then = c.after_plain_attempt(end, first);
    if (then != call::next::finished) co_await drive(c, what, then);
}

task<void> pipeline_impl::run_full(const plan& in_force, async_operation& what, execution& x) {
    call c(*this, in_force, what, x);
    call::next then = c.enter();
    if (then == call::next::wait_for_slot) [[unlikely]]
        then = c.waited_for_slot(co_await wait_in_line(limiter_, in_force.options.concurrency, on_, x.stop));
    if (then == call::next::finished) [[unlikely]]
        co_return;
    if (in_force.has_hedge) [[unlikely]] {
        co_await run_hedged(c, what);
        co_return;
    }
    then = c.before_attempt();
    if (then == call::next::attempt) [[likely]] {
        attempt a(on_, cell_.name, x.stop, 1, in_force.max_number, c.deadline(), overdue_);
        const invoke_end end = co_await invoke_async{what, a, 0};
        then = c.after_attempt(end, a);
    }
    if (then != call::next::finished) [[unlikely]]
        co_await drive(c, what, then);
}

task<void> pipeline_impl::drive(call& c, async_operation& what, call_next then) {
    for (;;) {
        switch (then) {
        case call::next::attempt: {
            attempt a(on_, cell_.name, c.stop(), c.number(), c.plan().max_number, c.deadline(), overdue_);
            const invoke_end end = co_await invoke_async{what, a, 0};
            then = c.after_attempt(end, a);
            break;
        }
        case call::next::wait: {
            sleep_end woke = sleep_end::due;
            if (c.delay() > duration::zero()) woke = co_await sleep_until(on_, c.resume_at(), c.stop());
            then = c.woke(woke);
            break;
        }
        default: co_return;
        }
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
