// What becomes of what failed, by the error it failed with: one table, read top to bottom.
//
//   holdfast::exception_policy rules;
//   rules.on<smtp_error>([](const smtp_error& e) { return e.transient(); }).retry(5, 200ms).then_redeliver();
//   rules.on<bad_address>().dead_letter();
//   rules.on<already_sent>().discard();
//   rules.on(std::errc::connection_reset).retry();
//   rules.default_().retry().then_redeliver().then_dead_letter();
//
// retry         again at once or soon, within the same delivery, which keeps its slot
// redeliver     later, as a new delivery with retries of its own; no slot is held meanwhile
// dead_letter   kept for people to look at; also where every chain ends by itself
// discard       dropped; counted and logged
//
// A chain that makes no sense does not compile. A number or a delay that makes none throws invalid_policy.
//
// A value: build it on one thread, then share it unchanged.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include <holdfast/exception_rule.hpp>

namespace holdfast {

// Calls of a handler for one message or job, over all its retries and redeliveries, before it is a dead letter.
inline constexpr int default_max_total_attempts = 100;

namespace detail {

constexpr retry_settings steps(int attempts, duration delay, backoff growth, duration most) {
    if (attempts < 1) policy_is_invalid("a rule retries or redelivers at least once; for never, say dead_letter()");
    if (delay < duration::zero()) policy_is_invalid("the delay of a rule must not be negative");
    return resolve(
        retry_options{.max_attempts = attempts, .delay = delay, .backoff = growth, .max_delay = std::max(most, delay)});
}

constexpr retry_settings steps(const interval_list& exact, duration most, bool jitter = false) {
    if (exact.empty()) policy_is_invalid("the intervals of a rule are empty; for never, say dead_letter()");
    if (exact.overflowed()) policy_is_invalid("a rule has at most 16 intervals");
    for (const duration each : exact) {
        if (each < duration::zero()) policy_is_invalid("the intervals of a rule must not be negative");
        most = std::max(most, each);
    }
    return resolve(retry_options{.max_delay = most, .jitter = jitter, .intervals = exact});
}

inline constexpr duration longest_retry_wait = std::chrono::seconds{30};
inline constexpr duration longest_redelivery_wait = std::chrono::hours{1};

constexpr retry_settings default_redelivery() {
    using std::chrono::minutes;
    return steps({minutes{5}, minutes{15}, minutes{30}}, longest_redelivery_wait, true);
}

} // namespace detail

class exception_policy;

// The places in a chain. Each has only what may follow; use them where they stand, in one expression.
class finished_rule {};

class redelivering_rule {
public:
    // Says what happens anyway when all else is spent.
    finished_rule then_dead_letter() && { return {}; }
};

class retrying_rule {
public:
    // 5, 15 and 30 minutes, with jitter.
    redelivering_rule then_redeliver() &&;
    redelivering_rule then_redeliver(int attempts, duration delay, backoff growth = backoff::exponential) &&;
    redelivering_rule then_redeliver(const interval_list& exact) &&;
    // Says what happens anyway when the retries are spent.
    finished_rule then_dead_letter() && { return {}; }

private:
    friend class unfinished_rule;
    retrying_rule(exception_policy& in, std::size_t at) : in_(in), at_(at) {}
    redelivering_rule redeliver(retry_settings how);

    exception_policy& in_;
    const std::size_t at_;
};

// Nothing is declared until it is said what to do.
class [[nodiscard("say what to do: retry(), redeliver(), dead_letter() or discard()")]] unfinished_rule {
public:
    // Attempts after the first call: 3, after 200ms, doubled each time, at most 30s, with jitter. No redelivery, unless
    // the chain goes on.
    retrying_rule retry(int attempts = 3, duration delay = std::chrono::milliseconds{200},
                        backoff growth = backoff::exponential) &&;
    // Exactly these waits, as many retries.
    retrying_rule retry(const interval_list& exact) &&;

    // Without retries. 5, 15 and 30 minutes, with jitter.
    redelivering_rule redeliver() &&;
    // At most 1h apart, or the delay where that is longer, with jitter.
    redelivering_rule redeliver(int attempts, duration delay, backoff growth = backoff::exponential) &&;
    redelivering_rule redeliver(const interval_list& exact) &&;

    finished_rule dead_letter() &&;
    finished_rule discard() &&;

private:
    friend class exception_policy;
    unfinished_rule(exception_policy& in, exception_rule begun) : in_(in), rule_(std::move(begun)) {}
    retrying_rule retry(retry_settings how);
    redelivering_rule redeliver(retry_settings how);

    exception_policy& in_;
    exception_rule rule_;
};

class exception_policy {
public:
    // retry() and then redeliver() for whatever fails.
    static exception_policy standard();

