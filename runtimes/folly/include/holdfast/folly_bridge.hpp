// Between tasks and folly, both ways; a stop token on one side is a cancellation on the other:
//   to_task(executor, folly_task, stop)        a folly::coro::Task in a task         folly_to_task.hpp
//   to_task(executor, semi_future, stop)       a folly::SemiFuture in a task         folly_to_task.hpp
//   co_await to_folly_task(task)               a task in a folly::coro::Task         folly_from_task.hpp
//   to_semi_future(executor, task)             a task as a folly::SemiFuture         folly_from_task.hpp
#pragma once

#include <holdfast/folly_from_task.hpp>
#include <holdfast/folly_to_task.hpp>
