// What a case works with: a runtime on virtual time, an engine on it, and one of the two call forms.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <holdfast/conformance.hpp>
#include <holdfast/engine.hpp>
#include <holdfast/simulated_runtime.hpp>
#include <holdfast/sleep.hpp>
#include <holdfast/sync_wait.hpp>
#include <holdfast/task.hpp>
#include <holdfast/virtual_time.hpp>
#include <holdfast/when_all.hpp>

#include "check.hpp"
#include "on_runtime.hpp"

namespace holdfast::conformance {

using namespace std::chrono_literals;

using runtime_factory = std::function<std::unique_ptr<runtime>()>;

enum class form : unsigned char { blocking, coroutine };

// Keeps a copy of every event, without what it borrows.
class recorder final : public execution_listener {
public:
    struct entry {
        event_kind kind;
        std::string policy;
        std::uint64_t execution;
        time_point at;
        int attempt;
        std::optional<attempt_end> end;
        std::optional<stop_reason> reason;
        std::optional<duration> delay;
        std::error_code code;
    };

    void on_event(const execution_event& e) override {
        {
            const std::lock_guard lock(mutex_);
            entries_.push_back(
                {e.kind, std::string(e.policy), e.execution, e.at, e.attempt, e.end, e.reason, e.delay, e.code});
        }
        if (then) then(e);
    }
    std::vector<entry> entries() const {
        const std::lock_guard lock(mutex_);
        return entries_;
    }
    int count(event_kind kind) const {
        int n = 0;
        for (const auto& each : entries()) n += each.kind == kind ? 1 : 0;
        return n;
    }

    std::function<void(const execution_event&)> then; // set it before anything runs

private:
    mutable std::mutex mutex_;
    std::vector<entry> entries_;
};

namespace detail_ {

template <class Function>
using body_result = std::invoke_result_t<Function&, attempt&>;
template <class T>
struct plain {
    using type = T;
};
template <class T>
struct plain<task<T>> {
    using type = T;
};

} // namespace detail_

// What a body `(attempt&) -> T` or `(attempt&) -> task<T>` ends with: T.
template <class Function>
using body_value = typename detail_::plain<detail_::body_result<Function>>::type;

template <class Function>
task<body_value<Function>> as_task(Function body, attempt& a) {
    if constexpr (holdfast::detail::is_task<detail_::body_result<Function>>) {
        auto running = body(a);
        co_return co_await std::move(running);
    } else {
        co_return body(a);
    }
}

class lab {
public:
    lab(const runtime_factory& make, const options& how, form which);
    ~lab();
    lab(const lab&) = delete;
    lab& operator=(const lab&) = delete;

    runtime& rt() noexcept { return *rt_; }
    holdfast::engine& engine() noexcept { return *engine_; }
    const options& how() const noexcept { return how_; }
    form which() const noexcept { return which_; }
    // Calls of this form may end in another order than they began. With a single thread, blocking calls cannot.
    bool overlaps() const noexcept { return which_ == form::coroutine || simulated_ == nullptr; }

    bound_policy add(const policy_options& o, std::source_location where = std::source_location::current());
    bound_policy bind(std::string_view name, std::string_view key = {}) { return engine_->policies().bind(name, key); }
    recorder& listen();

    // Virtual time since the start; going on to a point of it; timers that are armed.
    duration now() const noexcept { return rt_->now() - start_; }
    void sleep_until(duration since_start) { block_until(*rt_, start_ + since_start); }
    void sleep(duration d) { block_for(*rt_, d); }
    std::size_t timers() const { return virtual_ ? virtual_->timers() : simulated_->timers(); }

