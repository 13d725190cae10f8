// What becomes of a call that has failed: a pure decision, the same for messages and for jobs.
//
//   exception_history so_far;                        // or what was kept of earlier deliveries
//   const auto next = decide(table, failure::thrown(e), so_far, random);
//   so_far.add(next);                                // and then do it
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/backoff.hpp>
#include <holdfast/exception_table.hpp>

namespace holdfast {

struct exception_decision {
    enum class action : unsigned char {
        retry,     // call it again after `after`, in this delivery
        redeliver, // end this delivery; a new one is due after `after`
        dead_letter,
        discard,
    };
    enum class reason : unsigned char {
        rule,          // as its rule says; for a dead letter: at once
        spent,         // retries and redeliveries of its rule are used up
        no_rule,       // no rule takes it
        not_retryable, // cancellation or non_retryable_error, and no rule names it
        total,         // max_total_attempts
        rule_failed,   // a predicate threw: `problem`
    };

    action what = action::dead_letter;
    reason why = reason::no_rule;
    duration after{};
    std::optional<std::size_t> rule{}; // in the table
    std::string problem{};             // what the rule itself failed with
};

constexpr std::string_view to_text(exception_decision::action a) noexcept {
    switch (a) {
    case exception_decision::action::retry: return "retry";
    case exception_decision::action::redeliver: return "redeliver";
    case exception_decision::action::dead_letter: return "dead letter";
    case exception_decision::action::discard: return "discard";
    }
    return "unknown";
}

// For people, after "dead letter: ".
constexpr std::string_view to_text(exception_decision::reason r) noexcept {
    switch (r) {
    case exception_decision::reason::rule: return "its rule says so";
    case exception_decision::reason::spent: return "its retries and redeliveries are spent";
    case exception_decision::reason::no_rule: return "no rule takes it";
    case exception_decision::reason::not_retryable: return "it is never retried";
    case exception_decision::reason::total: return "the total of attempts is reached";
    case exception_decision::reason::rule_failed: return "its rule failed";
    }
    return "unknown";
}

// What was done about one message or job so far. `redeliveries` and `calls` are kept with it; `retries` begin anew with
// every delivery: that starts from {.redeliveries = …, .calls = all earlier ones + 1}.
struct exception_history {
    int redeliveries = 0;
    int calls = 1;                         // of the handler, over all deliveries, the one that has just failed included
    std::vector<int> retries{};            // within this delivery, by rule: each counts its own
    std::optional<duration> retry_after{}; // the handler's own wish for the next wait

    int retries_by(std::size_t rule) const noexcept { return rule < retries.size() ? retries[rule] : 0; }
    // That is what will be done.
    void add(const exception_decision& next) {
        using action = exception_decision::action;
        retry_after.reset();
        if (next.what == action::retry) {
            if (retries.size() <= *next.rule) retries.resize(*next.rule + 1);
            ++retries[*next.rule];
            ++calls;
        } else if (next.what == action::redeliver) {
            retries.clear();
            ++redeliveries;
            ++calls;
        }
    }
};

namespace detail {

// The wait before the n-th: the handler's wish, else the rule's own function, else what the error says, else backoff.
// What the other side asks for is kept within max_delay where a slot is held meanwhile.
inline duration wait_before(const retry_settings& how, int n, const failure& f, const exception_history& so_far,
                            bool holds_slot, random_series& random) {
    const duration most = holds_slot ? how.max_delay : forever;
    if (so_far.retry_after) return std::clamp(*so_far.retry_after, duration::zero(), most);
    if (how.delay_for != nullptr)
        if (const auto asked = how.delay_for(f, n)) return std::clamp(*asked, duration::zero(), how.max_delay);
    if (const auto asked = f.retry_after()) return std::clamp(*asked, duration::zero(), most);
    const auto intervals = static_cast<int>(how.intervals.size());
    return how.delay_before(intervals == 0 ? n : std::min(n, intervals), random);
}

inline exception_decision decide_or_throw(const exception_table& table, const failure& f,
                                          const exception_history& so_far, random_series& random) {
    using action = exception_decision::action;
    using reason = exception_decision::reason;
    const auto found = table.find(f);
    if (!found) {
        const bool never = f.is_terminal() || to_errc(f.code()) == errc::cancelled;
        return {.what = action::dead_letter, .why = never ? reason::not_retryable : reason::no_rule};
    }
    const exception_rule& rule = table.rules()[*found].rule;
    const auto end = [&](reason why) {
        const bool drop = rule.then == exception_rule::ending::discard;
        return exception_decision{.what = drop ? action::discard : action::dead_letter, .why = why, .rule = found};
    };
    if (rule.is_terminal()) return end(reason::rule);
    const int retry = so_far.retries_by(*found) + 1;
    const int redelivery = so_far.redeliveries + 1;
    const bool retries = rule.retry && !rule.retry->spent(retry);
    if (!retries && !(rule.redeliver && !rule.redeliver->spent(redelivery))) return end(reason::spent);
    if (so_far.calls >= table.max_total_attempts()) return end(reason::total);
    if (retries)
        return {.what = action::retry,
                .why = reason::rule,
                .after = wait_before(*rule.retry, retry, f, so_far, true, random),
                .rule = found};
    return {.what = action::redeliver,
            .why = reason::rule,
            .after = wait_before(*rule.redeliver, redelivery, f, so_far, false, random),
            .rule = found};
}

} // namespace detail

// `f` is a failure, not a good value. Does not throw what a predicate throws: see reason::rule_failed.
inline exception_decision decide(const exception_table& table, const failure& f, const exception_history& so_far,
                                 random_series& random) {
    try {
        return detail::decide_or_throw(table, f, so_far, random);
    } catch (...) {
        return {.what = exception_decision::action::dead_letter,
                .why = exception_decision::reason::rule_failed,
                .problem = detail::exception_message(std::current_exception())};
    }
}

} // namespace holdfast
