// task<T>: a lazy, move-only coroutine. It starts when awaited, on the thread that awaits it, and resumes its awaiter
// on the thread where it ends. One awaiter; awaiting a task twice is a bug. Destroying a task that was not started
// destroys its frame; destroying one that is suspended midway is a bug: let it end, its stop token is how to hurry it.
//
// Parameters of a coroutine are taken by value, and a lambda that is itself a coroutine captures nothing: its captures
// die with the lambda, not with the frame.
#pragma once

#include <coroutine>
#include <exception>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include <holdfast/detail/frame_cache.hpp>

namespace holdfast {

template <class T = void>
class task;

namespace detail {

// Told that a task has ended, by whoever drives one by hand; gives the coroutine to resume. The task is suspended for
// good by then, but must not be destroyed inside the call.
struct task_end {
    std::coroutine_handle<> (*ended)(task_end&) noexcept = nullptr;
};

struct promise_base {
    promise_base() noexcept = default; // not an aggregate, else it would be built from the coroutine's arguments

    struct final_awaiter {
        bool await_ready() const noexcept { return false; }
        template <class Promise>
        std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> ended) const noexcept {
            promise_base& promise = ended.promise();
            return promise.on_end == nullptr ? promise.continuation : promise.on_end->ended(*promise.on_end);
        }
        void await_resume() const noexcept {}
    };

    static void* operator new(std::size_t size) { return frame_cache::allocate(size); }
    static void operator delete(void* frame, std::size_t size) noexcept { frame_cache::release(frame, size); }

    std::suspend_always initial_suspend() const noexcept { return {}; }
    final_awaiter final_suspend() const noexcept { return {}; }
    void unhandled_exception() noexcept { exception = std::current_exception(); }

    std::coroutine_handle<> continuation = std::noop_coroutine();
    task_end* on_end = nullptr; // in place of the continuation
    std::exception_ptr exception;
};

template <class T>
struct task_promise : promise_base {
    task_promise() noexcept {}
    task_promise(const task_promise&) = delete;
    task_promise& operator=(const task_promise&) = delete;
    ~task_promise() {
        if (has_value) std::destroy_at(std::addressof(value));
    }

    task<T> get_return_object() noexcept;

    template <class U = T>
        requires std::is_constructible_v<T, U&&>
    void return_value(U&& result) noexcept(std::is_nothrow_constructible_v<T, U&&>) {
        std::construct_at(std::addressof(value), std::forward<U>(result));
        has_value = true;
    }

    T take() {
        if (exception) std::rethrow_exception(std::move(exception));
        return std::move(value);
    }
    const T& look() const noexcept { return value; } // only after it ended with a value

    union {
        T value;
    };
    bool has_value = false;
};

template <class T>
struct task_promise<T&> : promise_base {
    task_promise() noexcept {}
    task<T&> get_return_object() noexcept;
    void return_value(T& result) noexcept { value = std::addressof(result); }
    T& take() {
        if (exception) std::rethrow_exception(std::move(exception));
        return *value;
    }
    const T& look() const noexcept { return *value; }
    T* value = nullptr;
};

template <>
struct task_promise<void> : promise_base {
    task_promise() noexcept {}
    task<void> get_return_object() noexcept;
    void return_void() const noexcept {}
    void take() {
        if (exception) std::rethrow_exception(std::move(exception));
    }
};

} // namespace detail

template <class T>
class [[nodiscard("a task does nothing until it is awaited")]] task {
public:
    using value_type = T;
    using promise_type = detail::task_promise<T>;
    using handle_type = std::coroutine_handle<promise_type>;

    task() noexcept = default;
    explicit task(handle_type frame) noexcept : frame_(frame) {}
    task(task&& other) noexcept : frame_(std::exchange(other.frame_, {})) {}
    task& operator=(task&& other) noexcept {
        if (this != &other) {
            if (frame_) frame_.destroy();
            frame_ = std::exchange(other.frame_, {});
        }
        return *this;
    }
    ~task() {
        if (frame_) frame_.destroy();
    }

    explicit operator bool() const noexcept { return static_cast<bool>(frame_); }

    auto operator co_await() && noexcept {
        struct awaiter {
            handle_type frame;
            bool await_ready() const noexcept { return false; }
            std::coroutine_handle<> await_suspend(std::coroutine_handle<> awaiting) const noexcept {
                frame.promise().continuation = awaiting;
                return frame;
            }
            T await_resume() const { return frame.promise().take(); }
        };
        return awaiter{frame_};
    }

    // For code that drives a task by hand (runners, bridges): the frame, still owned by this task.
    handle_type frame() const noexcept { return frame_; }

private:
    handle_type frame_{};
};

namespace detail {

template <class T>
task<T> task_promise<T>::get_return_object() noexcept {
    return task<T>(std::coroutine_handle<task_promise>::from_promise(*this));
}
template <class T>
task<T&> task_promise<T&>::get_return_object() noexcept {
    return task<T&>(std::coroutine_handle<task_promise>::from_promise(*this));
}
inline task<void> task_promise<void>::get_return_object() noexcept {
    return task<void>(std::coroutine_handle<task_promise>::from_promise(*this));
}

template <class T>
inline constexpr bool is_task = false;
template <class T>
inline constexpr bool is_task<task<T>> = true;

// A coroutine that starts at once and frees itself. The only detached thing here; scopes and waits are built on it.
struct detached {
    struct promise_type {
        promise_type() noexcept = default;
        static void* operator new(std::size_t size) { return frame_cache::allocate(size); }
        static void operator delete(void* frame, std::size_t size) noexcept { frame_cache::release(frame, size); }
        detached get_return_object() const noexcept { return {}; }
        std::suspend_never initial_suspend() const noexcept { return {}; }
        std::suspend_never final_suspend() const noexcept { return {}; }
        void return_void() const noexcept {}
        [[noreturn]] void unhandled_exception() const noexcept { std::terminate(); }
    };
};

} // namespace detail

} // namespace holdfast
