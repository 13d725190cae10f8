// Running code under a policy.
//
//   auto receipt = policies.execute(invoice_email, [&](holdfast::attempt& a) { return smtp.send(mail, a.stop_token()); });
//   auto receipt = co_await policies.execute(invoice_email, [&](holdfast::attempt& a) { return send_async(mail, a.stop_token()); });
//   auto outcome = policies.try_execute(invoice_email, send);
//
// The function takes an attempt&, a std::stop_token or nothing. When it returns a task, so do these calls, and the
// function is kept inside that task. execute() gives the value or throws what went wrong: the function's own last
// exception, or holdfast::failed when Holdfast refused; where the function returns a result<T>, a refusal comes back
// as one. try_execute() gives an outcome and throws nothing.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <holdfast/operation.hpp>
#include <holdfast/outcome.hpp>
#include <holdfast/pipeline.hpp>
#include <holdfast/policy.hpp>

namespace holdfast {

// Answers in place of an execution that failed: fallback([](const execution_report& why) { return cached; }).
template <class Function>
struct fallback {
    Function function;
    explicit fallback(Function f) : function(std::move(f)) {}
};

namespace detail {

struct no_fallback {};

template <class T>
inline constexpr bool is_result = false;
template <class T>
inline constexpr bool is_result<std::expected<T, error>> = true;

inline bool wants_fallback(const pipeline& p, const execution& x) {
    const stop_reason reason = x.report.reason;
    if (reason == stop_reason::succeeded || reason == stop_reason::cancelled) return false;
    switch (p.options().fallback) {
    case fallback_when::failed: return true;
    case fallback_when::rejected_only: return reason == stop_reason::rejected || reason == stop_reason::circuit_open;
    case fallback_when::never: break;
    }
    return false;
}

template <class Function>
decltype(auto) call_fallback_plainly(Function& function, const execution_report& why) {
    if constexpr (std::is_invocable_v<Function&, const execution_report&>) return function(why);
    else return function();
}
template <class Function>
decltype(auto) call_fallback(Function& function, const execution_report& why) {
    if constexpr (turns_into_task<decltype(call_fallback_plainly(function, why))>)
        return call_fallback_plainly(function, why).as_task();
    else return call_fallback_plainly(function, why);
}

// After the fallback threw: its exception is what failed, and what it stood in for is the cause.
inline void fallback_threw(execution& x, const execution_report& why, std::exception_ptr thrown) {
    x.report.cause = why.to_exception();
    if (!x.report.cause) x.report.cause = std::make_exception_ptr(failed(why.error()));
    x.report.exception = std::move(thrown);
    x.report.refusal.reset();
}

// Puts what the function gives into the value; void counts as a value too.
template <class T, class Function>
void emplace_from(std::optional<stored<T>>& value, Function&& function) {
    if constexpr (std::is_void_v<T>) {
        function();
        value.emplace();
    } else {
        value.emplace(function());
    }
}

// The report that a fallback gets to see.
inline execution_report seen_so_far(const execution& x) {
    execution_report report(x.report);
    if (x.ledger != nullptr) report.ledger_to_fill() = *x.ledger;
    return report;
}

template <class T>
[[gnu::noinline, gnu::cold]] T error_or_throw(execution_report::fields& report) {
    const execution_report why(std::move(report));
    if constexpr (is_result<T>) {
        if (why.refusal()) return std::unexpected(why.error());
    }
    std::rethrow_exception(why.to_exception());
}

template <class T>
[[gnu::always_inline]] inline T value_or_throw(execution_report::fields& report, std::optional<stored<T>>& value) {
    if (!value.has_value()) [[unlikely]]
        return error_or_throw<T>(report);
    if constexpr (!std::is_void_v<T>) return std::move(*value);
}

template <class T, class Fallback>
void run_fallback(pipeline& p, Fallback& other, execution& x, std::optional<stored<T>>& value) {
    const bool used = wants_fallback(p, x);
    if (used) {
        value.reset();
        const execution_report why = seen_so_far(x);
        try {
            emplace_from<T>(value, [&]() -> decltype(auto) { return call_fallback(other, why); });
            x.report.fell_back = true;
        } catch (...) {
            fallback_threw(x, why, std::current_exception());
        }
    }
    p.fallback_ended(x, used);
}

// For a fallback that is itself a coroutine.
template <class T, class Fallback>
task<void> await_fallback(pipeline& p, Fallback& other, execution& x, std::optional<stored<T>>& value) {
    const bool used = wants_fallback(p, x);
    if (used) {
        value.reset();
        const execution_report why = seen_so_far(x);
        try {
            auto answer = call_fallback(other, why);
            if constexpr (std::is_void_v<T>) {
                co_await std::move(answer);
                value.emplace();
            } else {
                value.emplace(co_await std::move(answer));
            }
            x.report.fell_back = true;
        } catch (...) {
            fallback_threw(x, why, std::current_exception());
        }
    }
    p.fallback_ended(x, used);
}

template <class Function, class Fallback, class Operation>
void run(pipeline& p, Operation& what, Fallback& other, execution& x) {
    constexpr bool falls_back = !std::is_same_v<Fallback, no_fallback>;
    x.offers_fallback = falls_back;
    p.run(what, x);
    if constexpr (falls_back) run_fallback<attempt_result<Function>>(p, other, x, what.result());
}

template <class Operation, class Fallback>
task<void> run_with_fallback(pipeline& p, Operation& what, Fallback& other, execution& x) {
    using value_type = typename Operation::value_type;
    x.offers_fallback = true;
    co_await p.run_async(what, x);
    if constexpr (is_task<decltype(call_fallback(other, std::declval<const execution_report&>()))>)
        co_await await_fallback<value_type>(p, other, x, what.result());
    else run_fallback<value_type>(p, other, x, what.result());
}

template <class Function>
inline constexpr bool is_async = is_task<attempt_result<std::decay_t<Function>>>;

} // namespace detail

// A call under way to be awaited, once: `co_await policies.execute(…)`. It keeps the function, and turns into a
// task<T> where one is wanted.
template <class Function, class Fallback, bool Try>
class [[nodiscard("a call does nothing until it is awaited")]] async_call {
    using operation_type = detail::task_operation<Function>;
    using result_type = typename operation_type::value_type;

public:
    using value_type = std::conditional_t<Try, outcome<result_type>, result_type>;

