// The user's code with its types taken away, so that one compiled runner serves every result type. For authors of
// runners; applications use policies.hpp.
#pragma once

#include <coroutine>
#include <exception>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <holdfast/attempt.hpp>
#include <holdfast/detail/stored.hpp>
#include <holdfast/failure.hpp>
#include <holdfast/task.hpp>

namespace holdfast {

// How the user's code ended, before any policy has looked at it.
enum class invoke_end : unsigned char { value, returned_failure, threw };

// What an attempt leaves behind is kept in a slot: slot 0, or one per attempt where attempts run at the same time.
// Different slots may be used from different threads at once.
class operation_slots {
public:
    virtual void reserve(unsigned slots) = 0;                               // before the first attempt; default 1
    virtual failure seen(unsigned slot) const noexcept = 0;                 // a view of what is in the slot
    virtual std::exception_ptr exception(unsigned slot) const noexcept = 0; // null unless it threw
    virtual void clear(unsigned slot) noexcept = 0;                         // destroys what is in it
    virtual void choose(unsigned slot) noexcept = 0;                        // its content is the result; default 0

protected:
    ~operation_slots() = default;
};

class operation : public operation_slots {
public:
    // Runs the user's function once, on this thread.
    virtual invoke_end invoke(attempt& a, unsigned slot) noexcept = 0;

protected:
    ~operation() = default;
};

class async_operation : public operation_slots {
public:
    // Makes the user's task and gives the coroutine to resume: the task's, which resumes `then` at its end, or `then`
    // itself when making it threw.
    virtual std::coroutine_handle<> start(attempt& a, unsigned slot, std::coroutine_handle<> then) noexcept = 0;
    // The same, with somebody to be told in place of a coroutine.
    virtual std::coroutine_handle<> start(attempt& a, unsigned slot, detail::task_end& then) noexcept = 0;
    // After the task's end: how it ended. The result stays where it is.
    virtual invoke_end ended(unsigned slot) const noexcept = 0;
    // After `then` was resumed, or later: takes the task's result into the slot and frees the task.
    virtual invoke_end finish(unsigned slot) noexcept = 0;

protected:
    ~async_operation() = default;
};

namespace detail {

template <class Function>
decltype(auto) call_plainly(Function& function, attempt& a) {
    if constexpr (std::is_invocable_v<Function&, attempt&>) return function(a);
    else if constexpr (std::is_invocable_v<Function&, std::stop_token>) return function(a.stop_token());
    else return function();
}

// What execute() gives for a coroutine function: code that returns one as it is returns a task, not a value.
template <class T>
concept turns_into_task = requires(T&& call) { std::move(call).as_task(); };

template <class Function>
decltype(auto) call_attempt(Function& function, attempt& a) {
    if constexpr (turns_into_task<decltype(call_plainly(function, a))>) return call_plainly(function, a).as_task();
    else return call_plainly(function, a);
}

template <class Function>
concept attempt_function = std::is_invocable_v<Function&, attempt&> ||
                           std::is_invocable_v<Function&, std::stop_token> || std::is_invocable_v<Function&>;

template <class Function>
using attempt_result = decltype(call_attempt(std::declval<Function&>(), std::declval<attempt&>()));

struct nothing_running {};

// Running is what has to stay alive while the attempt runs: a task, or nothing.
template <class T, class Running>
struct result_slot {
    using stored = detail::stored<T>;
    std::optional<stored> value;
    std::exception_ptr exception;
    [[no_unique_address]] Running running{};

    invoke_end classify() const noexcept {
        if (exception) return invoke_end::threw;
        using seen = std::conditional_t<std::is_reference_v<T>, std::remove_cvref_t<T>, stored>;
        if constexpr (returned_failure<seen>::possible)
            if (returned_failure<seen>::failed(*value)) return invoke_end::returned_failure;
        return invoke_end::value;
    }
    failure seen_value() const noexcept {
        if constexpr (std::is_reference_v<T>) return failure::returned(value->get());
        else return failure::returned(*value);
    }
};

// The part of an operation that knows T but not how the code runs. Base is operation or async_operation.
template <class Base, class T, class Running = nothing_running>
class typed_slots : public Base {
public:
    using slot_type = result_slot<T, Running>;
    using stored = typename slot_type::stored;

