// Every decision about one execution, in one place, with no waiting in it: the drivers do what it says. One thread at
// a time.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include <holdfast/attempt.hpp>
#include <holdfast/operation.hpp>
#include <holdfast/pipeline.hpp>

#include "pipeline_impl.hpp"

namespace holdfast {

class call {
public:
    using next = call_next;

    call(pipeline_impl& p, const holdfast::plan& in_force, operation_slots& slots, execution& x) noexcept
        : p_(p), plan_(in_force), slots_(slots), x_(x), listening_(p.listeners_.any()) {
        if (listening_) [[unlikely]]
            x_.id = p_.listeners_.next_execution();
    }
    call(const call&) = delete;
    call& operator=(const call&) = delete;

    const holdfast::plan& plan() const noexcept { return plan_; }

    // The stages outside the attempts.
    [[gnu::always_inline]] next enter() noexcept {
        if (x_.stop.stop_requested()) [[unlikely]]
            return cancel();
        if (plan_.has_rate && !take_rate_permit()) return next::finished;
        if (plan_.has_concurrency) {
            switch (p_.limiter_.try_enter(plan_.options.concurrency)) {
            case concurrency_limiter::entry::entered: holds_slot_ = true; break;
            case concurrency_limiter::entry::must_wait: return next::wait_for_slot;
            case concurrency_limiter::entry::full: return reject(errc::concurrency_limited);
            }
        }
        return entered();
    }
    next waited_for_slot(concurrency_limiter::wait_end end) noexcept;

    // The stages around one attempt. `attempt`: number() and deadline() are set.
    [[gnu::always_inline]] next before_attempt() noexcept {
        if (x_.stop.stop_requested()) [[unlikely]]
            return cancel();
        ++number_;
        deadline_ = never;
        if (plan_.limited_in_time || listening_) {
            started_ = now_is_fresh_ ? now_ : read_clock();
            now_is_fresh_ = false;
            if (plan_.limited_in_time) {
                deadline_ = total_deadline_;
                if (plan_.timeout != forever) {
                    const time_point own = saturating_add(started_, plan_.timeout);
                    if (own < deadline_) deadline_ = own;
                }
                if (started_ >= deadline_) [[unlikely]]
                    return expired_on_entry();
            }
        }
        if (plan_.has_breaker) {
            duration retry_after{};
            if (!p_.breaker_.enter(plan_.breaker, [&] { return time_of_start(); }, permit_, retry_after)) [[unlikely]]
                return circuit_refused(retry_after);
        }
        if (listening_) [[unlikely]]
            tell_started(number_);
        if (number_ > 1) forget_last_attempt();
        return next::attempt;
    }
    [[gnu::always_inline]] next after_attempt(invoke_end end, const attempt& a) noexcept {
        return succeeded(end) ? next::finished : settle(end, late_, a);
    }
    // The first half of that, which never looks at the result: true when all is well, and finished.
    [[gnu::always_inline]] bool succeeded(invoke_end end) noexcept {
        const bool watched = listening_ || x_.ledger != nullptr;
        if (end == invoke_end::value && !watched && surely_in_time()) [[likely]]
            now_ = coarse_;
        else if (plan_.limited_in_time || listening_) now_ = read_clock();
        late_ = deadline_ != never && now_ >= deadline_;
        if (end != invoke_end::value || late_ || plan_.inspects_values) [[unlikely]]
            return false;
        if (plan_.has_breaker)
            p_.breaker_.record(
                plan_.breaker, [&] { return time_of_end(); }, permit_, circuit_breaker::verdict::success);
        record(attempt_end::succeeded, nullptr);
        finish(stop_reason::succeeded);
        return true;
    }
    // The second half, once the result is in its slot.
    next not_succeeded(invoke_end end, const attempt& a) noexcept { return settle(end, late_, a); }

    // In place of all of the above, for a plain plan whose first attempt was made before anybody had to decide.
    next after_plain_attempt(invoke_end end, const attempt& a) noexcept {
        number_ = 1;
        return settle(end, false, a);
    }

    duration delay() const noexcept { return delay_; }
    time_point resume_at() const noexcept { return resume_at_; }
    next woke(sleep_end end) noexcept;

    int number() const noexcept { return number_; }
    time_point deadline() const noexcept { return deadline_; }
    const std::stop_token& stop() const noexcept { return x_.stop; }
    runtime& on() const noexcept { return p_.on_; }
    pipeline_impl& owner() const noexcept { return p_; }
    const overdue_count& overdue() const noexcept { return p_.overdue_; }