    async_call(pipeline& p, Function function, Fallback other, std::stop_token stop)
        : pipeline_(p), function_(std::move(function)), other_(std::move(other)), stop_(std::move(stop)) {}

    auto operator co_await() && noexcept { return awaiter(*this); }
    operator task<value_type>() && { return std::move(*this).as_task(); }
    task<value_type> as_task() && { return await_it(std::move(*this)); }

private:
    class awaiter {
    public:
        explicit awaiter(async_call& of) noexcept : of_(of), what_(of.function_) {}
        awaiter(const awaiter&) = delete;
        awaiter& operator=(const awaiter&) = delete;

        bool await_ready() const noexcept { return false; }
        std::coroutine_handle<> await_suspend(std::coroutine_handle<> awaiting) {
            if constexpr (std::is_same_v<Fallback, detail::no_fallback>) {
                return of_.pipeline_.start_async(what_, x_, run_, awaiting);
            } else {
                run_.then = awaiting;
                return run_.go_on(detail::run_with_fallback(of_.pipeline_, what_, of_.other_, x_));
            }
        }
        value_type await_resume() {
            run_.check();
            if (auto thrown = what_.take_rest()) [[unlikely]]
                x_.report.exception = std::move(thrown);
            if constexpr (Try) {
                report_.set_value(std::move(what_.result()));
                return std::move(report_);
            } else {
                return detail::value_or_throw<result_type>(report_, what_.result());
            }
        }

    private:
        static execution start(execution_report::fields& f, const std::stop_token& stop) { return {f, stop}; }
        static execution start(outcome<result_type>& o, const std::stop_token& stop) {
            return {o.to_fill(), stop, &o.ledger_to_fill()};
        }

        async_call& of_;
        operation_type what_;
        std::conditional_t<Try, outcome<result_type>, execution_report::fields> report_{};
        execution x_ = start(report_, of_.stop_);
        call_room run_;
    };

    static task<value_type> await_it(async_call self) { co_return co_await std::move(self); }

    pipeline& pipeline_;
    Function function_;
    [[no_unique_address]] Fallback other_;
    std::stop_token stop_;
};

template <class Function, class Fallback, bool Try>
decltype(auto) sync_wait(runtime& on, async_call<Function, Fallback, Try> what) {
    return sync_wait(on, std::move(what).as_task());
}
template <class Function, class Fallback, bool Try>
decltype(auto) sync_wait(async_call<Function, Fallback, Try> what) {
    return sync_wait(std::move(what).as_task());
}

// A policy bound to its pipeline: the quickest way to run it, and the place to look at it. Copyable; lives as long as
// the host. Any thread.
class bound_policy {
public:
    explicit bound_policy(holdfast::pipeline& p) noexcept : pipeline_(&p) {}

    template <class Function>
        requires detail::attempt_function<Function>
    decltype(auto) execute(Function&& function, std::stop_token stop = {}) const {
        return call<false>(std::forward<Function>(function), detail::no_fallback{}, std::move(stop));
    }
    template <class Function, class Other>
    decltype(auto) execute(Function&& function, fallback<Other> other, std::stop_token stop = {}) const {
        return call<false>(std::forward<Function>(function), std::move(other.function), std::move(stop));
    }
    template <class Function>
        requires detail::attempt_function<Function>
    auto try_execute(Function&& function, std::stop_token stop = {}) const {
        return call<true>(std::forward<Function>(function), detail::no_fallback{}, std::move(stop));
    }
    template <class Function, class Other>
    auto try_execute(Function&& function, fallback<Other> other, std::stop_token stop = {}) const {
        return call<true>(std::forward<Function>(function), std::move(other.function), std::move(stop));
    }

