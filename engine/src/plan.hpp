// A policy with every default filled in and every question a call asks answered beforehand. Immutable.
#pragma once

#include <algorithm>
#include <limits>

#include <holdfast/policy.hpp>

#include "circuit_breaker.hpp"
#include "rate_limiter.hpp"

namespace holdfast {

struct plan {
    explicit plan(const policy_options& o) : options(o), source(&o), retry(resolve(o.retry)) {
        has_retry = o.retry.enabled();
        has_breaker = o.breaker.enabled();
        has_concurrency = o.concurrency.limit > 0;
        has_rate = o.rate.permits > 0;
        has_budget = o.budget.ratio > 0 || o.budget.reserve > 0;
        has_hedge = o.hedge.max_hedges > 0;
        timeout = o.timeout.value_or(forever);
        total_timeout = o.total_timeout.value_or(forever);
        if (has_breaker) breaker = breaker_settings::from(o.breaker);
        constexpr int most = std::numeric_limits<int>::max();
        if (has_retry)
            max_number = retry.max_attempts == unlimited ? unlimited : std::min(retry.max_attempts, most - 1) + 1;
        if (has_hedge) max_number = o.hedge.max_hedges + 1;
        limited_in_time = timeout != forever || total_timeout != forever;
        for (const rule& each : o.rules) {
            if (each.then != rule::verdict::retry) continue;
            if (each.on == rule::subject::anything) inspects_values = true;
            if (each.on == rule::subject::exception_type) names_exceptions = true;
        }
        for (const rule& each : o.rules)
            if (each.then == rule::verdict::stop && each.on == rule::subject::anything) inspects_values = true;
        coarse_is_enough =
            !has_breaker || breaker.consecutive_failures > 0 || breaker.window >= std::chrono::seconds{10};
        breaker_decides_first = has_breaker && !has_concurrency && !has_rate && !has_hedge && !retry.on_circuit_open;
        plain = !has_breaker && !has_concurrency && !has_rate && !has_budget && !has_hedge && !limited_in_time &&
                !inspects_values;
    }

    policy_options options;
    const policy_options* source; // the catalog's copy this was made from: how a reload is noticed
    retry_settings retry;
    breaker_settings breaker;
    duration timeout = forever;
    duration total_timeout = forever;
    int max_number = 1; // calls, the first included; `unlimited`
    bool has_retry = false;
    bool has_breaker = false;
    bool has_concurrency = false;
    bool has_rate = false;
    bool has_budget = false;
    bool has_hedge = false;
    bool limited_in_time = false;
    bool inspects_values = false;       // rules look at good values too
    bool coarse_is_enough = false;      // the cheap clock will do to book a success
    bool breaker_decides_first = false; // no stage outside the breaker can refuse, and its refusal is final
    bool plain = false;                 // nothing but retry: a first attempt that succeeds needs no decision
    bool names_exceptions = false;      // exceptions that no rule names are not retried
    rate_limiter* rate = nullptr;       // the pipeline's; one per rate setting
};

} // namespace holdfast
