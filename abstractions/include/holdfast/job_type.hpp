// A kind of job as a worker sees it: its options, and how to run the bytes. Made from a struct and a function by
// job_type_of<Job>(handler), or by hand for jobs that are known only at run time.
#pragma once

#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

#include <holdfast/detail/handler.hpp>
#include <holdfast/job.hpp>
#include <holdfast/job_context.hpp>
#include <holdfast/payload.hpp>
#include <holdfast/task.hpp>

namespace holdfast {

// The bytes of a job do not decode. Never retried.
class undecodable_job : public non_retryable_error {
public:
    using non_retryable_error::non_retryable_error;
};

class exception_policy;

// Any thread; several runs at once.
class job_type {
public:
    virtual ~job_type() = default;

    virtual const job_options& options() const noexcept = 0; // its texts live as long as the program
    virtual holdfast::restart restart() const noexcept = 0;
    // What becomes of its errors, where that is more than its options say; see with_rules(). Null: nothing of its own.
    virtual const exception_policy* rules() const noexcept { return nullptr; }
    // Runs the handler, a blocking one on the blocking pool. A handler's exception leaves it as it is; a returned
    // failure comes back as one. `context` must stay until the task has ended.
    virtual task<result<void>> run(payload what, job_context& context) = 0;
    // Only for restart::probe.
    virtual task<happened> probe(payload what, job_context& context) = 0;

protected:
    job_type() = default;
    job_type(const job_type&) = delete;
    job_type& operator=(const job_type&) = delete;
};

namespace detail {

// A coroutine may take the job by reference, so the job must stay until what this gives has ended.
template <class Function, class Job>
decltype(auto) call_job_function(Function& function, Job&& job, job_context& context) {
    static_assert(std::is_rvalue_reference_v<Job&&>, "the job is given away");
    if constexpr (std::is_invocable_v<Function&, Job, job_context&>) return function(std::forward<Job>(job), context);
    else if constexpr (std::is_invocable_v<Function&, Job, std::stop_token>)
        return function(std::forward<Job>(job), context.stop_token());
    else return function(std::forward<Job>(job));
}

template <class Function, class Job>
concept job_function = std::is_invocable_v<Function&, Job, job_context&> ||
                       std::is_invocable_v<Function&, Job, std::stop_token> || std::is_invocable_v<Function&, Job>;

template <class Function, class Job>
using job_function_result =
    decltype(call_job_function(std::declval<Function&>(), std::declval<Job>(), std::declval<job_context&>()));

// One that is not a coroutine, so it has to wait for a thread.
template <class Function, class Job>
inline constexpr bool is_blocking_job_function = !is_task<job_function_result<Function, Job>>;

template <class Job>
Job decode_job(const payload& what) {
    auto decoded = decode<Job>(what.body, what.version);
    if (!decoded)
        throw undecodable_job("\"" + what.type + "\" version " + std::to_string(what.version) +
                              " does not decode: " + decoded.error().message);
    return std::move(*decoded);
}

struct no_probe {};

template <class Job, class Handler, class Probe>
class typed_job final : public job_type {
    static_assert(is_handler_value<typename awaited<job_function_result<Handler, Job>>::type>,
                  "a job's handler returns void or result<void>, or a task of one of them");

public:
    typed_job(Handler handler, Probe probe) : handler_(std::move(handler)), probe_(std::move(probe)) {}

    const job_options& options() const noexcept override { return options_of<Job>(); }
    holdfast::restart restart() const noexcept override { return restart_of<Job>(); }

    task<result<void>> run(payload what, job_context& context) override {
        Job job = decode_job<Job>(what);
        constexpr bool blocks = is_blocking_job_function<Handler, Job>;
        if constexpr (blocks) context.handler_waits();
        auto running = run_handler(context.runtime(), [&]() -> decltype(auto) {
            if constexpr (blocks) context.handler_begins();
            return call_job_function(handler_, std::move(job), context);
        });
        co_return co_await std::move(running);
    }
    task<happened> probe(payload what, job_context& context) override {
        if constexpr (std::is_same_v<Probe, no_probe>) {
            co_return happened::unknown;
        } else {
            Job job = decode_job<Job>(what);
            auto asking = call_anywhere(context.runtime(), [&]() -> decltype(auto) {
                return call_job_function(probe_, std::move(job), context);
            });
            co_return co_await std::move(asking);
        }
    }

private:
    Handler handler_;
    [[no_unique_address]] Probe probe_;
};

} // namespace detail

// The handler takes the job and optionally a job_context& or a std::stop_token; blocking, or a coroutine. It may take
// the job by value or by const reference: the job lives until the handler has ended. With restart::probe, a probe of the
// same shape that returns happened.
template <class Job, class Handler, class Probe = detail::no_probe>
std::unique_ptr<job_type> job_type_of(Handler handler, Probe probe = {}) {
    static_assert(options_of<Job>().version > 0);
    static_assert(detail::job_function<Handler, Job>,
                  "a job's handler takes the job, and optionally a job_context& or a std::stop_token");
    static_assert((restart_of<Job>() == restart::probe) == !std::is_same_v<Probe, detail::no_probe>,
                  "restart::probe and a probe function go together: give both or neither");
    return std::make_unique<detail::typed_job<Job, Handler, Probe>>(std::move(handler), std::move(probe));
}

} // namespace holdfast
