#include "call.hpp"

#include <algorithm>
#include <utility>

namespace holdfast {

bool call::take_rate_permit() noexcept {
    now_ = read_clock();
    now_is_fresh_ = true;
    duration retry_after{};
    if (plan_.rate->try_take(now_, retry_after)) return true;
    x_.report.retry_after = retry_after;
    reject(errc::rate_limited);
    return false;
}

call::next call::reject(errc why) noexcept {
    if (listening_) {
        auto e = event(event_kind::rejected);
        e.code = make_error_code(why);
        p_.listeners_.tell(e);
    }
    return finish_with(stop_reason::rejected, why);
}

call::next call::cancel() noexcept {
    slots_.clear(0); // the failure of an earlier attempt is not the answer
    return finish_with(stop_reason::cancelled, errc::cancelled);
}

call::next call::waited_for_slot(concurrency_limiter::wait_end end) noexcept {
    switch (end) {
    case concurrency_limiter::wait_end::entered: break;
    case concurrency_limiter::wait_end::full: return reject(errc::concurrency_limited);
    case concurrency_limiter::wait_end::cancelled: return cancel();
    }
    holds_slot_ = true;
    now_is_fresh_ = false;
    return entered();
}

// The attempt is not made. When it is the total time that has passed, it does not count either.
call::next call::expired_on_entry() noexcept {
    now_ = started_;
    if (started_ >= total_deadline_) {
        --number_;
        // The last real failure, where there is one, is still in its slot.
        if (number_ == 0) return finish_with(stop_reason::deadline, errc::timed_out);
        return finish(stop_reason::deadline);
    }
    if (number_ > 1) forget_last_attempt();
    record(attempt_end::timed_out, nullptr);
    x_.report.refusal = errc::timed_out;
    try {
        return retry_or_finish(failure::refused(errc::timed_out), -1, std::nullopt);
    } catch (...) {
        return finish_with_thrown(std::current_exception());
    }
}

// A refusal that ends the execution is no attempt: it spent nothing. One that is to be retried counts as one.
call::next call::circuit_refused(duration retry_after) noexcept {
    if (number_ > 1) forget_last_attempt();
    x_.report.refusal = errc::circuit_open;
    x_.report.retry_after = retry_after;
    if (!plan_.retry.on_circuit_open) {
        --number_;
        return finish(stop_reason::circuit_open);
    }
    record(attempt_end::refused, nullptr);
    try {
        return retry_or_finish(failure::refused(errc::circuit_open), -1, retry_after);
    } catch (...) {
        return finish_with_thrown(std::current_exception());
    }
}

call::next call::settle(invoke_end end, bool late, const attempt& a) noexcept {
    using verdict = circuit_breaker::verdict;
    if (late) p_.late_.fetch_add(1, std::memory_order_relaxed);
    const failure seen = slots_.seen(0);

    if (x_.stop.stop_requested() && end != invoke_end::value) {
        give_back(verdict::ignored);
        record(attempt_end::cancelled, &seen);
        if (end == invoke_end::threw) return cancel();
        return finish(stop_reason::cancelled); // a returned failure is a value; it is kept
    }

    judgement judged;
    try {
        judged = judge(seen);
    } catch (...) {
        give_back(verdict::ignored);
        record(attempt_end::failed, &seen);
        slots_.clear(0);
        return finish_with_thrown(std::current_exception());
    }

    if (judged.good) { // possibly too late, but a value that exists is not thrown away
        give_back(late ? verdict::failure : verdict::success);
        record(late ? attempt_end::timed_out : attempt_end::succeeded, nullptr);
        return finish(stop_reason::succeeded);
    }
    const bool cancelled_itself = end == invoke_end::threw && seen.as<operation_cancelled>() != nullptr;
    const bool timed_out = late && end == invoke_end::threw && seen.as<non_retryable_error>() == nullptr;
    if (timed_out) {
        give_back(verdict::failure);
        record(attempt_end::timed_out, &seen);
        slots_.clear(0);
        x_.report.refusal = errc::timed_out;
    } else if (cancelled_itself) {
        give_back(verdict::ignored);
        record(attempt_end::cancelled, &seen);
        return finish(stop_reason::cancelled);
    } else {
        give_back(judged.retry ? verdict::failure : verdict::ignored);
        record(attempt_end::failed, &seen);
        if (!judged.retry) return finish(stop_reason::rule);
    }
    try {
        if (!timed_out) return retry_or_finish(seen, judged.rule, a.retry_after());
        const failure timeout = failure::refused(errc::timed_out);
        const judgement again = judge(timeout);
        if (!again.retry) return finish(stop_reason::rule);
        return retry_or_finish(timeout, again.rule, a.retry_after());
    } catch (...) {
        slots_.clear(0);
        x_.report.refusal.reset();
        return finish_with_thrown(std::current_exception());
    }
}

call::judgement call::judge(const failure& f) const {
    if (f.is_terminal()) return {};
    const auto& rules = plan_.options.rules;
    for (const rule& each : rules)
        if (each.then == rule::verdict::stop && each.applies_to(f)) return {};
    for (std::size_t i = 0; i < rules.size(); ++i)
        if (rules[i].then == rule::verdict::retry && rules[i].applies_to(f))
            return {.retry = true, .rule = static_cast<int>(i), .good = false};
    if (f.is_value()) return {.retry = false, .rule = -1, .good = true};
    if (f.is_returned_failure()) return {};
    return {.retry = !f.is_exception() || !plan_.names_exceptions, .rule = -1, .good = false};
}

bool call::spent(int rule) noexcept {
    if (!plan_.has_retry || plan_.retry.spent(number_)) return true;
    if (rule < 0) return false;
    const int most = plan_.options.rules[static_cast<std::size_t>(rule)].max_attempts;
    if (!rule_counts_) rule_counts_.emplace(std::array<int, max_rules>{});
    int& count = (*rule_counts_)[static_cast<std::size_t>(rule)];
    if (most != unlimited && count >= most) return true;
    ++count;
    return false;
}

duration call::choose_delay(const failure& f, std::optional<duration> hint) {
    const auto& retry = plan_.retry;
    std::optional<duration> asked = retry.delay_for != nullptr ? retry.delay_for(f, number_) : std::nullopt;
    if (!asked) asked = hint ? hint : f.retry_after();
    if (asked) return std::clamp(*asked, duration::zero(), retry.max_delay);
    if (!random_)
        random_.emplace(p_.seed_ ^ p_.series_.fetch_add(1, std::memory_order_relaxed) * 0x9e3779b97f4a7c15ULL);
    return retry.delay_before(number_, *random_);
}

call::next call::retry_or_finish(const failure& f, int rule, std::optional<duration> hint) {
    const bool timed_out = x_.report.refusal == errc::timed_out;
    if (timed_out && now_ >= total_deadline_)
        return finish(stop_reason::deadline); // also where it was the last attempt
    if (spent(rule)) return finish(stop_reason::exhausted);
    delay_ = choose_delay(f, hint);
    const bool bounded = total_deadline_ != never;
    if (delay_ > duration::zero() || bounded || plan_.has_budget) now_ = read_clock();
    resume_at_ = saturating_add(now_, delay_);
    if (bounded && resume_at_ >= total_deadline_) return finish(stop_reason::deadline);
    if (plan_.has_budget && !p_.budget_.spend(plan_.options.budget, now_)) return finish(stop_reason::budget);
    if (x_.ledger != nullptr) x_.ledger->last()->delay_after = delay_;
    if (listening_) tell_retry();
    return next::wait;
}

call::next call::woke(sleep_end end) noexcept {
    now_is_fresh_ = false;
    if (end == sleep_end::cancelled || x_.stop.stop_requested()) return cancel();
    if (end == sleep_end::stopped) {
        slots_.clear(0);
        return finish_with(stop_reason::cancelled, errc::stopped);
    }
    return before_attempt();
}

call::next call::finish_with_thrown(std::exception_ptr by_user_code) noexcept {
    slots_.clear(0);
    x_.report.exception = std::move(by_user_code);
    return finish(stop_reason::rule);
}

std::optional<errc> call::before_hedge(hedged_attempt& h) noexcept {
    if (x_.stop.stop_requested()) return errc::cancelled;
    h.started = read_clock();
    h.deadline = std::min(total_deadline_, saturating_add(h.started, plan_.timeout));
    if (h.started >= h.deadline) return errc::timed_out;
    if (plan_.has_breaker) {
        duration retry_after{};
        if (!p_.breaker_.enter(plan_.breaker, [&] { return h.started; }, h.permit, retry_after)) {
            if (h.number == 1) x_.report.retry_after = retry_after;
            return errc::circuit_open;
        }
    }
    number_ = h.number;
    if (listening_) {
        if (h.number > 1) tell_started(h.number, event_kind::hedge_started);
        tell_started(h.number);
    }
    return std::nullopt;
}

call::hedge_verdict call::after_hedge(hedged_attempt& h, invoke_end end, time_point ended, bool decided) noexcept {
    using verdict = circuit_breaker::verdict;
    const auto slot = static_cast<unsigned>(h.number - 1);
    const auto conclude = [&](hedge_verdict v, verdict for_breaker, attempt_end how, const failure* f) {
        if (plan_.has_breaker) p_.breaker_.record(plan_.breaker, [&] { return ended; }, h.permit, for_breaker);
        now_ = ended;
        if (x_.ledger != nullptr || listening_) record(how, f, slot, h.number, h.started);
        return v;
    };
    const bool late = ended >= h.deadline;
    if (late) p_.late_.fetch_add(1, std::memory_order_relaxed);
    const failure seen = slots_.seen(slot);
    if (decided || (x_.stop.stop_requested() && end != invoke_end::value))
        return conclude(hedge_verdict::lost, verdict::ignored, attempt_end::cancelled, &seen);

    judgement judged;
    try {
        judged = judge(seen);
    } catch (...) {
        x_.report.exception = std::current_exception();
        const auto v = conclude(hedge_verdict::terminal, verdict::ignored, attempt_end::failed, &seen);
        slots_.clear(slot);
        return v;
    }
    if (judged.good) {
        return conclude(hedge_verdict::won, late ? verdict::failure : verdict::success,
                        late ? attempt_end::timed_out : attempt_end::succeeded, nullptr);
    }
    if (late && end == invoke_end::threw && seen.as<non_retryable_error>() == nullptr) {
        h.timed_out = true;
        return conclude(hedge_verdict::failed, verdict::failure, attempt_end::timed_out, &seen);
    }
    return conclude(judged.retry ? hedge_verdict::failed : hedge_verdict::terminal,
                    judged.retry ? verdict::failure : verdict::ignored, attempt_end::failed, &seen);
}

void call::finish_hedged(unsigned slot, stop_reason reason, std::optional<errc> refusal) noexcept {
    chosen_ = slot;
    slots_.choose(slot);
    if (refusal) {
        slots_.clear(slot);
        x_.report.refusal = refusal;
    }
    finish(reason);
}

void call::record(attempt_end end, const failure* f, unsigned slot, int number, time_point started) noexcept {
    attempt_record here;
    attempt_record& r = x_.ledger != nullptr ? x_.ledger->add() : here;
    r.number = number;
    r.end = end;
    r.hedge = plan_.has_hedge && number > 1;
    if (plan_.limited_in_time || listening_ || plan_.has_hedge) r.took = now_ - started;
    if (f != nullptr) {
        if (const auto code = f->code()) r.code = code;
        if (f->is_exception()) r.exception = slots_.exception(slot);
    } else if (end == attempt_end::timed_out) {
        r.code = make_error_code(errc::timed_out);
    } else if (end == attempt_end::refused) {
        r.code = make_error_code(errc::circuit_open);
    }
    if (!listening_) return;
    auto e = event(event_kind::attempt_ended);
    e.attempt = number;
    e.end = end;
    e.took = r.took;
    e.code = r.code.value_or(std::error_code());
    e.exception = r.exception;
    p_.listeners_.tell(e);
}

execution_event call::event(event_kind kind) const noexcept {
    return {
        .kind = kind, .policy = p_.name(), .key = p_.key_, .execution = x_.id, .at = read_clock(), .attempt = number_};
}

void call::tell_started(int number, event_kind kind) const noexcept {
    auto e = event(kind);
    e.attempt = number;
    p_.listeners_.tell(e);
}

void call::tell_retry() const noexcept {
    auto e = event(event_kind::retry_scheduled);
    e.delay = delay_;
    p_.listeners_.tell(e);
}

void call::tell_completed() const noexcept {
    if (x_.offers_fallback) return; // the fallback has the last word
    auto e = event(event_kind::completed);
    e.reason = x_.report.reason;
    if (x_.report.refusal) e.code = make_error_code(*x_.report.refusal);
    e.exception = x_.report.exception;
    p_.listeners_.tell(e);
}

} // namespace holdfast
