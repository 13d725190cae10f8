// What becomes of an attempt that has ended: pure decisions.
#pragma once

#include <optional>
#include <string>

#include <holdfast/backoff.hpp>
#include <holdfast/exception_decision.hpp>
#include <holdfast/failure.hpp>
#include <holdfast/job.hpp>
#include <holdfast/job_store.hpp>

namespace holdfast::job_verdict {

// What is known about the attempt beside how it ended.
struct circumstances {
    const job_options& options;
    const exception_table& rules;
    exception_history so_far{}; // a run is a delivery; with the handler's own wish for the next wait
    bool may_restart = true;
    bool cancelled = false; // by its user
    bool timed_out = false;
    bool stopping = false; // the worker asked it to stop
    bool never_began = false;
    std::optional<duration> snooze{};
};

struct verdict {
    settlement ending;
    // To be called again in the same run, and then `ending` is for a run that may not go on.
    std::optional<exception_decision> again{};
    bool discarded = false;
};

settlement after_return(const circumstances& about, std::string output);
verdict after_throw(const circumstances& about, const std::exception_ptr& thrown, random_series& random);
verdict after_error(const circumstances& about, const error& returned, random_series& random);
// It did not end by its hard deadline, and may still run.
settlement when_stuck(const circumstances& about, random_series& random);
// It ran when its process was ended, for that or for going on although asked to stop.
settlement when_killed(const circumstances& about, bool past_hard_deadline, random_series& random);

settlement make(settlement::kind how, job_error error = {});
// Nobody knows whether it happened.
settlement in_doubt(std::string why);

// What every store takes: well-formed, without NUL, not endless.
std::string clean_text(std::string text);

inline constexpr std::string_view interrupted_not_allowed = "interrupted by a shutdown, restart not allowed";
inline constexpr std::string_view given_up_not_allowed = "given up while it ran, restart not allowed";

} // namespace holdfast::job_verdict