    std::string_view name() const noexcept { return pipeline_->name(); }
    policy_options options() const { return pipeline_->options(); }
    pipeline_stats stats() const noexcept { return pipeline_->stats(); }
    circuit_state circuit() const noexcept { return pipeline_->stats().circuit; }
    void isolate_circuit() const noexcept { pipeline_->isolate_circuit(); }
    void close_circuit() const noexcept { pipeline_->close_circuit(); }
    holdfast::runtime& runtime() const noexcept { return pipeline_->on(); }

private:
    template <bool Try, class Function, class Other>
    decltype(auto) call(Function&& function, Other&& other, std::stop_token&& stop) const {
        using plain = std::remove_reference_t<Function>;
        if constexpr (detail::is_async<Function>) {
            return async_call<std::decay_t<Function>, Other, Try>(*pipeline_, std::forward<Function>(function),
                                                                  std::forward<Other>(other), std::move(stop));
        } else if constexpr (Try) {
            outcome<detail::attempt_result<plain>> ended;
            execution x{ended.to_fill(), stop, &ended.ledger_to_fill()};
            detail::blocking_operation<plain> what(function);
            detail::run<plain>(*pipeline_, what, other, x);
            ended.set_value(std::move(what.result()));
            return ended;
        } else {
            execution_report::fields report;
            execution x{report, stop};
            detail::blocking_operation<plain> what(function);
            detail::run<plain>(*pipeline_, what, other, x);
            return detail::value_or_throw<detail::attempt_result<plain>>(report, what.result());
        }
    }

    holdfast::pipeline* pipeline_;
};

// All policies of a host. Any thread. A policy that was not registered is an error at its first use: these calls then
// throw failed(errc::unknown_policy), try_execute too.
class policies {
public:
    explicit policies(pipeline_runner& runner) noexcept : runner_(runner) {}
    policies(const policies&) = delete;
    policies& operator=(const policies&) = delete;

    // With a key: a pipeline of its own, with its own breaker, limits and budget, under the same policy.
    bound_policy bind(std::string_view name, std::string_view key = {}) const {
        auto found = runner_.bind(name, key);
        if (!found) throw failed(std::move(found.error()));
        return bound_policy(**found);
    }
    bound_policy bind(const policy& p) const { return bound_policy(find(p.name())); }
    bound_policy bind(const policy& p, std::string_view key) const { return bind(p.name(), key); }

    template <class... Arguments>
    decltype(auto) execute(const policy& p, Arguments&&... arguments) const {
        return bind(p).execute(std::forward<Arguments>(arguments)...);
    }
    template <class... Arguments>
    auto try_execute(const policy& p, Arguments&&... arguments) const {
        return bind(p).try_execute(std::forward<Arguments>(arguments)...);
    }
    // By name, for a policy that is known only at run time.
    template <class... Arguments>
    decltype(auto) execute(std::string_view name, Arguments&&... arguments) const {
        return bind(name).execute(std::forward<Arguments>(arguments)...);
    }
    template <class... Arguments>
    auto try_execute(std::string_view name, Arguments&&... arguments) const {
        return bind(name).try_execute(std::forward<Arguments>(arguments)...);
    }

    pipeline_runner& runner() const noexcept { return runner_; }

private:
    // A policy's name is a constant of the program, so its address stands for it.
    struct entry {
        std::string_view name;
        pipeline* found;
    };
    static constexpr std::size_t slots = 256;
    static constexpr std::size_t probes = 4;

    static std::size_t slot_of(const char* name) noexcept {
        return (reinterpret_cast<std::uintptr_t>(name) * 0x9e3779b97f4a7c15ULL) >> 56;
    }

    pipeline& find(std::string_view name) const {
        const std::size_t first = slot_of(name.data());
        for (std::size_t i = 0; i < probes; ++i) {
            const entry* known = known_[(first + i) % slots].load(std::memory_order_acquire);
            if (known == nullptr) break;
            if (known->name.data() == name.data() && known->name.size() == name.size()) [[likely]]
                return *known->found;
        }
        return find_slowly(name, first);
    }

    [[gnu::noinline]] pipeline& find_slowly(std::string_view name, std::size_t first) const {
        auto found = runner_.bind(name, {});
        if (!found) throw failed(std::move(found.error()));
        const std::lock_guard lock(mutex_);
        for (std::size_t i = 0; i < probes; ++i) {
            auto& slot = known_[(first + i) % slots];
            if (slot.load(std::memory_order_relaxed) != nullptr) continue;
            entries_.push_back(std::make_unique<entry>(entry{name, *found}));
            slot.store(entries_.back().get(), std::memory_order_release);
            break;
        }
        return **found;
    }

    pipeline_runner& runner_;
    mutable std::array<std::atomic<const entry*>, slots> known_{};
    mutable std::mutex mutex_;
    mutable std::vector<std::unique_ptr<entry>> entries_;
};

} // namespace holdfast
