// Awaiting folly from a task: one awaiter for folly::coro::Task, one for futures, each with cancellation by a stop token.
#pragma once

#include <atomic>
#include <coroutine>
#include <optional>
#include <stop_token>
#include <utility>

#include <folly/CancellationToken.h>
#include <folly/Executor.h>
#include <folly/Try.h>
#include <folly/coro/Task.h>
#include <folly/futures/Future.h>

#include <holdfast/error.hpp>

namespace holdfast::detail {

// What folly's side ended with; nothing when it was never begun. Then, and when it was cancelled because `stop` fired:
// operation_cancelled.
template <class Cancelled, class T>
T take_folly_end(std::optional<folly::Try<T>>&& ended, const std::stop_token& stop) {
    if (!ended || (stop.stop_requested() && ended->template hasException<Cancelled>())) throw operation_cancelled();
    return std::move(*ended).value();
}

template <class T>
class folly_task_wait {
public:
    folly_task_wait(folly::Executor::KeepAlive<> executor, folly::coro::Task<T> what, std::stop_token stop)
        : executor_(std::move(executor)), what_(std::move(what)), stop_(std::move(stop)) {}
    folly_task_wait(const folly_task_wait&) = delete;
    folly_task_wait& operator=(const folly_task_wait&) = delete;

    bool await_ready() const noexcept { return stop_.stop_requested(); }
    void await_suspend(std::coroutine_handle<> awaiting) {
        if (stop_.stop_possible()) on_stop_.emplace(stop_, cancel_task{&cancelled_});
        start(std::move(what_), [this, awaiting](folly::Try<T>&& ended) noexcept {
            ended_ = std::move(ended);
            awaiting.resume();
        }); // this may be gone by now
    }
    T await_resume() {
        on_stop_.reset();
        return take_folly_end<folly::OperationCancelled>(std::move(ended_), stop_);
    }

private:
    struct cancel_task {
        folly::CancellationSource* source;
        void operator()() const noexcept { source->requestCancellation(); }
    };

    template <class Task, class Callback>
    void start(Task what, Callback callback) {
        auto token = cancelled_.getToken();
        if constexpr (requires { co_withExecutor(executor_, std::move(what)); })
            co_withExecutor(std::move(executor_), std::move(what)).start(std::move(callback), std::move(token));
        else // before 2025
            std::move(what).scheduleOn(std::move(executor_)).start(std::move(callback), std::move(token));
    }

    folly::Executor::KeepAlive<> executor_;
    folly::coro::Task<T> what_;
    std::stop_token stop_;
    folly::CancellationSource cancelled_;
    std::optional<folly::Try<T>> ended_;
    std::optional<std::stop_callback<cancel_task>> on_stop_;
};

template <class T>
class folly_future_wait {
public:
    folly_future_wait(folly::Executor::KeepAlive<> executor, folly::SemiFuture<T> what, std::stop_token stop)
        : executor_(std::move(executor)), what_(std::move(what)), stop_(std::move(stop)) {}
    folly_future_wait(const folly_future_wait&) = delete;
    folly_future_wait& operator=(const folly_future_wait&) = delete;

    bool await_ready() const noexcept { return stop_.stop_requested(); }
    // The future and this function each may be last; whoever is resumes the coroutine.
    bool await_suspend(std::coroutine_handle<> awaiting) {
        pending_ = std::move(what_).via(std::move(executor_)).thenTry([this, awaiting](folly::Try<T>&& ended) noexcept {
            ended_ = std::move(ended);
            if (arrive()) awaiting.resume();
        });
        if (stop_.stop_possible()) on_stop_.emplace(stop_, cancel_future{&pending_});
        return !arrive();
    }
    T await_resume() {
        on_stop_.reset();
        return take_folly_end<folly::FutureCancellation>(std::move(ended_), stop_);
    }

private:
    struct cancel_future {
        folly::Future<folly::Unit>* future;
        void operator()() const noexcept { future->cancel(); }
    };

    bool arrive() noexcept { return parties_.fetch_sub(1, std::memory_order_acq_rel) == 1; }

    folly::Executor::KeepAlive<> executor_;
    folly::SemiFuture<T> what_;
    std::stop_token stop_;
    folly::Future<folly::Unit> pending_ = folly::Future<folly::Unit>::makeEmpty();
    std::atomic<int> parties_ = 2;
    std::optional<folly::Try<T>> ended_;
    std::optional<std::stop_callback<cancel_future>> on_stop_;
};

} // namespace holdfast::detail
