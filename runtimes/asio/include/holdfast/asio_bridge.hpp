// Between tasks and Asio, both ways:
//   co_await timer.async_wait(use_task)        an Asio operation in a task           asio_use_task.hpp
//   to_task(executor, awaitable, stop)         an asio::awaitable in a task          asio_use_task.hpp
//   async_run(executor, task, token)           a task as an Asio operation           asio_async_run.hpp
//   co_await to_awaitable(task)                a task in an asio::awaitable          asio_async_run.hpp
#pragma once

#include <holdfast/asio_async_run.hpp>
#include <holdfast/asio_use_task.hpp>
