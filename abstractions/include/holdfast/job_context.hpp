// What a handler is told about the run it is in, and what it can say about it.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include <holdfast/duration.hpp>
#include <holdfast/error.hpp>
#include <holdfast/handler_clock.hpp>
#include <holdfast/identifier.hpp>
#include <holdfast/job_header.hpp>
#include <holdfast/logger.hpp>
#include <holdfast/payload.hpp>
#include <holdfast/runtime.hpp>
#include <holdfast/sleep.hpp>

namespace holdfast {

class jobs;

// What the latest report of a run says; a worker passes it on to the store now and then.
struct job_progress {
    int percent = 0;
    std::string note;
};

// Valid until the handler has ended. Any thread.
class job_context {
public:
    // Filled in by whoever runs the handler: a worker, a test.
    struct facts {
        identifier id{};
        std::uint64_t token = 1; // of the claim; names the run together with the id
        std::string_view type{};
        std::string_view queue{};
        int attempt = 1;
        int max_attempts = 1;
        int crash_count = 0;
        int generation = 1;
        const headers* extra = nullptr;
        handler_clock* clock = nullptr; // if there is one to ask
    };
    job_context(const facts& what, holdfast::runtime& on, logger& log, std::stop_token stop, holdfast::jobs* client)
        : facts_(what), on_(on), log_(log), stop_(std::move(stop)), jobs_(client) {}
    job_context(const job_context&) = delete;
    job_context& operator=(const job_context&) = delete;

    const identifier& job_id() const noexcept { return facts_.id; }
    // One attempt of this job, unlike any other.
    std::string run_id() const { return to_text(facts_.id) + "-" + std::to_string(facts_.token); }
    std::string_view type() const noexcept { return facts_.type; }
    std::string_view queue() const noexcept { return facts_.queue; }

    int attempt() const noexcept { return facts_.attempt; } // 1 for the first
    int max_attempts() const noexcept { return facts_.max_attempts; }
    bool last_attempt() const noexcept { return facts_.attempt >= facts_.max_attempts; }
    int crash_count() const noexcept { return facts_.crash_count; } // workers that died over it so far
    int generation() const noexcept { return facts_.generation; }   // raised when somebody requeues it

    // Fires when the attempt is out of time, the job is cancelled, its lease is lost, or the worker must stop now.
    const std::stop_token& stop_token() const noexcept { return stop_; }

    // The same for every attempt of the job: pass it to whatever must not happen twice.
    std::string idempotency_key() const { return header_or(job_header::idempotency_key, to_text(facts_.id)); }
    // Of the request that this job belongs to; the job's own id where nobody gave one.
    std::string correlation_id() const { return header_or(job_header::correlation_id, to_text(facts_.id)); }
    // The header's value, or nothing.
    std::optional<std::string_view> header(std::string_view name) const {
        if (facts_.extra == nullptr) return std::nullopt;
        const auto found = facts_.extra->find(name);
        if (found == facts_.extra->end()) return std::nullopt;
        return found->second;
    }

    // Seen by whoever looks at the job. The latest counts; it is written soon, not at once.
    void progress(int percent, std::string note = {}) {
        const std::lock_guard lock(mutex_);
        progress_ = job_progress{percent, std::move(note)};
    }
    // Kept with the job when this run ends.
    void output(std::string text) {
        const std::lock_guard lock(mutex_);
        output_ = std::move(text);
    }
    // When the handler returns, the job is not done: it comes again after `d`, and this attempt does not count.
    void snooze(duration d) {
        const std::lock_guard lock(mutex_);
        snooze_ = d;
    }
    // If this attempt fails, the next one comes after `d` rather than when the job's options say.
    void retry_after(duration d) {
        const std::lock_guard lock(mutex_);
        retry_after_ = d;
    }

    logger& log() const noexcept { return log_; }
    holdfast::runtime& runtime() const noexcept { return on_; }
    // To enqueue others. Throws failed(errc::unsupported) where there is none, as in a test without one.
    holdfast::jobs& jobs() const {
        if (jobs_ == nullptr)
            throw failed({errc::unsupported, "this context has no jobs to enqueue with", std::nullopt});
        return *jobs_;
    }

    // Sleep within the run; throws operation_cancelled when the run has to stop.
    task<void> sleep_for(duration d) { return sleep(on_, d, stop_); }
    void block_for(duration d) { throw_unless_due(holdfast::block_for(on_, d, stop_)); }

    // For whoever calls a blocking handler; see handler_clock.
    void handler_waits() const noexcept {
        if (facts_.clock != nullptr) facts_.clock->handler_waits();
    }
    // Throws operation_cancelled where the run has to stop by now.
    void handler_begins() const { detail::begin_handler(facts_.clock, stop_); }

    // For whoever runs the handler: what it said, taken out.
    std::optional<job_progress> take_progress() {
        const std::lock_guard lock(mutex_);
        return std::exchange(progress_, std::nullopt);
    }
    std::string take_output() {
        const std::lock_guard lock(mutex_);
        return std::exchange(output_, {});
    }
    std::optional<duration> wants_snooze() const {
        const std::lock_guard lock(mutex_);
        return snooze_;
    }
    std::optional<duration> wants_retry_after() const {
        const std::lock_guard lock(mutex_);
        return retry_after_;
    }

private:
    std::string header_or(std::string_view name, std::string otherwise) const {
        const auto found = header(name);
        return found ? std::string(*found) : std::move(otherwise);
    }
    static void throw_unless_due(sleep_end end) {
        if (end != sleep_end::due) throw operation_cancelled("the run was asked to stop");
    }
    static task<void> sleep(holdfast::runtime& on, duration d, std::stop_token stop) {
        throw_unless_due(co_await holdfast::sleep_for(on, d, std::move(stop)));
    }

    const facts facts_;
    holdfast::runtime& on_;
    logger& log_;
    const std::stop_token stop_;
    holdfast::jobs* const jobs_;
    mutable std::mutex mutex_;
    std::optional<job_progress> progress_;
    std::string output_;
    std::optional<duration> snooze_;
    std::optional<duration> retry_after_;
};

} // namespace holdfast
