#include "job_verdict.hpp"

#include <algorithm>
#include <utility>

#include <holdfast/detail/cut_text.hpp>
#include <holdfast/detail/exception_type.hpp>
#include <holdfast/exception_explain.hpp>
#include <holdfast/store_limits.hpp>

namespace holdfast::job_verdict {

namespace {

constexpr std::size_t longest_message = 8192;

using kind = settlement::kind;

// A discarded job is a cancelled one that says why: it did not succeed, and nobody has to look at it.
verdict discard(const circumstances& about, const exception_decision& by, job_error what) {
    what.message = "discarded by " + describe(about.rules.rules()[*by.rule].rule) + ": " + what.message;
    return {.ending = make(kind::cancel, std::move(what)), .discarded = true};
}

verdict dead_letter(const circumstances& about, const exception_decision& by, job_error what) {
    using reason = exception_decision::reason;
    if (by.why == reason::rule_failed) what.message += "; and a rule of the job failed over it: " + by.problem;
    if (by.why == reason::total)
        what.message += "; its rules would try it again, but allow no more than " +
                        std::to_string(about.rules.max_total_attempts()) + " attempts in all";
    return {.ending = make(kind::dead_letter, std::move(what))};
}

// What comes again at once comes later where the run may not go on.
verdict judge(const circumstances& about, const failure& f, job_error what, random_series& random) {
    using action = exception_decision::action;
    const auto next = decide(about.rules, f, about.so_far, random);
    if (next.what == action::discard) return discard(about, next, std::move(what));
    if (next.what == action::dead_letter) return dead_letter(about, next, std::move(what));
    verdict later{.ending = make(kind::retry, std::move(what))};
    later.ending.when = due::after(next.after);
    if (next.what == action::retry && !about.timed_out) later.again = next;
    return later;
}

// The decisions that do not look at the error. Nothing = it counts.
std::optional<verdict> decided_already(const circumstances& about, const job_error& what) {
    if (about.cancelled) return verdict{make(kind::cancel, what)};
    if (!about.stopping) return std::nullopt;
    if (about.may_restart || about.never_began) return verdict{make(kind::release, what)};
    return verdict{make(kind::fail, {"interrupted", std::string(interrupted_not_allowed) + ": " + what.message})};
}

job_error out_of_time(const circumstances& about) {
    return {"timed_out", "the attempt took longer than its timeout of " +
                             to_short_text(about.options.timeout.value_or(duration::zero()))};
}

verdict after_timeout(const circumstances& about, random_series& random) {
    return judge(about, failure::refused(errc::timed_out), out_of_time(about), random);
}

job_error stuck(const circumstances& about, std::string_view then) {
    return {"stuck", "the handler did not end by its hard deadline of " +
                         to_short_text(about.options.hard_deadline.value_or(duration::zero())) + std::string(then)};
}

// Of an attempt that ran when nobody waited for it any more: it may have happened.
settlement given_up(const circumstances& about, job_error what, random_series& random) {
    if (about.cancelled) return make(kind::cancel, std::move(what));
    if (about.may_restart) return judge(about, failure::refused(errc::timed_out), std::move(what), random).ending;
    what.message = std::string(given_up_not_allowed) + ": " + what.message;
    return make(kind::fail, std::move(what));
}

} // namespace

settlement make(kind how, job_error error) {
    settlement made;
    made.how = how;
    made.error = {clean_text(std::move(error.type)), clean_text(std::move(error.message))};
    return made;
}

settlement in_doubt(std::string why) {
    return make(kind::indeterminate, {"indeterminate", std::move(why)});
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

verdict after_throw(const circumstances& about, const std::exception_ptr& thrown, random_series& random) {
    const failure seen = failure::thrown(thrown);
    job_error what{holdfast::detail::exception_type_name(thrown), holdfast::detail::exception_message(thrown)};
    if (auto decided = decided_already(about, what)) return std::move(*decided);
    if (about.timed_out && seen.as<non_retryable_error>() == nullptr) return after_timeout(about, random);
    if (seen.as<operation_cancelled>() != nullptr) return {make(kind::cancel, std::move(what))}; // its own decision
    return judge(about, seen, std::move(what), random);
}

verdict after_error(const circumstances& about, const error& returned, random_series& random) {
    job_error what{std::string(to_text(returned.code)), returned.message};
    if (auto decided = decided_already(about, what)) return std::move(*decided);
    if (about.timed_out && returned.code == errc::cancelled) return after_timeout(about, random);
    if (returned.code == errc::cancelled) return {make(kind::cancel, std::move(what))};
    const result<void> as_returned = std::unexpected(returned);
    return judge(about, failure::returned(as_returned), std::move(what), random);
}

settlement when_stuck(const circumstances& about, random_series& random) {
    return given_up(about, stuck(about, ", and may still be running"), random);
}

settlement when_killed(const circumstances& about, bool past_hard_deadline, random_series& random) {
    if (auto decided = decided_already(about, {about.cancelled ? "cancelled" : "stuck",
                                               "its process was ended, for it went on although asked to stop"}))
        return std::move(decided->ending);
    if (past_hard_deadline) return given_up(about, stuck(about, ", so its process was ended"), random);
    job_error late = out_of_time(about);
    late.message += ", and its process was ended, for it went on although asked to stop";
    return given_up(about, std::move(late), random);
}

std::string clean_text(std::string text) {
    text = holdfast::detail::cut_text(std::move(text), longest_message);
    if (store_limits::is_text(text)) return text;
    for (char& c : text)
        if (c == '\0' || static_cast<unsigned char>(c) >= 0x80) c = '?';
    return text;
}

} // namespace holdfast::job_verdict
