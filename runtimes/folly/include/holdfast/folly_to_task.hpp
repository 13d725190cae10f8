// folly in a task: to_task for folly::coro::Task and for folly::SemiFuture.
//
//   const page p = co_await to_task(executor, fetch(url), stop);
#pragma once

#include <stop_token>
#include <type_traits>
#include <utility>

#include <folly/Executor.h>
#include <folly/coro/Task.h>
#include <folly/futures/Future.h>

#include <holdfast/detail/folly_wait.hpp>
#include <holdfast/task.hpp>

namespace holdfast {

// Runs the folly task on the executor; this task goes on there. When `stop` fires, the folly task is cancelled, and if
// it ended for that, this one throws operation_cancelled. Stopped before it began, it does not begin.
template <class T>
task<T> to_task(folly::Executor::KeepAlive<> executor, folly::coro::Task<T> what, std::stop_token stop = {}) {
    static_assert(!std::is_reference_v<T>,
                  "a task of folly gives a value here: return a pointer instead of a reference");
    detail::folly_task_wait<T> ended(std::move(executor), std::move(what), std::move(stop));
    co_return co_await ended;
}

// The same for a future: when `stop` fires, it is cancelled, as by folly::SemiFuture::cancel(). A value that comes all
// the same is kept. Gives void for Unit.
template <class T>
task<folly::drop_unit_t<T>> to_task(folly::Executor::KeepAlive<> executor, folly::SemiFuture<T> what,
                                    std::stop_token stop = {}) {
    detail::folly_future_wait<T> ended(std::move(executor), std::move(what), std::move(stop));
    if constexpr (std::is_same_v<T, folly::Unit>) co_await ended;
    else co_return co_await ended;
}

} // namespace holdfast
