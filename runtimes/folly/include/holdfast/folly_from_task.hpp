// A task in folly: to_folly_task, for folly's coroutines, and to_semi_future.
//
//   page p = co_await to_folly_task([url](std::stop_token stop) { return fetch(url, stop); });
#pragma once

#include <exception>
#include <stop_token>
#include <type_traits>
#include <utility>

#include <folly/CancellationToken.h>
#include <folly/Executor.h>
#include <folly/Try.h>
#include <folly/coro/CurrentExecutor.h>
#include <folly/coro/Task.h>
#include <folly/futures/Future.h>
#include <folly/futures/Promise.h>

#include <holdfast/detail/made_task.hpp>
#include <holdfast/error.hpp>
#include <holdfast/task.hpp>

namespace holdfast {

// The task starts where the folly task runs, and the folly task goes on on its executor. A function that makes the task
// is given a stop token that fires when the folly task is cancelled, and is kept until the task has ended. A task that
// ends with operation_cancelled for that ends the folly task as cancelled.
template <detail::makes_task Make>
auto to_folly_task(Make make) -> folly::coro::Task<detail::made_value<Make>> {
    const folly::CancellationToken cancelled = co_await folly::coro::co_current_cancellation_token;
    std::stop_source stop;
    const folly::CancellationCallback on_cancel(cancelled, [&stop]() noexcept { stop.request_stop(); });
    auto running = make(stop.get_token());
    try {
        co_return co_await std::move(running);
    } catch (const operation_cancelled&) {
        if (!cancelled.isCancellationRequested()) throw;
    }
    throw folly::OperationCancelled();
}

template <class T>
folly::coro::Task<T> to_folly_task(task<T> what) {
    return to_folly_task(detail::ready_made<T>{std::move(what)});
}

namespace detail {

template <class Value, class Make>
detached run_and_fulfil(Make make, std::stop_token stop, folly::Promise<folly::lift_unit_t<Value>> promise,
                        folly::Executor::KeepAlive<> /*kept until it has ended*/) {
    folly::Try<folly::lift_unit_t<Value>> ended;
    try {
        auto running = make(stop);
        if constexpr (std::is_void_v<Value>) {
            co_await std::move(running);
            ended.emplace();
        } else {
            ended.emplace(co_await std::move(running));
        }
    } catch (const operation_cancelled&) {
        if (stop.stop_requested()) ended.emplaceException(folly::FutureCancellation());
        else ended.emplaceException(std::current_exception());
    } catch (...) {
        ended.emplaceException(std::current_exception());
    }
    promise.setTry(std::move(ended));
}

} // namespace detail

// Starts the task on the executor, never inside this call. Cancelling the future fires the stop token of a function that
// makes the task, which is kept until the task has ended; a task that ends with operation_cancelled for that gives
// folly::FutureCancellation.
template <detail::makes_task Make>
auto to_semi_future(folly::Executor::KeepAlive<> executor, Make make)
    -> folly::SemiFuture<folly::lift_unit_t<detail::made_value<Make>>> {
    using value = detail::made_value<Make>;
    static_assert(!std::is_reference_v<value>, "a future gives a value: return a pointer instead of a reference");
    std::stop_source stop;
    auto [promise, future] = folly::makePromiseContract<folly::lift_unit_t<value>>();
    promise.setInterruptHandler([stop](const folly::exception_wrapper&) mutable { stop.request_stop(); });
    std::move(executor).add([m = std::move(make), token = stop.get_token(),
                             p = std::move(promise)](folly::Executor::KeepAlive<>&& here) mutable {
        detail::run_and_fulfil<value>(std::move(m), std::move(token), std::move(p), std::move(here));
    });
    return std::move(future);
}

template <class T>
auto to_semi_future(folly::Executor::KeepAlive<> executor, task<T> what) {
    return to_semi_future(std::move(executor), detail::ready_made<T>{std::move(what)});
}

} // namespace holdfast
