// One policy, two tiers: a job's handler is run here and now, and becomes a durable job only if that did not work out.
//
//   auto ended = co_await run_or_enqueue(jobs, policies.bind(smtp), handle, send_invoice{"INV-7", "a@example.org"});
//   if (ended && ended->later) …it goes on in a worker, under the id ended->later->id
#pragma once

#include <atomic>
#include <optional>
#include <stop_token>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <holdfast/error.hpp>
#include <holdfast/job.hpp>
#include <holdfast/job_context.hpp>
#include <holdfast/job_type.hpp>
#include <holdfast/jobs.hpp>
#include <holdfast/policies.hpp>
#include <holdfast/task.hpp>

namespace holdfast {

struct ran_or_enqueued {
    execution_report here;           // what the policy made of it in this process
    std::optional<enqueued> later{}; // the job that goes on with it; nothing: it was done here
};

namespace detail {

// What attempts in this process share. Hedged ones run at the same time.
struct first_tier {
    const new_job& made;
    jobs& client;
    std::atomic<duration::rep> snooze = -1;

    job_context::facts facts(const attempt& a) const {
        const int here = a.max_number() == unlimited ? a.number() : a.max_number();
        return {.id = made.id,
                .token = ~std::uint64_t{0} - static_cast<std::uint64_t>(a.number()), // stores count from the other end
                .type = made.what.type,
                .queue = made.queue,
                .attempt = a.number(),
                .max_attempts = here + made.max_attempts,
                .extra = &made.extra};
    }
};

template <class Handler, class Job>
task<typename awaited<job_function_result<Handler, Job>>::type> run_in_process(Handler& handler, Job job,
                                                                               first_tier& shared, attempt& a) {
    struct wishes {
        job_context context;
        first_tier& shared;
        attempt& a;
        ~wishes() {
            if (const auto wait = context.wants_retry_after()) a.retry_after(*wait);
            shared.snooze = context.wants_snooze().value_or(duration{-1}).count(); // of the last attempt alone
        }
    } run{{shared.facts(a), a.runtime(), shared.client.log(), a.stop_token(), &shared.client}, shared, a};
    auto running = call_anywhere(
        a.runtime(), [&]() -> decltype(auto) { return call_job_function(handler, std::move(job), run.context); });
    co_return co_await std::move(running);
}

template <class T>
error error_of(const outcome<T>& ended) {
    if constexpr (is_result<T>)
        if (ended.has_value()) return ended->error();
    return ended.error();
}

inline task<result<ran_or_enqueued>> enqueue_the_rest(jobs& client, new_job made, execution_report here) {
    std::vector<new_job> batch;
    batch.push_back(std::move(made));
    auto queued = co_await client.store().enqueue(std::move(batch));
    if (queued) co_return ran_or_enqueued{std::move(here), queued->front()};
    std::string message = "not done here, and not enqueued either: " + queued.error().message;
    co_return fail(queued.error().code, std::move(message));
}

} // namespace detail

// The handler is the one that the worker has for the job; here it runs under the policy, a blocking one on the blocking
// pool. When the policy gives up (attempts, deadline, budget, an open circuit, a limit), or the handler snoozes, the
// job is enqueued: its first wait is that of its options, its attempts count on from those made here, and its
// idempotency key is the one that the handler saw here. An error: the handler's own verdict (a rule, a
// non_retryable_error, a returned failure), a cancellation, or a job that cannot be enqueued. Options that make no
// sense are refused before anything runs. Progress and output go nowhere in this tier.
template <class Job, class Handler>
task<result<ran_or_enqueued>> run_or_enqueue(jobs& client, bound_policy policy, Handler handler, Job job,
                                             enqueue_options options = {}, std::stop_token stop = {}) {
    static_assert(detail::job_function<Handler, Job>,
                  "a job's handler takes the job, and optionally a job_context& or a std::stop_token");
    if (options.parent)
        co_return fail(errc::invalid_argument,
                       "run_or_enqueue runs the handler now, so the job can have no .parent to wait "
                       "for: enqueue it");
    const bool has_time = options.after || options.at;
    auto made = client.make(job, std::move(options));
    if (!made) co_return std::unexpected(std::move(made.error()));

    detail::first_tier shared{*made, client};
    auto call = policy.try_execute(
        [&](attempt& a) { return detail::run_in_process<Handler, Job>(handler, job, shared, a); }, std::move(stop));
    auto ended = co_await std::move(call);

    const bool snoozed = ended.succeeded() && shared.snooze >= 0;
    if (ended.succeeded() && !snoozed) co_return ran_or_enqueued{ended};
    if (ended.stop_reason() == stop_reason::cancelled || ended.stop_reason() == stop_reason::rule)
        co_return std::unexpected(detail::error_of(ended));

    const int attempts = ended.attempt_count() - (snoozed ? 1 : 0);
    made->extra[std::string(job_header::attempts_before)] = std::to_string(attempts);
    if (snoozed) {
        made->when = due::after(duration{shared.snooze});
    } else if (!has_time) {
        random_series random(made->id.bytes[15]);
        const duration first = job_waits(options_of<Job>().retry).delay_before(1, random);
        const duration asked = ended.retry_after().value_or(forever); // a circuit that was isolated says forever
        made->when = due::after(asked == forever ? first : asked);
    }
    auto enqueueing = detail::enqueue_the_rest(client, std::move(*made), std::move(ended));
    co_return co_await std::move(enqueueing);
}

} // namespace holdfast
