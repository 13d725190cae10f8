// A function of a stop token that makes a task: what bridges take where a task alone could not be cancelled.
#pragma once

#include <stop_token>
#include <type_traits>
#include <utility>

#include <holdfast/task.hpp>

namespace holdfast::detail {

template <class Make>
concept makes_task = is_task<std::invoke_result_t<Make&, std::stop_token>>;

template <class Make>
using made_value = typename std::invoke_result_t<Make&, std::stop_token>::value_type;

// A task that was made already, as a function of a stop token that it has no use for.
template <class T>
struct ready_made {
    task<T> what;
    task<T> operator()(const std::stop_token&) { return std::move(what); }
};

} // namespace holdfast::detail