    // E and what derives from it. The most derived type wins; then a rule with a predicate; then the first declared.
    // Without a predicate it takes the place of an earlier on<E>() without one.
    template <class E>
    unfinished_rule on() {
        return unfinished_rule(*this, {.type = &detail::catchable_as<E>});
    }
    // A predicate is called from several threads at once. When it throws, what failed is a dead letter with both errors.
    template <class E, std::predicate<const E&> Predicate>
    unfinished_rule on(Predicate predicate) {
        return unfinished_rule(*this, {.type = &detail::catchable_as<E>,
                                       .predicate = [predicate = std::move(predicate)](const failure& f) {
                                           return predicate(*f.as<E>());
                                       }});
    }
    // These codes, thrown as a std::system_error or holdfast::failed, or returned. Counts as a rule with a predicate on
    // the exception that carries the code. Takes over a code that an earlier rule had.
    template <std::convertible_to<matched_code>... More>
    unfinished_rule on(matched_code first, const More&... more) {
        return unfinished_rule(*this, {.codes = {std::move(first), matched_code(more)...}});
    }
    // What no other rule takes, exceptions that are no std::exception and failures without a code included. Takes the
    // place of an earlier one.
    unfinished_rule default_() { return unfinished_rule(*this, {}); }

    // What no rule here takes is for the next scope outside. Without it, this policy is all there is.
    exception_policy& inherit() noexcept {
        inherits_ = true;
        return *this;
    }
    // Of all retries and redeliveries together, the first call included: 1 or more; 100.
    exception_policy& max_total_attempts(int calls) {
        if (calls < 1) detail::policy_is_invalid("max_total_attempts must be at least 1");
        max_total_attempts_ = calls;
        return *this;
    }

    // As data. A rule replaces those that it leaves nothing to take.
    std::size_t add(exception_rule rule);
    const std::vector<exception_rule>& rules() const noexcept { return rules_; }
    bool inherits() const noexcept { return inherits_; }
    std::optional<int> max_total_attempts() const noexcept { return max_total_attempts_; }
    bool empty() const noexcept { return rules_.empty(); }

private:
    friend class retrying_rule;

    std::vector<exception_rule> rules_;
    std::optional<int> max_total_attempts_;
    bool inherits_ = false;
};

namespace detail {

inline bool replaces(const exception_rule& later, const exception_rule& earlier) {
    if (later.predicate || earlier.predicate || !later.codes.empty() || !earlier.codes.empty()) return false;
    if (later.type == nullptr || earlier.type == nullptr) return later.type == earlier.type;
    return *later.type->type == *earlier.type->type;
}

inline void take_over_codes(const exception_rule& later, std::vector<exception_rule>& from) {
    if (later.codes.empty() || later.predicate) return;
    const auto is_taken = [&](const matched_code& each) {
        return std::ranges::find(later.codes, each) != later.codes.end();
    };
    std::erase_if(from, [&](exception_rule& earlier) {
        return std::erase_if(earlier.codes, is_taken) > 0 && earlier.codes.empty();
    });
}

} // namespace detail

inline std::size_t exception_policy::add(exception_rule rule) {
    detail::take_over_codes(rule, rules_);
    const auto same = std::ranges::find_if(rules_, [&](const auto& each) { return detail::replaces(rule, each); });
    if (same == rules_.end()) {
        rules_.push_back(std::move(rule));
        return rules_.size() - 1;
    }
    *same = std::move(rule);
    return static_cast<std::size_t>(same - rules_.begin());
}

inline retrying_rule unfinished_rule::retry(retry_settings how) {
    rule_.retry = how;
    return {in_, in_.add(std::move(rule_))};
}
inline retrying_rule unfinished_rule::retry(int attempts, duration delay, backoff growth) && {
    return retry(detail::steps(attempts, delay, growth, detail::longest_retry_wait));
}
inline retrying_rule unfinished_rule::retry(const interval_list& exact) && {
    return retry(detail::steps(exact, detail::longest_retry_wait));
}

inline redelivering_rule unfinished_rule::redeliver(retry_settings how) {
    rule_.redeliver = how;
    in_.add(std::move(rule_));
    return {};
}
inline redelivering_rule unfinished_rule::redeliver() && {
    return redeliver(detail::default_redelivery());
}
inline redelivering_rule unfinished_rule::redeliver(int attempts, duration delay, backoff growth) && {
    return redeliver(detail::steps(attempts, delay, growth, detail::longest_redelivery_wait));
}
inline redelivering_rule unfinished_rule::redeliver(const interval_list& exact) && {
    return redeliver(detail::steps(exact, detail::longest_redelivery_wait));
}

inline finished_rule unfinished_rule::dead_letter() && {
    in_.add(std::move(rule_));
    return {};
}
inline finished_rule unfinished_rule::discard() && {
    rule_.then = exception_rule::ending::discard;
    in_.add(std::move(rule_));
    return {};
}

inline redelivering_rule retrying_rule::redeliver(retry_settings how) {
    in_.rules_[at_].redeliver = how;
    return {};
}
inline redelivering_rule retrying_rule::then_redeliver() && {
    return redeliver(detail::default_redelivery());
}
inline redelivering_rule retrying_rule::then_redeliver(int attempts, duration delay, backoff growth) && {
    return redeliver(detail::steps(attempts, delay, growth, detail::longest_redelivery_wait));
}
inline redelivering_rule retrying_rule::then_redeliver(const interval_list& exact) && {
    return redeliver(detail::steps(exact, detail::longest_redelivery_wait));
}

inline exception_policy exception_policy::standard() {
    exception_policy made;
    made.default_().retry().then_redeliver();
    return made;
}

} // namespace holdfast
