// The hedged form of an execution: attempts that overlap, the first good answer wins.
#pragma once

#include <holdfast/operation.hpp>
#include <holdfast/task.hpp>

#include "call.hpp"

namespace holdfast {

// Ends when every attempt has ended. Both forms fill in the execution's report.
task<void> run_hedged(call& c, async_operation& what);
task<void> run_hedged(call& c, operation& what); // attempts run on the blocking pool

// Makes one attempt of an asynchronous operation; both drivers of it use this.
struct invoke_async {
    async_operation& what;
    attempt& a;
    unsigned slot;
    bool await_ready() const noexcept { return false; }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<> then) const noexcept {
        return what.start(a, slot, then);
    }
    invoke_end await_resume() const noexcept { return what.finish(slot); }
};

} // namespace holdfast
