// Testing code that enqueues jobs, and the jobs themselves: the real worker and the memory store on virtual time, where
// retries of hours take milliseconds. Any test framework will do.
//
//   holdfast::job_lab lab;
//   lab.add<send_invoice>(handle);
//   place_order(lab.jobs());                              // the code under test
//   check(lab.enqueued<send_invoice>().size() == 1);
//   check(lab.drain().succeeded == 1);
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <holdfast/codec.hpp>
#include <holdfast/error.hpp>
#include <holdfast/exception_policy.hpp>
#include <holdfast/job.hpp>
#include <holdfast/job_context.hpp>
#include <holdfast/job_store.hpp>
#include <holdfast/job_type.hpp>
#include <holdfast/jobs.hpp>
#include <holdfast/policies.hpp>
#include <holdfast/simulated_runtime.hpp>
#include <holdfast/store.hpp>
#include <holdfast/sync_wait.hpp>
#include <holdfast/with_rules.hpp>

namespace holdfast {

// What became of the attempts that were made.
struct drained {
    int succeeded = 0;
    int retried = 0; // failed, and due again later
    int dead_lettered = 0;
    int failed = 0;
    int cancelled = 0;
    int snoozed = 0;
    int indeterminate = 0;

    int total() const noexcept {
        return succeeded + retried + dead_lettered + failed + cancelled + snoozed + indeterminate;
    }
    friend bool operator==(const drained&, const drained&) = default;
};

// A job that is in the store and has not ended.
template <class Job>
struct enqueued_job {
    Job job;
    job_view record; // queue, due time, unique key, headers, …
};

// What a handler said when it was run by itself.
struct inline_run {
    result<void> returned{};
    std::optional<job_progress> progress{};
    std::string output{};
    std::optional<duration> snooze{};
    std::optional<duration> retry_after{};
};

// One thread only. Members throw failed when the lab itself cannot do what it was asked.
class job_lab {
public:
    // `seed` fixes every random draw. `order` shuffles what could run at the same time; see simulated_runtime.
    explicit job_lab(job_defaults defaults = {}, std::uint64_t seed = 1, std::uint64_t order = 0);
    ~job_lab();
    job_lab(const job_lab&) = delete;
    job_lab& operator=(const job_lab&) = delete;

    // Before the first job is run.
    template <class Job, class Handler, class... More>
    job_lab& add(Handler handler, More... probe_or_rules) {
        add_kind(job_type_of<Job>(std::move(handler), std::move(probe_or_rules)...));
        return *this;
    }
    job_lab& add(const policy& each);
    // Before the first job is run, once: what becomes of errors where a type has no rules of its own, as by host::use.
    job_lab& use(exception_policy rules);

    // What the code under test is given.
    holdfast::jobs& jobs() noexcept;
    holdfast::store& store() noexcept;
    holdfast::policies& policies() noexcept;
    simulated_runtime& time() noexcept;

    // Runs what is due now and what that makes due, in any queue. Time moves only as far as handlers wait. A handler that
    // has not ended after 7 days of virtual time is an error.
    drained drain();
    // Moves time, and runs what falls due on the way. A handler may be in the middle of its work afterwards.
    drained advance(duration d);
    // Drains and moves on to the next due time until nothing is left to run, or `at_most` has passed.
    drained run_until_done(duration at_most = std::chrono::hours{24 * 365});

    // Runs the handler once, here, without the store. Its exceptions leave this as they are.
    template <class Job>
    inline_run run(Job job, int attempt = 1, enqueue_options options = {}) {
        return run_inline(made_or_throw(jobs().make(job, std::move(options))), attempt);
    }

    // The unfinished jobs of a type, oldest first.
    template <class Job>
    std::vector<enqueued_job<Job>> enqueued() {
        std::vector<enqueued_job<Job>> all;
        for (job_view& each : list({.type = std::string(options_of<Job>().name)})) {
            if (is_final(each.state)) continue;
            auto decoded = decode<Job>(each.what.body, each.what.version);
            if (!decoded) throw failed(std::move(decoded.error()));
            all.push_back({std::move(*decoded), std::move(each)});
        }
        return all;
    }
    // All jobs that match, ended ones too, oldest first.
    std::vector<job_view> list(job_filter filter = {});
    // One job with its history. Throws failed(errc::invalid_argument) when there is none.
    job_view look(const identifier& id);
    // What handlers and worker have logged: "level message".
    const std::vector<std::string>& log() const noexcept;

    // Awaits a task on the lab's virtual time.
    template <class T>
    T wait(task<T> what) {
        return sync_wait(time(), std::move(what));
    }

private:
    struct parts;

    static new_job made_or_throw(result<new_job> made);
    void add_kind(std::unique_ptr<job_type> kind);
    inline_run run_inline(const new_job& made, int attempt);

    std::unique_ptr<parts> parts_;
};

} // namespace holdfast
