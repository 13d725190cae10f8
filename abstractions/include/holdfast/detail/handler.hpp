// How the handlers of jobs and events are called: on the blocking pool unless they are coroutines.
#pragma once

#include <type_traits>
#include <utility>

#include <holdfast/error.hpp>
#include <holdfast/runtime.hpp>
#include <holdfast/sleep.hpp>
#include <holdfast/task.hpp>

namespace holdfast::detail {

template <class T>
struct awaited {
    using type = T;
};
template <class T>
struct awaited<task<T>> {
    using type = T;
};

// What a call gives in the end.
template <class Call>
using handler_value = typename awaited<std::invoke_result_t<Call&>>::type;

template <class T>
inline constexpr bool is_handler_value = std::is_void_v<T> || std::is_same_v<T, result<void>>;

// `call` takes nothing; what it refers to must stay until the task has ended.
template <class Call>
task<handler_value<Call>> call_anywhere(runtime& on, Call call) {
    if constexpr (is_task<std::invoke_result_t<Call&>>) {
        auto running = call();
        co_return co_await std::move(running);
    } else {
        auto running = run_blocking(on, std::move(call));
        co_return co_await std::move(running);
    }
}

// The same for a handler, whose returning without a failure is success.
template <class Call>
task<result<void>> run_handler(runtime& on, Call call) {
    auto running = call_anywhere(on, std::move(call));
    if constexpr (std::is_void_v<handler_value<Call>>) {
        co_await std::move(running);
        co_return result<void>{};
    } else {
        co_return co_await std::move(running);
    }
}

} // namespace holdfast::detail
