#include "pipeline_impl.hpp"

#include <coroutine>
#include <new>
#include <optional>
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
        return after_plain(in_force, what, x, end, a);
    }
    run_full(in_force, what, x);
}

// Apart from run(), so that this stays small.
[[gnu::noinline]] void pipeline_impl::after_plain(const plan& in_force, operation& what, execution& x, invoke_end end,
                                                  const attempt& first) noexcept {
    call c(*this, in_force, what, x);
    drive(c, what, c.after_plain_attempt(end, first));
}

[[gnu::noinline]] void pipeline_impl::run_full(const plan& in_force, operation& what, execution& x) noexcept {
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

// The ways a call without a thread can go, from the shortest on. The first attempt is made without a coroutine of the
// engine's own; one is made when there is something to wait for, or to decide, after it.
struct pipeline_impl::plain_run {
    const plan& in_force;
    attempt first;

    static plain_run& in(call_room& run) noexcept { return *std::launder(reinterpret_cast<plain_run*>(run.room)); }
};

struct pipeline_impl::full_run {
    full_run(pipeline_impl& p, const plan& in_force, async_operation& what, execution& x) noexcept
        : decide(p, in_force, what, x) {}
    call decide;
    std::optional<attempt> first;

    static full_run& in(call_room& run) noexcept { return *std::launder(reinterpret_cast<full_run*>(run.room)); }
};

std::coroutine_handle<> pipeline_impl::start_async(async_operation& what, execution& x, call_room& run,
                                                   std::coroutine_handle<> then) {
    static_assert(sizeof(plain_run) <= call_room::room_size && sizeof(full_run) <= call_room::room_size);
    const plan& in_force = current();
    x.report.policy = cell_.name;
    run.owner = this;
    run.what = &what;
    run.x = &x;
    run.then = then;
    if (is_plain(in_force, x)) {
        auto* plain = ::new (run.room)
            plain_run{in_force, attempt(on_, cell_.name, x.stop, 1, in_force.max_number, never, overdue_)};
        run.ended = &plain_ended;
        return what.start(plain->first, 0, run);
    }
    return start_full(in_force, run);
}

[[gnu::noinline]] std::coroutine_handle<> pipeline_impl::start_full(const plan& in_force, call_room& run) {
    async_operation& what = *run.what;
    execution& x = *run.x;
    auto* full = ::new (run.room) full_run(*this, in_force, what, x);
    call& c = full->decide;
    const call::next entered = c.enter();
    if (entered == call::next::finished) [[unlikely]]
        return run.then;
    if (entered == call::next::wait_for_slot || in_force.has_hedge) [[unlikely]]
        return run.go_on(run_waiting(c, what, entered));
    const call::next first = c.before_attempt();
    if (first == call::next::finished) [[unlikely]]
        return run.then;
    if (first != call::next::attempt) [[unlikely]]
        return run.go_on(drive(c, what, first));
    full->first.emplace(on_, cell_.name, x.stop, 1, in_force.max_number, c.deadline(), overdue_);
    run.ended = &full_ended;
    return what.start(*full->first, 0, run);
}

std::coroutine_handle<> pipeline_impl::plain_ended(detail::task_end& of) noexcept {
    auto& run = static_cast<call_room&>(of);
    plain_run& plain = plain_run::in(run);
    run.x->report.attempt_count = 1;
    const invoke_end end = run.what->ended(0);
    if (end == invoke_end::value) [[likely]] {
        plain.first.~attempt();
        return run.then;
    }
    return run.go_on(after_plain(static_cast<pipeline_impl&>(*run.owner), run));
}

std::coroutine_handle<> pipeline_impl::full_ended(detail::task_end& of) noexcept {
    auto& run = static_cast<call_room&>(of);
    full_run& full = full_run::in(run);
    const invoke_end end = run.what->ended(0);
    if (full.decide.succeeded(end)) [[likely]] {
        full.first.reset();
        return run.then;
    }
    return run.go_on(after_full(static_cast<pipeline_impl&>(*run.owner), run));
}

task<void> pipeline_impl::after_plain(pipeline_impl& self, call_room& run) {
    plain_run& plain = plain_run::in(run);
    const invoke_end end = run.what->finish(0);
    call c(self, plain.in_force, *run.what, *run.x);
    const call::next then = c.after_plain_attempt(end, plain.first);
    plain.first.~attempt();
    if (then != call::next::finished) co_await self.drive(c, *run.what, then);
}

task<void> pipeline_impl::after_full(pipeline_impl& self, call_room& run) {
    full_run& full = full_run::in(run);
    const invoke_end end = run.what->finish(0);
    const call::next then = full.decide.not_succeeded(end, *full.first);
    full.first.reset();
    if (then != call::next::finished) co_await self.drive(full.decide, *run.what, then);
}

task<void> pipeline_impl::run_waiting(call& c, async_operation& what, call_next then) {
    if (then == call::next::wait_for_slot)
        then = c.waited_for_slot(co_await wait_in_line(limiter_, c.plan().options.concurrency, on_, c.stop()));
    if (then == call::next::finished) co_return;
    if (c.plan().has_hedge) {
        co_await run_hedged(c, what);
        co_return;
    }
    then = c.before_attempt();
    if (then != call::next::finished) co_await drive(c, what, then);
}

task<void> pipeline_impl::run_async(async_operation& what, execution& x) {
    struct start {
        pipeline_impl& self;
        async_operation& what;
        execution& x;
        call_room run{};
        bool await_ready() const noexcept { return false; }
        std::coroutine_handle<> await_suspend(std::coroutine_handle<> then) {
            return self.start_async(what, x, run, then);
        }
        void await_resume() const { run.check(); }
    };
    start run{*this, what, x};
    co_await run;
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
