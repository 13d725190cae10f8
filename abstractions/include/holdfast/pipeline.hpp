// What a runtime makes of a policy: a pipeline that runs operations, the runner that makes and keeps pipelines, and
// the catalog of the policies there are. The engine ships all three; a runtime plugin may bring its own runner.
#pragma once

#include <atomic>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <holdfast/error.hpp>
#include <holdfast/listener.hpp>
#include <holdfast/operation.hpp>
#include <holdfast/outcome.hpp>
#include <holdfast/policy.hpp>
#include <holdfast/runtime.hpp>
#include <holdfast/task.hpp>

namespace holdfast {

enum class circuit_state : unsigned char { closed, open, half_open, isolated };

constexpr std::string_view to_text(circuit_state s) noexcept {
    switch (s) {
    case circuit_state::closed: return "closed";
    case circuit_state::open: return "open";
    case circuit_state::half_open: return "half-open";
    case circuit_state::isolated: return "isolated";
    }
    return "unknown";
}

class pipeline;

// One call on its way through a pipeline. Lives in the caller's frame.
struct execution {
    execution_report::fields& report;
    const std::stop_token& stop;      // the caller's
    attempt_ledger* ledger = nullptr; // where to write attempts down, if the caller will look at them
    bool offers_fallback = false;     // the caller has one; the terminal event waits for it
    std::uint64_t id = 0;             // set by the pipeline when somebody listens
};

// A call without a thread: what has to stay alive while it runs, in the caller's frame. `rest` is a coroutine, for the
// runners and the calls that need one; a runner keeps what it likes in `room`, and destroys it by the end of the call.
struct call_room : detail::task_end {
    call_room() noexcept {}
    call_room(const call_room&) = delete;
    call_room& operator=(const call_room&) = delete;

    static constexpr std::size_t room_size = 384;
    pipeline* owner = nullptr;
    async_operation* what = nullptr;
    execution* x = nullptr;
    std::coroutine_handle<> then{};
    task<void> rest{};
    alignas(std::max_align_t) std::byte room[room_size];

    // Goes on as a coroutine that resumes `then` at its end.
    std::coroutine_handle<> go_on(task<void> how) noexcept {
        rest = std::move(how);
        rest.frame().promise().continuation = then;
        return rest.frame();
    }
    // After `then` was resumed. Rethrows what left the runner itself.
    void check() const {
        if (rest) rest.frame().promise().take();
    }
};

struct pipeline_stats {
    std::uint64_t late_attempts = 0; // attempts that ended after their deadline, so far
    int overdue_attempts = 0;        // attempts that are past their deadline now and still run
    int running = 0;                 // calls that hold a slot of the concurrency limit
    int queued = 0;                  // calls that wait for one
    circuit_state circuit = circuit_state::closed;
};

// Every member may be called from any thread at any time. A pipeline lives as long as its runner.
class pipeline {
public:
    virtual ~pipeline() = default;

    virtual std::string_view name() const noexcept = 0;
    virtual runtime& on() const noexcept = 0;

    // Runs the operation to its end on this thread and fills in x.report. Waits block this thread.
    virtual void run(operation& what, execution& x) noexcept = 0;
    // The same without holding a thread. `what` and `x` must live until the task has ended.
    virtual task<void> run_async(async_operation& what, execution& x) = 0;
    // The same for a caller that has the room: gives the coroutine to resume, which leads to `then`. The last result may
    // still be in the operation's task. All of them must live until `then` is resumed.
    virtual std::coroutine_handle<> start_async(async_operation& what, execution& x, call_room& run,
                                                std::coroutine_handle<> then) {
        run.then = then;
        return run.go_on(run_async(what, x));
    }
    // For executions that offer a fallback: reports how that went, and the terminal event.
    virtual void fallback_ended(execution& x, bool used) noexcept = 0;

    // The policy as it is in force now.
    virtual policy_options options() const = 0;
    virtual pipeline_stats stats() const noexcept = 0;

    // By hand: refuse every call until close_circuit(). No effect without a breaker.
    virtual void isolate_circuit() noexcept = 0;
    virtual void close_circuit() noexcept = 0;

protected:
    pipeline() = default;
    pipeline(const pipeline&) = delete;
    pipeline& operator=(const pipeline&) = delete;
};

// A policy that can be replaced while it is in use. Replaced options stay alive as long as the catalog.
struct policy_cell {
    std::string name;
    std::atomic<const policy_options*> current = nullptr;
};

// The policies by name. Any thread.
class policy_catalog {
public:
    virtual ~policy_catalog() = default;

    // errc::duplicate when the name is taken; errc::invalid_policy when it breaks a rule.
    virtual result<void> add(const policy_options& options) = 0;
    // errc::unknown_policy, with the nearest known name, when there is none.
    virtual result<const policy_cell*> find(std::string_view name) const = 0;
    virtual std::vector<std::string> names() const = 0;
    // Replaces several policies at once, or none: the first that is unknown or invalid refuses all. Calls under way
    // finish on what they started with; breaker, limiter and budget state is kept.
    virtual result<void> replace(const std::vector<policy_options>& changed) = 0;
};

// Makes each pipeline when it is first asked for, once. Any thread.
class pipeline_runner {
public:
    virtual ~pipeline_runner() = default;

    // The pipeline of a policy. Pipelines with different keys share the policy and nothing else: one breaker per
    // downstream host, say. The pointer lives as long as the runner.
    virtual result<pipeline*> bind(std::string_view policy, std::string_view key = {}) = 0;

    // Attaches a listener for good, to all pipelines.
    virtual void listen(std::shared_ptr<execution_listener> listener) = 0;
};

// A runtime plugin that brings a runner of its own also derives from this; the host then uses that runner.
class brings_runner {
public:
    virtual std::unique_ptr<pipeline_runner> make_runner(const policy_catalog& catalog) = 0;

protected:
    ~brings_runner() = default;
};

} // namespace holdfast