    // Hedged attempts run at the same time, each with a slot of its own; see hedge.cpp.
    struct hedged_attempt {
        int number = 0;
        time_point started{};
        time_point deadline = never;
        circuit_breaker::permit permit{};
        bool timed_out = false;
    };
    enum class hedge_verdict : unsigned char { won, failed, terminal, lost };
    // Nothing: go. Else why it may not start.
    std::optional<errc> before_hedge(hedged_attempt& h) noexcept;
    hedge_verdict after_hedge(hedged_attempt& h, invoke_end end, time_point ended, bool decided) noexcept;
    // The result is what is in the slot.
    void finish_hedged(unsigned slot, stop_reason reason, std::optional<errc> refusal) noexcept;
    void finish_hedged_cancelled() noexcept { cancel(); }
    bool out_of_time() const noexcept { return total_deadline_ != never && read_clock() >= total_deadline_; }
    bool may_hedge() noexcept { return !plan_.has_budget || p_.budget_.spend(plan_.options.budget, read_clock()); }
    time_point read_clock() const noexcept { return p_.on_.now(); }

private:
    struct judgement {
        bool retry = false;
        int rule = -1;
        bool good = false; // a value that no rule minds
    };

    [[gnu::always_inline]] next entered() noexcept {
        if (plan_.has_budget) p_.budget_.earn(plan_.options.budget);
        if (plan_.total_timeout != forever) {
            if (!now_is_fresh_) now_ = read_clock();
            now_is_fresh_ = true;
            total_deadline_ = saturating_add(now_, plan_.total_timeout);
        }
        return next::attempt;
    }
    // The cheap clock is behind by a little; far from the deadline that does not matter.
    bool surely_in_time() noexcept {
        if (deadline_ == never || !plan_.coarse_is_enough) return false;
        coarse_ = p_.on_.coarse_now();
        return deadline_ - coarse_ > runtime::coarse_error;
    }
    bool take_rate_permit() noexcept;
    next reject(errc why) noexcept;
    next cancel() noexcept;
    next expired_on_entry() noexcept;
    next circuit_refused(duration retry_after) noexcept;
    next settle(invoke_end end, bool late, const attempt& a) noexcept;
    next retry_or_finish(const failure& f, int rule, std::optional<duration> hint);
    next finish(stop_reason reason) noexcept {
        x_.report.reason = reason;
        x_.report.attempt_count = number_;
        if (reason != stop_reason::succeeded && !x_.report.refusal && !x_.report.exception)
            x_.report.exception = slots_.exception(chosen_);
        if (holds_slot_) p_.limiter_.leave();
        if (listening_) [[unlikely]]
            tell_completed();
        return next::finished;
    }
    next finish_with(stop_reason reason, errc refusal) noexcept {
        x_.report.refusal = refusal;
        return finish(reason);
    }
    next finish_with_thrown(std::exception_ptr by_user_code) noexcept;

    judgement judge(const failure& f) const; // may throw: rules are user code
    bool spent(int rule) noexcept;
    duration choose_delay(const failure& f, std::optional<duration> hint); // may throw
    time_point time_of_start() const noexcept { return plan_.limited_in_time || listening_ ? started_ : read_clock(); }
    time_point time_of_end() const noexcept { return plan_.limited_in_time || listening_ ? now_ : read_clock(); }
    void give_back(circuit_breaker::verdict v) noexcept {
        if (plan_.has_breaker) p_.breaker_.record(plan_.breaker, [&] { return time_of_end(); }, permit_, v);
    }

    // The failure, if any, is in the attempt's slot.
    void record(attempt_end end, const failure* f) noexcept {
        if (x_.ledger != nullptr || listening_) record(end, f, 0, number_, started_);
    }
    void record(attempt_end end, const failure* f, unsigned slot, int number, time_point started) noexcept;
    void forget_last_attempt() noexcept {
        slots_.clear(0);
        x_.report.refusal.reset();
        x_.report.retry_after.reset();
    }
    execution_event event(event_kind kind) const noexcept;
    void tell_started(int number, event_kind kind = event_kind::attempt_started) const noexcept;
    void tell_retry() const noexcept;
    void tell_completed() const noexcept;

    pipeline_impl& p_;
    const holdfast::plan& plan_;
    operation_slots& slots_;
    execution& x_;
    const bool listening_;
    bool holds_slot_ = false;
    bool now_is_fresh_ = false; // now_ was read in this very step
    bool late_ = false;
    int number_ = 0;
    unsigned chosen_ = 0;
    circuit_breaker::permit permit_{};
    time_point now_{};
    time_point coarse_{};
    time_point started_{};
    time_point deadline_ = never;
    time_point total_deadline_ = never;
    duration delay_{};
    time_point resume_at_{};
    std::optional<std::array<int, max_rules>> rule_counts_;
    std::optional<random_series> random_;
};

} // namespace holdfast
