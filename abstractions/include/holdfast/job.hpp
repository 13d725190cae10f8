// A job is a struct and a function. The struct is what is kept, its options say how it is run:
//
//   struct send_invoice {
//       static constexpr holdfast::job_options options{.name = "invoice.send", .queue = "mail", .attempts = 5};
//       std::string invoice_id, to;
//   };
//   holdfast::task<void> handle(send_invoice job, holdfast::job_context& context);
//
// Options that make no sense do not compile, and the message says why.
#pragma once

#include <algorithm>
#include <concepts>
#include <optional>
#include <string>
#include <string_view>

#include <holdfast/codec.hpp>
#include <holdfast/duration.hpp>
#include <holdfast/error.hpp>
#include <holdfast/policy.hpp>
#include <holdfast/rule.hpp>

namespace holdfast {

// What becomes of a job whose worker died in the middle of it.
enum class restart : unsigned char {
    unset,   // what a base type says (restart_rule), else what the host says, else allowed
    allowed, // run again, as often as max_crashes says
    never,   // failed, for a person to look at, if it had begun
    probe,   // ask the job's probe whether it happened, then decide
};

// The answer of a probe.
enum class happened : unsigned char { yes, no, unknown };

inline constexpr int default_job_attempts = 3;
inline constexpr int max_job_attempts = 100;
inline constexpr int default_max_crashes = 3;

// Waits between attempts where a job says nothing else: 60s, doubled each time, at most 6h, with jitter.
inline constexpr retry_options default_job_retry{.delay = std::chrono::seconds{60},
                                                 .backoff = backoff::exponential,
                                                 .max_delay = std::chrono::hours{6},
                                                 .jitter = true};

struct job_options {
    std::string_view name{}; // what stores call it: keep it when the struct is renamed
    std::string_view queue = "default";
    int priority = 0;                        // higher first, within a queue
    std::optional<int> attempts{};           // 3; all of them, the first included: 1 to 100
    retry_options retry{};                   // the waits between attempts; see default_job_retry. Not max_attempts
    rule_list rules{};                       // errors that are not tried again; a job without a rule for it is
    std::optional<duration> timeout{};       // of one attempt: its stop token fires; none
    std::optional<duration> hard_deadline{}; // of one attempt that ignores its token: given up as stuck; none
    std::string_view policy{};               // every attempt runs under this resilience policy; none
    holdfast::restart restart = restart::unset;
    std::optional<int> max_crashes{};   // 3; restarts after a crash, then dead letter
    std::optional<duration> keep_for{}; // after it succeeded; nothing = the store's own default, 0 = not at all
    bool isolate = false;               // a host runs the handler in a process of its own
    int version = 1;                    // of the struct, written beside its bytes
};

// The waits between the attempts of a job, with the defaults for jobs filled in.
constexpr retry_settings job_waits(retry_options own) noexcept {
    if (own.intervals.empty()) {
        if (!own.delay) own.delay = default_job_retry.delay;
        if (!own.backoff) own.backoff = default_job_retry.backoff;
    }
    if (!own.max_delay) own.max_delay = std::max(*default_job_retry.max_delay, own.delay.value_or(duration::zero()));
    return resolve(own);
}

class invalid_job : public failed {
public:
    explicit invalid_job(const char* why) : failed({errc::invalid_argument, why, std::nullopt}) {}
};

// Throws invalid_job; in a constant expression that is a compile error which quotes the sentence.
constexpr void check(const job_options& o) {
    if (o.name.empty()) throw invalid_job("a job needs a name: .name = \"invoice.send\"");
    if (o.queue.empty()) throw invalid_job("a job's queue has a name; leave .queue out for \"default\"");
    if (o.attempts && (*o.attempts < 1 || *o.attempts > max_job_attempts))
        throw invalid_job("a job's attempts may be 1 to 100");
    if (o.retry.max_attempts) throw invalid_job("a job's .retry has no max_attempts: .attempts says how often it runs");
    if (o.retry.on_circuit_open) throw invalid_job("on_circuit_open belongs to a policy, not to a job's .retry");
    if (o.retry.delay && *o.retry.delay < duration::zero()) throw invalid_job("a job's retry delay is negative");
    if (o.retry.delay && o.retry.max_delay && *o.retry.max_delay < *o.retry.delay)
        throw invalid_job("a job's max_delay is shorter than its delay");
    if (!o.retry.delay && o.retry.max_delay && *o.retry.max_delay < *default_job_retry.delay)
        throw invalid_job("a job's max_delay is shorter than its delay, which is 60s unless .delay is given");
    if (o.retry.intervals.overflowed()) throw invalid_job("a job's retry has more than 16 intervals");
    for (const duration each : o.retry.intervals)
        if (each < duration::zero()) throw invalid_job("one of a job's retry intervals is negative");
    if (!o.retry.intervals.empty() && (o.retry.delay || o.retry.backoff))
        throw invalid_job("a job's retry intervals already say how long: drop .delay and .backoff");
    if (o.rules.overflowed()) throw invalid_job("a job has more than 8 rules");
    for (const rule& each : o.rules)
        if (each.max_attempts != unlimited)
            throw invalid_job("a job's rule has no count of its own: .attempts counts for all errors");
    if (o.timeout && *o.timeout <= duration::zero()) throw invalid_job("a job's timeout must be longer than 0");
    if (o.hard_deadline && *o.hard_deadline <= duration::zero())
        throw invalid_job("a job's hard_deadline must be longer than 0");
    if (o.timeout && o.hard_deadline && *o.hard_deadline < *o.timeout)
        throw invalid_job("a job's hard_deadline is shorter than its timeout");
    if (o.max_crashes && *o.max_crashes < 0) throw invalid_job("a job's max_crashes is negative");
    if (o.keep_for && *o.keep_for < duration::zero()) throw invalid_job("a job's keep_for is negative");
    if (o.version < 1) throw invalid_job("a job's version is 1 or more");
}

template <class Job>
concept has_job_options = requires {
    { Job::options } -> std::convertible_to<const job_options&>;
};

namespace detail {

template <class Job>
concept has_restart_rule = requires {
    { Job::restart_rule } -> std::convertible_to<restart>;
};
template <class Job>
concept has_unique_key = requires(const Job& job) {
    { job.unique_key() } -> std::convertible_to<std::string>;
};

template <class Job>
consteval bool checked() {
    check(Job::options);
    return true;
}

} // namespace detail

// The options of a job type, checked.
template <class Job>
constexpr const job_options& options_of() {
    static_assert(has_job_options<Job>,
                  "a job declares its options: static constexpr holdfast::job_options options{.name = \"…\"};");
    static_assert(encodable<Job>, "a job needs a codec: include <holdfast/json.hpp> and BOOST_DESCRIBE_STRUCT it, or "
                                  "specialise holdfast::codec");
    static_assert(detail::checked<Job>());
    return Job::options;
}

// The restart rule of a job type: the nearest `static constexpr holdfast::restart restart_rule` of the type and its
// bases, else its options'. Where there are both they say the same.
template <class Job>
constexpr restart restart_of() {
    constexpr restart own = Job::options.restart;
    if constexpr (detail::has_restart_rule<Job>) {
        static_assert(
            own == restart::unset || own == Job::restart_rule,
            "this job's options.restart differs from its restart_rule, which may be a base's: keep one, or declare "
            "restart_rule here");
        return Job::restart_rule;
    } else {
        return own;
    }
}

} // namespace holdfast
