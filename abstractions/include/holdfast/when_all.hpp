// Runs several tasks at the same time and ends when all of them have ended. The first exception, in the order of the
// arguments, is rethrown then.
#pragma once

#include <atomic>
#include <coroutine>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <holdfast/sync_wait.hpp>
#include <holdfast/task.hpp>

namespace holdfast {

namespace detail {

// Resumes its awaiter when `arrive` was called as often as it was told, plus once for the awaiter itself.
class countdown {
public:
    explicit countdown(std::size_t count) noexcept : left_(count + 1) {}

    // The awaiter to resume when this was the last arrival, else a coroutine that does nothing.
    std::coroutine_handle<> arrive() noexcept {
        return left_.fetch_sub(1, std::memory_order_acq_rel) == 1 ? awaiting_ : std::noop_coroutine();
    }

    auto operator co_await() noexcept {
        struct awaiter {
            countdown& latch;
            bool await_ready() const noexcept { return false; }
            bool await_suspend(std::coroutine_handle<> h) const noexcept {
                latch.awaiting_ = h;
                return latch.left_.fetch_sub(1, std::memory_order_acq_rel) != 1;
            }
            void await_resume() const noexcept {}
        };
        return awaiter{*this};
    }

private:
    std::atomic<std::size_t> left_;
    std::coroutine_handle<> awaiting_ = std::noop_coroutine();
};

template <class T>
detached arrive_at_end(const task<T>& what, countdown& latch) {
    co_await run_to_end<T>{what};
    latch.arrive().resume();
}

template <class T>
using filled = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

template <class T>
filled<T> take_from(task<T>& ended) {
    if constexpr (std::is_void_v<T>) {
        ended.frame().promise().take();
        return std::monostate{};
    } else {
        return ended.frame().promise().take();
    }
}

} // namespace detail

// A void task gives std::monostate.
template <class... T>
task<std::tuple<detail::filled<T>...>> when_all(task<T>... tasks) {
    detail::countdown latch(sizeof...(T));
    (detail::arrive_at_end(tasks, latch), ...);
    co_await latch;
    co_return std::tuple<detail::filled<T>...>{detail::take_from(tasks)...};
}

template <class T>
task<std::vector<T>> when_all(std::vector<task<T>> tasks) {
    detail::countdown latch(tasks.size());
    for (auto& each : tasks) detail::arrive_at_end(each, latch);
    co_await latch;
    std::vector<T> results;
    results.reserve(tasks.size());
    for (auto& each : tasks) results.push_back(each.frame().promise().take());
    co_return results;
}

inline task<void> when_all(std::vector<task<void>> tasks) {
    detail::countdown latch(tasks.size());
    for (auto& each : tasks) detail::arrive_at_end(each, latch);
    co_await latch;
    for (auto& each : tasks) each.frame().promise().take();
}

} // namespace holdfast
