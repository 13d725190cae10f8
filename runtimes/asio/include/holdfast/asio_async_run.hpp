// A task in Asio: async_run, which makes a task an Asio operation for any completion token, and to_awaitable.
//
//   async_run(io.get_executor(), fetch(url), [](std::exception_ptr e, page p) { … });
//   page p = co_await to_awaitable([url](std::stop_token stop) { return fetch(url, stop); });
#pragma once

#include <exception>
#include <optional>
#include <stop_token>
#include <type_traits>
#include <utility>

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <holdfast/detail/made_task.hpp>
#include <holdfast/task.hpp>

namespace holdfast {

namespace detail {

// Calls the handler on its own executor, by way of the operation's, so that what it throws leaves a context's run().
template <class Executor, class Home, class Call>
void complete(const Executor& on, boost::asio::executor_work_guard<Home> home, Call call) {
    boost::asio::post(on, [to = std::move(home), c = std::move(call)]() mutable {
        boost::asio::dispatch(to.get_executor(), std::move(c));
    });
}

// `Value` is what the handler gets; it is made from the task's value, and from nothing after a failure.
template <class Value, class Make, class Executor, class Home, class Handler>
detached run_and_complete(Make make, std::stop_source cancelled, boost::asio::executor_work_guard<Executor> on,
                          boost::asio::executor_work_guard<Home> home, Handler handler) {
    std::exception_ptr thrown;
    if constexpr (std::is_void_v<Value>) {
        try {
            auto running = make(cancelled.get_token());
            co_await std::move(running);
        } catch (...) {
            thrown = std::current_exception();
        }
        complete(on.get_executor(), std::move(home),
                 [h = std::move(handler), e = std::move(thrown)]() mutable { std::move(h)(std::move(e)); });
    } else {
        std::optional<Value> value;
        try {
            auto running = make(cancelled.get_token());
            value.emplace(co_await std::move(running));
        } catch (...) {
            thrown = std::current_exception();
        }
        if (!value) value.emplace();
        complete(on.get_executor(), std::move(home),
                 [h = std::move(handler), e = std::move(thrown), v = std::move(*value)]() mutable {
                     std::move(h)(std::move(e), std::move(v));
                 });
    }
}

template <class Value, class Executor>
struct initiate_run {
    using executor_type = Executor;
    executor_type get_executor() const noexcept { return executor; }

    template <class Handler, class Make>
    void operator()(Handler&& handler, Make make) const {
        std::stop_source cancelled(std::nostopstate);
        if (auto slot = boost::asio::get_associated_cancellation_slot(handler); slot.is_connected()) {
            cancelled = std::stop_source();
            slot.assign([cancelled](boost::asio::cancellation_type) mutable { cancelled.request_stop(); });
        }
        auto home = boost::asio::make_work_guard(boost::asio::get_associated_executor(handler, executor));
        boost::asio::post(executor, [m = std::move(make), c = std::move(cancelled),
                                     on = boost::asio::make_work_guard(executor), to = std::move(home),
                                     h = std::forward<Handler>(handler)]() mutable {
            run_and_complete<Value>(std::move(m), std::move(c), std::move(on), std::move(to), std::move(h));
        });
    }

    Executor executor;
};

template <class Value>
struct completion {
    using signature = void(std::exception_ptr, Value);
};
template <>
struct completion<void> {
    using signature = void(std::exception_ptr);
};

template <class Value, class Executor, class Make, class Token>
auto async_run_as(Executor executor, Make make, Token&& token) {
    using signature = typename completion<Value>::signature;
    return boost::asio::async_initiate<Token, signature>(initiate_run<Value, Executor>{std::move(executor)}, token,
                                                         std::move(make));
}

} // namespace detail

// Starts the task on the executor and completes with void(std::exception_ptr, T), or void(std::exception_ptr) for
// task<void>, on the handler's own executor, never inside this call. Both executors are kept busy meanwhile. After a
// failure the handler gets a T made from nothing.
template <class Executor, class T, class Token>
auto async_run(Executor executor, task<T> what, Token&& token) {
    return detail::async_run_as<T>(std::move(executor), detail::ready_made<T>{std::move(what)},
                                   std::forward<Token>(token));
}

// The same for a function that makes the task: its stop token fires when the handler's cancellation slot does. The
// function is kept until the task has ended.
template <class Executor, detail::makes_task Make, class Token>
auto async_run(Executor executor, Make make, Token&& token) {
    return detail::async_run_as<detail::made_value<Make>>(std::move(executor), std::move(make),
                                                          std::forward<Token>(token));
}

// The task starts on the awaitable's executor, and the awaitable goes on there. A function that makes the task is given
// a stop token that fires when the awaitable is cancelled, and is kept until the task has ended.
template <detail::makes_task Make>
auto to_awaitable(Make make) -> boost::asio::awaitable<detail::made_value<Make>> {
    using value = detail::made_value<Make>;
    static_assert(!std::is_reference_v<value>, "an awaitable gives a value: return a pointer instead of a reference");
    auto executor = co_await boost::asio::this_coro::executor;
    if constexpr (std::is_void_v<value>) {
        co_await detail::async_run_as<void>(executor, std::move(make), boost::asio::use_awaitable);
    } else {
        std::optional<value> result =
            co_await detail::async_run_as<std::optional<value>>(executor, std::move(make), boost::asio::use_awaitable);
        co_return std::move(*result);
    }
}

template <class T>
boost::asio::awaitable<T> to_awaitable(task<T> what) {
    return to_awaitable(detail::ready_made<T>{std::move(what)});
}

} // namespace holdfast
