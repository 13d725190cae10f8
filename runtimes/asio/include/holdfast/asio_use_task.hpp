// Asio in a task: `use_task`, a completion token that makes any Asio operation a task, and to_task for awaitables.
//
//   const std::size_t n = co_await socket.async_read_some(buffer, use_task(stop));
#pragma once

#include <optional>
#include <stop_token>
#include <type_traits>
#include <utility>

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>

#include <holdfast/detail/asio_wait.hpp>
#include <holdfast/task.hpp>

namespace holdfast {

struct use_stoppable_task_t {
    std::stop_token stop;
};

// The operation starts when the task is awaited, and the task goes on where Asio runs the completion handler. A leading
// error_code is thrown as boost::system::system_error, a leading exception_ptr is rethrown; what follows is the value.
//
// use_task(stop): when `stop` fires, the operation is cancelled (terminal) and, if it ended for that, the task throws
// operation_cancelled. The operation must have an executor; no strand is needed on a context with several threads.
//
// Throws failed(errc::stopped), from within the destructor of the context, if that goes away first.
struct use_task_t {
    use_stoppable_task_t operator()(std::stop_token stop) const noexcept { return {std::move(stop)}; }
};
inline constexpr use_task_t use_task{};

namespace detail {

template <class T>
boost::asio::awaitable<std::optional<T>> as_optional(boost::asio::awaitable<T> what) {
    co_return std::optional<T>(co_await std::move(what));
}

template <class Signature, bool Stoppable, class Initiation, class... Args>
auto await_asio(boost::asio::any_io_executor executor, std::stop_token stop, Initiation initiation, Args... args)
    -> task<typename asio_value<Signature>::type> {
    auto start = [&](auto handler) { std::move(initiation)(std::move(handler), std::move(args)...); };
    asio_wait<Signature, decltype(start), Stoppable> ended(std::move(executor), start, std::move(stop));
    co_return co_await ended;
}

} // namespace detail

// Runs the awaitable on the executor, as co_spawn would. Cancellation and the end of the context as with use_task; with
// a `stop` that can fire, the awaitable runs on a strand over the executor.
template <class T>
task<T> to_task(boost::asio::any_io_executor executor, boost::asio::awaitable<T> what, std::stop_token stop = {}) {
    const auto spawn = [executor](auto handler, auto awaitable) {
        const auto on = boost::asio::get_associated_executor(handler, executor);
        boost::asio::co_spawn(on, std::move(awaitable), std::move(handler));
    };
    if constexpr (std::is_void_v<T>) {
        co_await detail::await_asio<void(std::exception_ptr), true>(executor, std::move(stop), spawn, std::move(what));
    } else {
        // Asio wants a value even for a failure.
        std::optional<T> value = co_await detail::await_asio<void(std::exception_ptr, std::optional<T>), true>(
            executor, std::move(stop), spawn, detail::as_optional(std::move(what)));
        co_return std::move(*value);
    }
}

} // namespace holdfast

template <class R, class... Args>
struct boost::asio::async_result<holdfast::use_task_t, R(Args...)> {
    using return_type = holdfast::task<typename holdfast::detail::asio_value<void(Args...)>::type>;

    template <class Initiation, class... InitArgs>
    static return_type initiate(Initiation initiation, holdfast::use_task_t, InitArgs... args) {
        return holdfast::detail::await_asio<void(Args...), false>({}, {}, std::move(initiation), std::move(args)...);
    }
};

template <class R, class... Args>
struct boost::asio::async_result<holdfast::use_stoppable_task_t, R(Args...)> {
    using return_type = holdfast::task<typename holdfast::detail::asio_value<void(Args...)>::type>;

    template <class Initiation, class... InitArgs>
    static return_type initiate(Initiation initiation, holdfast::use_stoppable_task_t token, InitArgs... args) {
        static_assert(
            requires { typename Initiation::executor_type; },
            "use_task(stop) cancels on the operation's executor, and this operation has none");
        const auto executor = boost::asio::get_associated_executor(initiation);
        return holdfast::detail::await_asio<void(Args...), true>(executor, std::move(token.stop), std::move(initiation),
                                                                 std::move(args)...);
    }
};
