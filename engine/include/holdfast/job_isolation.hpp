// Handlers in processes of their own: what a worker asks of whoever has such processes, and what is done there.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include <holdfast/backoff.hpp>
#include <holdfast/error.hpp>
#include <holdfast/exception_decision.hpp>
#include <holdfast/exception_policy.hpp>
#include <holdfast/identifier.hpp>
#include <holdfast/job_context.hpp>
#include <holdfast/job_store.hpp>
#include <holdfast/job_type.hpp>
#include <holdfast/payload.hpp>
#include <holdfast/task.hpp>

namespace holdfast {

// One attempt, as it is sent to another process.
struct isolated_job {
    payload what;
    identifier id{};
    std::uint64_t token = 1;
    std::string queue;
    int attempt = 1; // as the context tells it
    int max_attempts = 1;
    int crash_count = 0;
    int generation = 1;
    headers extra;
    exception_history so_far{}; // for the job's rules
};

// What the job's rules say to what its handler threw.
struct isolated_verdict {
    settlement ending{};
    std::optional<exception_decision> again{}; // in the same run
    bool discarded = false;
};

// How the handler ended there.
struct isolated_ending {
    enum class kind : unsigned char { returned, failed, threw, gave_up };
    kind how = kind::returned;
    error failure{};            // failed: what it returned; gave_up: it threw operation_cancelled
    isolated_verdict verdict{}; // threw
    std::string output{};
    std::optional<duration> snooze{};
    std::optional<duration> retry_after{};
};

// In the other process: runs the handler, and asks the job's rules, and the host's, about what it throws. Never throws.
task<isolated_ending> run_isolated(job_type& kind, const exception_policy* of_host, payload what,
                                   exception_history so_far, job_context& context, random_series random);

// What left a handler in another process. A policy in the worker sees this in the exception's place.
class isolated_failure : public std::runtime_error {
public:
    explicit isolated_failure(isolated_verdict verdict)
        : std::runtime_error(verdict.ending.error.message), verdict_(std::move(verdict)) {}
    const isolated_verdict& verdict() const noexcept { return verdict_; }

private:
    isolated_verdict verdict_;
};
// The same, where the rules say that it is not tried again.
class isolated_end : public non_retryable_error {
public:
    explicit isolated_end(isolated_verdict verdict)
        : non_retryable_error(verdict.ending.error.message), verdict_(std::move(verdict)) {}
    const isolated_verdict& verdict() const noexcept { return verdict_; }

private:
    isolated_verdict verdict_;
};
// The process ended in the middle of it. Whether that is tried again is for the restart rule, not for a policy.
class job_crashed : public non_retryable_error {
public:
    // `how`: "SIGSEGV", "exit code 3".
    job_crashed(std::string how, std::string stack, bool killed)
        : non_retryable_error("the handler's process ended: " + how), how_(std::move(how)), stack_(std::move(stack)),
          killed_(killed) {}
    const std::string& how() const noexcept { return how_; }
    const std::string& stack() const noexcept { return stack_; }
    bool killed() const noexcept { return killed_; } // by isolated_process::kill

private:
    std::string how_;
    std::string stack_;
    bool killed_;
};

// A process that is free for one attempt at a time. Its destructor gives it back.
class isolated_process {
public:
    virtual ~isolated_process() = default;
    // One at a time. Passes the context's token on, and progress back. Throws job_crashed.
    virtual task<isolated_ending> run(isolated_job job, job_context& context) = 0;
    // Ends the process now. Any thread.
    virtual void kill() noexcept = 0;
};

// Any thread.
class job_isolation {
public:
    // Whether jobs of that kind run elsewhere.
    virtual bool takes(const job_type& kind) const noexcept = 0;
    // Waits for a free process. Throws operation_cancelled when the token fires first, failed when there will be none.
    virtual task<std::unique_ptr<isolated_process>> acquire(std::stop_token stop) = 0;

protected:
    ~job_isolation() = default;
};

} // namespace holdfast
