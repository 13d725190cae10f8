// One view over everything an attempt can end badly with: an exception, an error code, a returned failure, a timeout.
// A `failure` borrows; use it only inside the callback that received it.
#pragma once

#include <exception>
#include <expected>
#include <memory>
#include <string>
#include <system_error>
#include <type_traits>
#include <typeinfo>

#include <holdfast/detail/exception_type.hpp>
#include <holdfast/error.hpp>

namespace holdfast {

// How to see a failure in a returned value. Specialise it for a result type of your own.
template <class T>
struct returned_failure {
    static constexpr bool possible = false;
};

namespace detail {

template <class E>
std::error_code code_of(const E& e) noexcept {
    if constexpr (std::is_same_v<E, error>) return make_error_code(e.code);
    else if constexpr (std::is_same_v<E, std::error_code>) return e;
    else if constexpr (std::is_error_code_enum_v<E>) return make_error_code(e);
    else if constexpr (std::is_same_v<E, std::errc>) return std::make_error_code(e);
    else return {};
}

template <class E>
std::optional<duration> retry_after_of(const E& e) noexcept {
    if constexpr (std::is_same_v<E, error>) return e.retry_after;
    else return std::nullopt;
}

} // namespace detail

template <class T, class E>
struct returned_failure<std::expected<T, E>> {
    static constexpr bool possible = true;
    static bool failed(const std::expected<T, E>& r) noexcept { return !r.has_value(); }
    static std::error_code code(const std::expected<T, E>& r) noexcept { return detail::code_of(r.error()); }
    static std::optional<duration> retry_after(const std::expected<T, E>& r) noexcept {
        return detail::retry_after_of(r.error());
    }
};

template <>
struct returned_failure<std::error_code> {
    static constexpr bool possible = true;
    static bool failed(const std::error_code& c) noexcept { return static_cast<bool>(c); }
    static std::error_code code(const std::error_code& c) noexcept { return c; }
    static std::optional<duration> retry_after(const std::error_code&) noexcept { return std::nullopt; }
};

class failure {
public:
    // An exception left the attempt.
    static failure thrown(const std::exception_ptr& e) noexcept {
        failure f;
        f.exception_ = std::addressof(e);
        return f;
    }
    // The attempt returned a value; `code` is set when that value is itself a failure.
    template <class T>
    static failure returned(const T& value) noexcept {
        failure f;
        f.value_ = std::addressof(value);
        f.value_type_ = &typeid(T);
        if constexpr (returned_failure<T>::possible) {
            if (returned_failure<T>::failed(value)) {
                f.code_ = returned_failure<T>::code(value);
                f.retry_after_ = returned_failure<T>::retry_after(value);
                f.returned_failure_ = true;
            }
        }
        return f;
    }
    // Holdfast itself ended the attempt: errc::timed_out, errc::circuit_open.
    static failure refused(errc code) noexcept {
        failure f;
        f.code_ = make_error_code(code);
        return f;
    }

    bool is_exception() const noexcept { return exception_ != nullptr; }
    bool is_returned_failure() const noexcept { return returned_failure_; }
    bool is_value() const noexcept { return value_ != nullptr && !returned_failure_; }

    // The thrown object as E (or as a base E of it), else null.
    template <class E>
    const E* as() const noexcept {
        return exception_ != nullptr ? detail::exception_as<E>(*exception_) : nullptr;
    }
    // The returned value, when the operation returns exactly T, else null.
    template <class T>
    const T* value() const noexcept {
        return value_ != nullptr && *value_type_ == typeid(T) ? static_cast<const T*>(value_) : nullptr;
    }
    // The code it carries: of a returned failure, of a std::system_error, of a holdfast::failed. Empty when none.
    std::error_code code() const noexcept {
        if (const auto* e = as<std::system_error>()) return e->code();
        if (const auto* e = as<failed>()) return make_error_code(e->code());
        return code_;
    }
    // When the other side said to come back, if it said so.
    std::optional<duration> retry_after() const noexcept {
        if (const auto* e = as<failed>()) return e->what_failed().retry_after;
        return retry_after_;
    }
    // Never retried, whatever the rules say: cancellation and non_retryable_error.
    bool is_terminal() const noexcept {
        return exception_ != nullptr && (as<operation_cancelled>() != nullptr || as<non_retryable_error>() != nullptr);
    }

    // What it is, for people: the exception's type, or the category of its code. Empty when it has neither.
    std::string kind() const {
        if (exception_ != nullptr) return detail::exception_type_name(*exception_);
        return code_ ? code_.category().name() : "";
    }
    std::string message() const {
        if (exception_ != nullptr) return detail::exception_message(*exception_);
        return code_ ? code_.message() : "a returned value";
    }

private:
    failure() = default;

    const std::exception_ptr* exception_ = nullptr;
    const void* value_ = nullptr;
    const std::type_info* value_type_ = nullptr;
    std::error_code code_;
    std::optional<duration> retry_after_;
    bool returned_failure_ = false;
};

} // namespace holdfast
