// What becomes of an attempt that has ended: pure decisions.
#pragma once

#include <optional>
#include <string>

#include <holdfast/backoff.hpp>
#include <holdfast/failure.hpp>
#include <holdfast/job.hpp>
#include <holdfast/job_store.hpp>

namespace holdfast::job_verdict {

// What is known about the attempt beside how it ended.
struct circumstances {
    const job_options& options;
    const retry_settings& waits; // see job_waits
    int attempt = 1;
    bool may_restart = true;
    bool cancelled = false; // by its user
    bool timed_out = false;
    bool stopping = false; // the worker asked it to stop
    std::optional<duration> snooze{};
    std::optional<duration> retry_after{}; // the handler's own wish
};

settlement after_return(const circumstances& about, std::string output);
settlement after_throw(const circumstances& about, const std::exception_ptr& thrown, random_series& random);
settlement after_error(const circumstances& about, const error& returned, random_series& random);
// It did not end by its hard deadline.
settlement when_stuck(const circumstances& about, random_series& random);

settlement make(settlement::kind how, job_error error = {});

// What every store takes: well-formed, without NUL, not endless.
std::string clean_text(std::string text);

inline constexpr std::string_view interrupted_not_allowed = "interrupted by a shutdown, restart not allowed";

} // namespace holdfast::job_verdict
