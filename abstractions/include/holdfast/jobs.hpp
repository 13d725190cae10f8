// Enqueueing jobs, and asking about them.
//
//   auto queued = co_await jobs.enqueue(send_invoice{"INV-7", "a@example.org"}, {.after = 10min, .unique_key = "INV-7"});
//
//   auto unit = co_await store.begin();                       // or store.join(your own transaction)
//   co_await jobs.enqueue(**unit, send_invoice{…});
//   co_await (*unit)->commit();                               // now it exists; before, nobody saw it
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <holdfast/codec.hpp>
#include <holdfast/error.hpp>
#include <holdfast/identifier.hpp>
#include <holdfast/job.hpp>
#include <holdfast/job_context.hpp>
#include <holdfast/job_header.hpp>
#include <holdfast/job_matching.hpp>
#include <holdfast/job_store.hpp>
#include <holdfast/logger.hpp>
#include <holdfast/task.hpp>

namespace holdfast {

// What one call says differently from the job's type. What is left out is the type's.
struct enqueue_options {
    std::optional<duration> after{};         // due that much later, by the store's clock
    std::optional<store_time> at{};          // due then; not together with `after`
    std::optional<std::string> unique_key{}; // at most one unfinished job of its type has it
    std::optional<std::string> queue{};
    std::optional<int> priority{};
    std::optional<int> attempts{};              // 1 to 100
    std::optional<holdfast::restart> restart{}; // unset = the type's; probe only for a type that has one
    std::optional<identifier> parent{}; // waits until that job has succeeded, and is cancelled if it ends otherwise
    std::optional<duration> keep_for{};
    std::optional<identifier> id{}; // the same id twice is one job
    headers extra{};                // travels along; see job_header
};

// What a host says for jobs that say nothing themselves.
struct job_defaults {
    int attempts = default_job_attempts;
    int max_crashes = default_max_crashes;
    bool restart = true;
};

// Any thread. The store, the source of ids and the logger must outlive it.
class jobs {
public:
    jobs(job_store& store, identifier_source& ids, job_defaults defaults = {}, logger* log = nullptr) noexcept
        : store_(store), ids_(ids), defaults_(defaults), log_(log != nullptr ? *log : nowhere_) {}
    jobs(const jobs&) = delete;
    jobs& operator=(const jobs&) = delete;

    // Acknowledged = kept, as durably as the store promises. created = false: it was there already.
    template <class Job>
    task<result<enqueued>> enqueue(Job job, enqueue_options options = {}) {
        return enqueue_one(make(job, std::move(options)), nullptr);
    }
    // Part of the unit: it exists when that is committed.
    template <class Job>
    task<result<enqueued>> enqueue(unit_of_work& in, Job job, enqueue_options options = {}) {
        return enqueue_one(make(job, std::move(options)), &in);
    }
    // All of them in one write, or none. The options go for each; an id or a unique key cannot be among them.
    template <class Job>
    task<result<std::vector<enqueued>>> enqueue_all(std::vector<Job> batch, enqueue_options options = {}) {
        return enqueue_many(make_all(batch, options), nullptr);
    }
    template <class Job>
    task<result<std::vector<enqueued>>> enqueue_all(unit_of_work& in, std::vector<Job> batch,
                                                    enqueue_options options = {}) {
        return enqueue_many(make_all(batch, options), &in);
    }

    task<result<cancel_answer>> cancel(identifier id) {
        auto answers = co_await store_.cancel({id});
        if (!answers) co_return std::unexpected(std::move(answers.error()));
        co_return answers->front();
    }
    task<result<job_lookup>> get(identifier id) { return store_.get(id); }

    // A new generation of attempts, due now, for jobs that ended otherwise than well: these, or all that match. The number of those.
    task<result<int>> requeue(std::vector<identifier> which) { return store_.requeue(std::move(which)); }
    task<result<std::uint64_t>> requeue_all(job_filter filter) { return requeue_matching(store_, std::move(filter)); }
    // Asks all that match to end, and forgets all that match and have ended. The number of those.
    task<result<std::uint64_t>> cancel_all(job_filter filter) { return cancel_matching(store_, std::move(filter)); }
    task<result<int>> discard(std::vector<identifier> which) { return store_.discard(std::move(which)); }
    task<result<std::uint64_t>> discard_all(job_filter filter) { return discard_matching(store_, std::move(filter)); }