    void reserve(unsigned slots) final { more_ = std::make_unique<slot_type[]>(slots - 1); }
    failure seen(unsigned slot) const noexcept final {
        const auto& s = at(slot);
        if (s.exception) return failure::thrown(s.exception);
        return s.seen_value();
    }
    std::exception_ptr exception(unsigned slot) const noexcept final { return at(slot).exception; }
    void clear(unsigned slot) noexcept final {
        at(slot).value.reset();
        at(slot).exception = nullptr;
    }
    void choose(unsigned slot) noexcept final { chosen_ = slot; }

    // The chosen result; empty when the chosen attempt threw.
    std::optional<stored>& result() noexcept { return at(chosen_).value; }

protected:
    ~typed_slots() = default;
    slot_type& at(unsigned slot) noexcept { return slot == 0 ? first_ : more_[slot - 1]; }
    const slot_type& at(unsigned slot) const noexcept { return slot == 0 ? first_ : more_[slot - 1]; }

private:
    slot_type first_;
    std::unique_ptr<slot_type[]> more_;
    unsigned chosen_ = 0;
};

template <class Function>
class blocking_operation final : public typed_slots<operation, attempt_result<Function>> {
public:
    using value_type = attempt_result<Function>;
    explicit blocking_operation(Function& function) noexcept : function_(function) {}

    invoke_end invoke(attempt& a, unsigned slot) noexcept override {
        auto& s = this->at(slot);
        try {
            if constexpr (std::is_void_v<value_type>) {
                call_attempt(function_, a);
                s.value.emplace();
            } else {
                s.value.emplace(call_attempt(function_, a));
            }
        } catch (...) {
            s.exception = std::current_exception();
        }
        return s.classify();
    }

private:
    Function& function_;
};

template <class Function>
class task_operation final
    : public typed_slots<async_operation, typename attempt_result<Function>::value_type, attempt_result<Function>> {
public:
    using task_type = attempt_result<Function>;
    using value_type = typename task_type::value_type;
    explicit task_operation(Function& function) noexcept : function_(function) {}

    std::coroutine_handle<> start(attempt& a, unsigned slot, std::coroutine_handle<> then) noexcept override {
        auto& s = this->at(slot);
        try {
            s.running = call_attempt(function_, a);
            s.running.frame().promise().continuation = then;
            return s.running.frame();
        } catch (...) {
            s.exception = std::current_exception();
            return then;
        }
    }
    std::coroutine_handle<> start(attempt& a, unsigned slot, task_end& then) noexcept override {
        auto& s = this->at(slot);
        try {
            s.running = call_attempt(function_, a);
            s.running.frame().promise().on_end = &then;
            return s.running.frame();
        } catch (...) {
            s.exception = std::current_exception();
            return then.ended(then);
        }
    }
    invoke_end ended(unsigned slot) const noexcept override {
        const auto& s = this->at(slot);
        if (!s.running) return invoke_end::threw; // it could not even be made
        const auto& promise = s.running.frame().promise();
        if (promise.exception) return invoke_end::threw;
        if constexpr (!std::is_void_v<value_type>) {
            using seen = std::remove_cvref_t<value_type>;
            if constexpr (returned_failure<seen>::possible)
                if (returned_failure<seen>::failed(promise.look())) return invoke_end::returned_failure;
        }
        return invoke_end::value;
    }
    invoke_end finish(unsigned slot) noexcept override {
        auto& s = this->at(slot);
        if (s.running) {
            auto& promise = s.running.frame().promise();
            if (promise.exception) {
                s.exception = std::move(promise.exception);
            } else {
                try {
                    if constexpr (std::is_void_v<value_type>) s.value.emplace();
                    else s.value.emplace(promise.take());
                } catch (...) {
                    s.exception = std::current_exception();
                }
            }
            s.running = {};
        }
        return s.classify();
    }

    // For the caller, when all is over: takes what a runner may have left in its task. What that throws is given back.
    std::exception_ptr take_rest() noexcept {
        if (!this->at(0).running || finish(0) != invoke_end::threw) return nullptr;
        return this->at(0).exception;
    }

private:
    Function& function_;
};

} // namespace detail

} // namespace holdfast