    // try_execute in the form under test. The body returns a value or a task; either works in both forms.
    template <class Function>
    outcome<body_value<Function>> run(bound_policy p, Function body, std::stop_token stop = {}) {
        if (which_ == form::blocking) return checked(p.try_execute(blocking(std::move(body)), std::move(stop)));
        return checked(sync_wait(*rt_, p.try_execute(coroutine(std::move(body)), std::move(stop))));
    }
    // execute in the form under test.
    template <class Function>
    body_value<Function> execute(bound_policy p, Function body, std::stop_token stop = {}) {
        if (which_ == form::blocking) return p.execute(blocking(std::move(body)), std::move(stop));
        return sync_wait(*rt_, p.execute(coroutine(std::move(body)), std::move(stop)));
    }
    template <class Function, class Other>
    outcome<body_value<Function>> run_or(bound_policy p, Function body, fallback<Other> other,
                                         std::stop_token stop = {}) {
        if (which_ == form::blocking)
            return checked(p.try_execute(blocking(std::move(body)), std::move(other), std::move(stop)));
        return checked(sync_wait(*rt_, p.try_execute(coroutine(std::move(body)), std::move(other), std::move(stop))));
    }
    // As a task, for executions inside executions.
    template <class Function>
    task<outcome<body_value<Function>>> start(bound_policy p, Function body, std::stop_token stop = {}) {
        if (which_ == form::coroutine) return p.try_execute(coroutine(std::move(body)), std::move(stop));
        return start_blocking(p, std::move(body), std::move(stop));
    }
    // Always a coroutine, whatever the form: for many executions at the same time.
    template <class Function>
    static task<outcome<body_value<Function>>> start_async(bound_policy p, Function body, std::stop_token stop = {}) {
        return p.try_execute(coroutine(std::move(body)), std::move(stop));
    }
    template <class T>
    T await(task<T> what) {
        return sync_wait(*rt_, std::move(what));
    }

private:
    // A check that failed inside the body is no failure of the body.
    template <class T>
    static outcome<T> checked(outcome<T> o) {
        if (holdfast::detail::exception_as<check_failed>(o.exception())) std::rethrow_exception(o.exception());
        return o;
    }
    template <class Function>
    static auto blocking(Function body) {
        return [body = std::move(body)](attempt& a) mutable -> body_value<Function> {
            if constexpr (holdfast::detail::is_task<detail_::body_result<Function>>)
                return sync_wait(a.runtime(), body(a));
            else return body(a);
        };
    }
    template <class Function>
    static auto coroutine(Function body) {
        return [body = std::move(body)](attempt& a) mutable { return as_task<Function>(body, a); };
    }
    template <class Function>
    static task<outcome<body_value<Function>>> start_blocking(bound_policy p, Function body, std::stop_token stop) {
        co_return p.try_execute(blocking(std::move(body)), std::move(stop));
    }

    const options& how_;
    form which_;
    std::unique_ptr<runtime> made_;
    std::unique_ptr<virtual_time_runtime> virtual_; // null when the runtime is itself the simulated one
    std::optional<virtual_time_runtime::participant> here_;
    simulated_runtime* simulated_ = nullptr;
    runtime* rt_ = nullptr;
    time_point start_;
    std::unique_ptr<holdfast::engine> engine_;
};

// Calls a function at a point of virtual time, on a runtime thread. Destroy it only when nothing runs any more, or
// after it has run.
class alarm : timer {
public:
    alarm(lab& in, duration after, std::function<void()> then);
    ~alarm();
    alarm(const alarm&) = delete;
    alarm& operator=(const alarm&) = delete;

private:
    static void ring(work& w, wake) noexcept;
    runtime& on_;
    std::function<void()> then_;
    parker rung_;
};

// Bodies that take time. The first two end early, with operation_cancelled, when the attempt has to stop.
template <class T>
task<T> give_after(attempt& a, duration d, T value) {
    auto sleeping = a.sleep_for(d);
    co_await std::move(sleeping);
    co_return std::move(value);
}
task<int> fail_after(attempt& a, duration d, std::string message);
// These pay no heed to their token.
task<int> give_late(runtime& on, duration d, int value);
task<int> fail_late(runtime& on, duration d, std::string message);

struct test_case {
    int number;
    std::string name;
    void (*run)(lab&);
    bool both_forms = true;
};

struct test_group {
    std::string name;
    std::vector<test_case> cases;
};

test_group attempts_group();
test_group backoff_group();
test_group time_group();
test_group cancellation_group();
test_group breaker_group();
test_group limits_group();
test_group reload_group();
test_group trace_group();

// Cases on real time get the factory and use no lab.
struct contract_case {
    int number;
    std::string name;
    void (*run)(const runtime_factory&);
};
std::vector<contract_case> contract_cases();

} // namespace holdfast::conformance
