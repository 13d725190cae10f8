// Waiting for a task from code that is not a coroutine. Never call these on a runtime's own threads.
#pragma once

#include <coroutine>
#include <utility>

#include <holdfast/runtime.hpp>
#include <holdfast/task.hpp>

namespace holdfast {

namespace detail {

// Runs a task to its end and leaves result or exception where it is.
template <class T>
struct run_to_end {
    const task<T>& what;
    bool await_ready() const noexcept { return false; }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<> awaiting) const noexcept {
        what.frame().promise().continuation = awaiting;
        return what.frame();
    }
    void await_resume() const noexcept {}
};

template <class T>
detached unpark_at_end(const task<T>& what, parker& done) {
    co_await run_to_end<T>{what};
    done.unpark();
}

} // namespace detail

// Starts the task on this thread, blocks until it has ended, gives its value or rethrows.
template <class T>
T sync_wait(runtime& on, task<T> what) {
    parker done;
    const lent_thread starting(on, thread_loan::waiter);
    detail::unpark_at_end(what, done);
    on.lend_thread(thread_loan::none); // some runtimes run other work on the thread that waits
    on.wait(done);
    return what.frame().promise().take();
}

template <class T>
T sync_wait(task<T> what) {
    parker done;
    detail::unpark_at_end(what, done);
    done.park();
    return what.frame().promise().take();
}

} // namespace holdfast
