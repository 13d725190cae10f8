#include "job_verdict.hpp"

#include <algorithm>
#include <utility>

#include <holdfast/detail/exception_type.hpp>
#include <holdfast/store_limits.hpp>

namespace holdfast::job_verdict {

namespace {

constexpr std::size_t longest_message = 8192;

using kind = settlement::kind;

bool names_exceptions(const rule_list& rules) {
    return std::ranges::any_of(rules, [](const rule& each) {
        return each.then == rule::verdict::retry && each.on == rule::subject::exception_type;
    });
}

// As in a policy, but for a returned failure, which is tried again unless a rule stops it.
bool is_tried_again(const rule_list& rules, const failure& f) {
    if (f.is_terminal()) return false;
    for (const rule& each : rules)
        if (each.then == rule::verdict::stop && each.applies_to(f)) return false;
    for (const rule& each : rules)
        if (each.then == rule::verdict::retry && each.applies_to(f)) return true;
    return !f.is_exception() || !names_exceptions(rules);
}

duration wait_for(const circumstances& about, const failure& f, random_series& random) {
    if (about.retry_after) return std::max(*about.retry_after, duration::zero());
    const retry_settings& waits = about.waits;
    if (waits.delay_for != nullptr)
        if (const auto asked = waits.delay_for(f, about.attempt))
            return std::clamp(*asked, duration::zero(), waits.max_delay);
    if (const auto asked = f.retry_after()) return std::max(*asked, duration::zero());
    const int n =
        waits.intervals.empty() ? about.attempt : std::min(about.attempt, static_cast<int>(waits.intervals.size()));
    return waits.delay_before(n, random);
}

settlement judge(const circumstances& about, const failure& f, job_error what, random_series& random) {
    try {
        if (!is_tried_again(about.options.rules, f)) return make(kind::dead_letter, std::move(what));
        const due when = due::after(wait_for(about, f, random));
        settlement again = make(kind::retry, std::move(what));
        again.when = when;
        return again;
    } catch (...) { // a rule or a delay of the user's own
        const auto thrown = std::current_exception();
        what.message += "; and a rule of the job failed over it: " + holdfast::detail::exception_message(thrown);
        return make(kind::dead_letter, std::move(what));
    }
}

// The decisions that do not look at the error. Nothing = it counts.
std::optional<settlement> decided_already(const circumstances& about, const job_error& what) {
    if (about.cancelled) return make(kind::cancel, what);
    if (!about.stopping) return std::nullopt;
    if (about.may_restart) return make(kind::release, what);
    return make(kind::fail, {"interrupted", std::string(interrupted_not_allowed) + ": " + what.message});
}

settlement after_timeout(const circumstances& about, random_series& random) {
    job_error what{"timed_out", "the attempt took longer than its timeout of " +
                                    to_short_text(about.options.timeout.value_or(duration::zero()))};
    return judge(about, failure::refused(errc::timed_out), std::move(what), random);
}

} // namespace

settlement make(kind how, job_error error) {
    settlement made;
    made.how = how;
    made.error = {clean_text(std::move(error.type)), clean_text(std::move(error.message))};
    return made;
}

settlement after_return(const circumstances& about, std::string output) {
    settlement made;
    if (about.snooze) {
        made.how = kind::snooze;
        made.when = due::after(std::max(*about.snooze, duration::zero()));
    }
    made.output = std::move(output);
    return made;
}

settlement after_throw(const circumstances& about, const std::exception_ptr& thrown, random_series& random) {
    const failure seen = failure::thrown(thrown);
    job_error what{holdfast::detail::exception_type_name(thrown), holdfast::detail::exception_message(thrown)};
    if (auto decided = decided_already(about, what)) return std::move(*decided);
    if (about.timed_out && seen.as<non_retryable_error>() == nullptr) return after_timeout(about, random);
    if (seen.as<operation_cancelled>() != nullptr) return make(kind::cancel, std::move(what)); // its own decision
    return judge(about, seen, std::move(what), random);
}

settlement after_error(const circumstances& about, const error& returned, random_series& random) {
    job_error what{std::string(to_text(returned.code)), returned.message};
    if (auto decided = decided_already(about, what)) return std::move(*decided);
    if (about.timed_out && returned.code == errc::cancelled) return after_timeout(about, random);
    if (returned.code == errc::cancelled) return make(kind::cancel, std::move(what));
    const result<void> as_returned = std::unexpected(returned);
    return judge(about, failure::returned(as_returned), std::move(what), random);
}

settlement when_stuck(const circumstances& about, random_series& random) {
    job_error what{"stuck", "the handler did not end by its hard deadline of " +
                                to_short_text(about.options.hard_deadline.value_or(duration::zero())) +
                                ", and may still be running"};
    if (about.cancelled) return make(kind::cancel, std::move(what));
    return judge(about, failure::refused(errc::timed_out), std::move(what), random);
}

std::string clean_text(std::string text) {
    if (text.size() > longest_message) {
        text.resize(longest_message);
        while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xC0) == 0x80) text.pop_back();
        if (!text.empty() && static_cast<unsigned char>(text.back()) >= 0x80) text.pop_back();
        text += "…";
    }
    if (store_limits::is_text(text)) return text;
    for (char& c : text)
        if (c == '\0' || static_cast<unsigned char>(c) >= 0x80) c = '?';
    return text;
}

} // namespace holdfast::job_verdict
