#pragma once

#include <utility>

#include <holdfast/runtime.hpp>
#include <holdfast/sleep.hpp>
#include <holdfast/task.hpp>

namespace holdfast::conformance {

// A task that first goes over to a runtime thread.
template <class T>
task<T> on_runtime(runtime& on, task<T> what) {
    auto go = resume_on(on);
    co_await go;
    co_return co_await std::move(what);
}

} // namespace holdfast::conformance
