// A policy is a named constant: what to do when a call fails, is slow, or comes too often. It holds no state and runs
// nothing; the host's runtime turns it into a pipeline. A policy that makes no sense does not compile.
//
//   inline constexpr auto invoice_email = holdfast::policy({
//       .name = "invoice-email",
//       .retry = {.max_attempts = 4, .delay = 10s, .backoff = holdfast::backoff::exponential, .max_delay = 5min},
//       .timeout = 30s,
//   });
//
// Stages run in this order, outermost first: fallback, rate limit, concurrency limit, total timeout, retry or hedge,
// circuit breaker, attempt timeout, your code.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <holdfast/backoff.hpp>
#include <holdfast/duration.hpp>
#include <holdfast/error.hpp>
#include <holdfast/rule.hpp>

namespace holdfast {

inline constexpr std::size_t max_intervals = 16;
using interval_list = fixed_list<duration, max_intervals>;

// Naming any field switches retry on; fields left out take the default in the comment.
struct retry_options {
    // Looks at a failure and says how long to wait; nothing = the policy's own delay. Negative is taken as 0, too
    // much is cut to max_delay. May throw: the exception ends the execution.
    using delay_generator = std::optional<duration> (*)(const failure&, int retry_number);

    std::optional<int> max_attempts{};          // 3; after the first call, so 4 means up to 5 calls; `unlimited`
    std::optional<duration> delay{};            // 200ms
    std::optional<holdfast::backoff> backoff{}; // exponential
    std::optional<duration> max_delay{};        // 30s, or the delay itself where that is longer
    std::optional<bool> jitter{};               // true; see with_jitter
    interval_list intervals{};                  // exact delays; their number is the number of retries
    delay_generator delay_for = nullptr;        // none
    std::optional<bool> on_circuit_open{};      // false: a refusal by the breaker ends the execution at once

    constexpr bool enabled() const noexcept {
        return max_attempts || delay || backoff || max_delay || jitter || !intervals.empty() || delay_for != nullptr ||
               on_circuit_open;
    }
    friend constexpr bool operator==(const retry_options&, const retry_options&) = default;
};

// Give either consecutive_failures or failure_ratio.
struct breaker_options {
    std::optional<int> consecutive_failures{}; // opens after so many failures in a row
    std::optional<double> failure_ratio{};     // opens when this share of calls in the window failed, 0 < r <= 1
    std::optional<duration> window{};          // 30s
    std::optional<int> min_throughput{};       // 10; fewer calls in the window never open it
    std::optional<duration> break_for{};       // 5s
    std::optional<duration> max_break_for{};   // = break_for; larger: each break in a row doubles, up to this
    std::optional<int> probes{};               // 1; calls let through when half open, all must succeed to close
    std::optional<duration> probe_timeout{};   // 30s; a probe that did not end by then gives its permit back

    constexpr bool enabled() const noexcept { return consecutive_failures || failure_ratio; }
    constexpr bool mentioned() const noexcept {
        return enabled() || window || min_throughput || break_for || max_break_for || probes || probe_timeout;
    }
    friend constexpr bool operator==(const breaker_options&, const breaker_options&) = default;
};

struct concurrency_options {
    int limit = 0; // 0 = off
    int queue = 0; // callers that may wait, first come first served; the rest are refused
    friend constexpr bool operator==(const concurrency_options&, const concurrency_options&) = default;
};

struct rate_options {
    int permits = 0; // 0 = off
    duration per = std::chrono::seconds{1};
    int burst = 0; // 0 = permits
    friend constexpr bool operator==(const rate_options&, const rate_options&) = default;
};

// Each call earns `ratio` of a retry; `reserve` retries a second are free, so that low traffic may retry too.
struct budget_options {
    double ratio = 0; // 0 with reserve 0 = off
    double reserve = 0;
    friend constexpr bool operator==(const budget_options&, const budget_options&) = default;
};

// Starts another attempt when the first has not ended after a while; the first good answer wins, the others are
// asked to stop. Takes the place of retry. The call returns when all of its attempts have ended.
struct hedge_options {
    int max_hedges = 0; // 0 = off; after the first call, so 1 means up to 2 calls
    duration after = std::chrono::milliseconds{100};
    friend constexpr bool operator==(const hedge_options&, const hedge_options&) = default;
};

// When a fallback that a call brings along may answer in its place. Cancellation never falls back.
enum class fallback_when : unsigned char { failed, rejected_only, never };

struct policy_options {
    std::string_view name{};
    retry_options retry{};
    rule_list rules{};
    std::optional<duration> timeout{};       // of one attempt; `forever` = none, 0 = expired at once
    std::optional<duration> total_timeout{}; // of all attempts and the waits between them
    breaker_options breaker{};
    concurrency_options concurrency{};
    rate_options rate{};
    budget_options budget{};
    hedge_options hedge{};
    fallback_when fallback = fallback_when::failed;