    // Lists, counts, pausing queues.
    job_store& store() noexcept { return store_; }
    const job_defaults& defaults() const noexcept { return defaults_; }
    logger& log() const noexcept { return log_; }

    // The record that enqueue() would write, for jobs that are written some other way.
    template <class Job>
    result<new_job> make(const Job& job, enqueue_options options) {
        if constexpr (detail::has_unique_key<Job>)
            if (!options.unique_key) options.unique_key = job.unique_key();
        result<std::string> body = codec<Job>::encode(job);
        if (!body)
            return fail(body.error().code, "job \"" + std::string(options_of<Job>().name) +
                                               "\" cannot be encoded: " + body.error().message);
        payload what{std::string(options_of<Job>().name), options_of<Job>().version,
                     std::string(codec<Job>::content_type), std::move(*body)};
        return make_record(options_of<Job>(), restart_of<Job>(), std::move(what), std::move(options));
    }
    // The same for a job that has no type here.
    result<new_job> make_record(const job_options& type, restart rule, payload what, enqueue_options options) {
        const int attempts = options.attempts.value_or(type.attempts.value_or(defaults_.attempts));
        if (attempts < 1 || attempts > max_job_attempts)
            return fail(errc::invalid_argument,
                        "job \"" + what.type + "\": attempts is " + std::to_string(attempts) + ", it may be 1 to 100");
        if (options.after && options.at)
            return fail(errc::invalid_argument, "job \"" + what.type + "\": give either .after or .at, not both");
        const restart wish = options.restart.value_or(restart::unset);
        if (wish == restart::probe && rule != restart::probe)
            return fail(errc::invalid_argument,
                        "job \"" + what.type + "\": .restart = restart::probe, but its type has no probe to ask");
        const restart decided = wish == restart::unset ? rule : wish;
        if (rule == restart::probe && decided == restart::allowed)
            options.extra.insert_or_assign(std::string(job_header::ask_no_probe), "true");
        new_job made;
        made.id = options.id ? *options.id : ids_.next();
        made.what = std::move(what);
        made.queue = options.queue ? std::move(*options.queue) : std::string(type.queue);
        made.priority = options.priority.value_or(type.priority);
        made.when = options.after ? due::after(*options.after) : options.at ? due::at(*options.at) : due::now();
        made.max_attempts = attempts;
        made.max_crashes = type.max_crashes.value_or(defaults_.max_crashes);
        made.may_restart = decided == restart::unset ? defaults_.restart : decided != restart::never;
        made.unique_key = std::move(options.unique_key);
        made.parent = options.parent;
        made.keep_for = options.keep_for ? options.keep_for : type.keep_for;
        made.extra = std::move(options.extra);
        return made;
    }

private:
    template <class Job>
    result<std::vector<new_job>> make_all(const std::vector<Job>& batch, const enqueue_options& options) {
        if (options.id || options.unique_key)
            return fail(errc::invalid_argument, "many jobs cannot share one id or unique key: enqueue them one by one");
        std::vector<new_job> made;
        made.reserve(batch.size());
        for (const Job& each : batch) {
            auto one = make(each, options);
            if (!one) return std::unexpected(std::move(one.error()));
            made.push_back(std::move(*one));
        }
        return made;
    }
    task<result<enqueued>> enqueue_one(result<new_job> one, unit_of_work* in) {
        if (!one) co_return std::unexpected(std::move(one.error()));
        std::vector<new_job> batch;
        batch.push_back(std::move(*one));
        auto answers = co_await store_.enqueue(std::move(batch), in);
        if (!answers) co_return std::unexpected(std::move(answers.error()));
        co_return answers->front();
    }
    task<result<std::vector<enqueued>>> enqueue_many(result<std::vector<new_job>> batch, unit_of_work* in) {
        if (!batch) co_return std::unexpected(std::move(batch.error()));
        co_return co_await store_.enqueue(std::move(*batch), in);
    }

    job_store& store_;
    identifier_source& ids_;
    const job_defaults defaults_;
    null_logger nowhere_;
    logger& log_;
};

} // namespace holdfast