    friend constexpr bool operator==(const policy_options&, const policy_options&) = default;
};

class invalid_policy : public failed {
public:
    explicit invalid_policy(const char* why) : failed({errc::invalid_policy, why, std::nullopt}) {}
};

// Retry options with every default filled in. Also used by whatever schedules a retry for later.
struct retry_settings {
    int max_attempts = 0;
    duration delay{};
    holdfast::backoff backoff = holdfast::backoff::exponential;
    duration max_delay{};
    bool jitter = true;
    bool on_circuit_open = false;
    interval_list intervals{};
    retry_options::delay_generator delay_for = nullptr;

    // The wait before retry n (n >= 1) that the policy itself gives.
    constexpr duration delay_before(int n, random_series& random) const noexcept {
        const duration plain = intervals.empty() ? backoff_delay(backoff, delay, max_delay, n)
                                                 : intervals[static_cast<std::size_t>(n - 1) % intervals.size()];
        return jitter ? with_jitter(plain, random) : plain;
    }
    // True when retry n would exceed the number of retries.
    constexpr bool spent(int n) const noexcept { return max_attempts != unlimited && n > max_attempts; }
};

constexpr retry_settings resolve(const retry_options& o) noexcept {
    if (!o.enabled()) return {};
    retry_settings s;
    s.delay = o.delay.value_or(std::chrono::milliseconds{200});
    s.backoff = o.backoff.value_or(backoff::exponential);
    const duration cap = std::chrono::seconds{30};
    s.max_delay = o.max_delay.value_or(s.delay > cap ? s.delay : cap);
    s.intervals = o.intervals;
    s.max_attempts = s.intervals.empty() ? o.max_attempts.value_or(3) : static_cast<int>(s.intervals.size());
    s.jitter = o.jitter.value_or(s.intervals.empty());
    s.on_circuit_open = o.on_circuit_open.value_or(false);
    s.delay_for = o.delay_for;
    return s;
}

namespace detail {
// Not constexpr on purpose: reached while compiling, the compiler shows the line and with it the reason.
[[noreturn]] inline void policy_is_invalid(const char* why) {
    throw invalid_policy(why);
}
} // namespace detail

// Every rule that a policy must keep. In a constant expression a breach does not compile; elsewhere it throws
// invalid_policy.
constexpr void validate(const policy_options& o) {
    using detail::policy_is_invalid;
    constexpr auto zero = duration::zero();

    if (o.name.empty()) policy_is_invalid("a policy needs a name");
    if (o.name.size() > 128) policy_is_invalid("a policy name has at most 128 characters");
    for (const char c : o.name) {
        const bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                          c == '_' || c == '.';
        if (!good) policy_is_invalid("a policy name is made of letters, digits, '-', '_' and '.'");
    }

    const auto& r = o.retry;
    if (r.max_attempts && *r.max_attempts < unlimited)
        policy_is_invalid("retry.max_attempts must be 0 or more, or holdfast::unlimited");
    if (r.delay && *r.delay < zero) policy_is_invalid("retry.delay must not be negative");
    if (r.max_delay && *r.max_delay < zero) policy_is_invalid("retry.max_delay must not be negative");
    if (r.max_delay && *r.max_delay < resolve(r).delay)
        policy_is_invalid("retry.max_delay is shorter than retry.delay");
    if (r.intervals.overflowed()) policy_is_invalid("retry.intervals holds at most 16 delays");
    for (const duration interval : r.intervals)
        if (interval < zero) policy_is_invalid("retry.intervals must not be negative");
    if (!r.intervals.empty() && (r.max_attempts || r.delay || r.backoff))
        policy_is_invalid("retry.intervals already says how often and how long: drop max_attempts, delay and backoff");

    if (o.rules.overflowed()) policy_is_invalid("rules holds at most 8 rules");
    for (const rule& each : o.rules)
        if (each.max_attempts < unlimited) policy_is_invalid("the attempts of a rule must not be negative");

    if (o.timeout && *o.timeout < zero) policy_is_invalid("timeout must not be negative");
    if (o.total_timeout && *o.total_timeout < zero) policy_is_invalid("total_timeout must not be negative");
    if (o.timeout && o.total_timeout && *o.timeout != forever && *o.timeout > *o.total_timeout)
        policy_is_invalid("timeout (of one attempt) is longer than total_timeout");

    const auto& b = o.breaker;
    if (b.mentioned() && !b.enabled()) policy_is_invalid("breaker needs consecutive_failures or failure_ratio");
    if (b.consecutive_failures && b.failure_ratio)
        policy_is_invalid("breaker takes consecutive_failures or failure_ratio, not both");
    if (b.consecutive_failures && *b.consecutive_failures < 1)
        policy_is_invalid("breaker.consecutive_failures must be at least 1");
    if (b.failure_ratio && !(*b.failure_ratio > 0 && *b.failure_ratio <= 1))
        policy_is_invalid("breaker.failure_ratio must be above 0 and at most 1");
    if (b.window && *b.window < std::chrono::milliseconds{10})
        policy_is_invalid("breaker.window must be at least 10ms");
    if (b.min_throughput && (*b.min_throughput < 1 || *b.min_throughput > 100'000))
        policy_is_invalid("breaker.min_throughput must be 1 to 100000");
    if (b.break_for && *b.break_for <= zero) policy_is_invalid("breaker.break_for must be positive");
    if (b.max_break_for && *b.max_break_for < b.break_for.value_or(std::chrono::seconds{5}))
        policy_is_invalid("breaker.max_break_for is shorter than breaker.break_for");
    if (b.probes && (*b.probes < 1 || *b.probes > 1000)) policy_is_invalid("breaker.probes must be 1 to 1000");
    if (b.probe_timeout && *b.probe_timeout <= zero) policy_is_invalid("breaker.probe_timeout must be positive");

    if (o.concurrency.limit < 0 || o.concurrency.queue < 0)
        policy_is_invalid("concurrency.limit and concurrency.queue must not be negative");
    if (o.concurrency.queue > 0 && o.concurrency.limit == 0)
        policy_is_invalid("concurrency.queue needs a concurrency.limit");

    if (o.rate.permits < 0 || o.rate.burst < 0) policy_is_invalid("rate.permits and rate.burst must not be negative");
    if (o.rate.per <= zero) policy_is_invalid("rate.per must be positive");
    if (o.rate.permits > 0 && o.rate.per.count() < o.rate.permits)
        policy_is_invalid("rate allows more than one call a nanosecond");
    if (o.rate.burst > 0 && o.rate.permits == 0) policy_is_invalid("rate.burst needs rate.permits");

    if (!(o.budget.ratio >= 0 && o.budget.ratio <= 1000) || !(o.budget.reserve >= 0 && o.budget.reserve <= 1e9))
        policy_is_invalid("budget.ratio must be 0 to 1000 and budget.reserve 0 to 1e9");

    if (o.hedge.max_hedges < 0 || o.hedge.max_hedges > 16) policy_is_invalid("hedge.max_hedges must be 0 to 16");
    if (o.hedge.after < zero) policy_is_invalid("hedge.after must not be negative");
    if (o.hedge.max_hedges > 0 && r.enabled()) policy_is_invalid("a policy retries or hedges, not both");
}

// A validated, named constant. Only a constant expression makes one, so its name lives as long as the program.
class policy {
public:
    consteval policy(const policy_options& options) : options_(options) { validate(options); }

    constexpr std::string_view name() const noexcept { return options_.name; }
    constexpr const policy_options& options() const noexcept { return options_; }

private:
    policy_options options_;
};

} // namespace holdfast
