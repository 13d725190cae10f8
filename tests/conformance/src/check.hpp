// Checks that throw when they fail, and say what was expected and what was found.
#pragma once

#include <chrono>
#include <concepts>
#include <exception>
#include <optional>
#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <vector>

#include <holdfast/detail/exception_type.hpp>
#include <holdfast/duration.hpp>
#include <holdfast/error.hpp>
#include <holdfast/listener.hpp>
#include <holdfast/outcome.hpp>
#include <holdfast/pipeline.hpp>

namespace holdfast::conformance {

// Not retried when it is thrown inside an attempt.
class check_failed : public non_retryable_error {
public:
    using non_retryable_error::non_retryable_error;
};

// Thrown by a case that cannot be tried on this runtime.
class case_skipped : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

template <class T>
std::string shown(const T& value) {
    if constexpr (std::same_as<T, bool>) return value ? "true" : "false";
    else if constexpr (std::same_as<T, duration>) return to_text(value);
    else if constexpr (std::same_as<T, time_point>) return to_text(value.time_since_epoch());
    else if constexpr (std::is_arithmetic_v<T>) return std::to_string(value);
    else if constexpr (std::convertible_to<T, std::string_view>)
        return '"' + std::string(std::string_view(value)) + '"';
    else if constexpr (std::same_as<T, std::error_code>) return value ? value.message() : "no error";
    else if constexpr (requires { to_text(value); }) return std::string(to_text(value));
    else return "something else";
}
template <class T>
std::string shown(const std::optional<T>& value) {
    return value ? shown(*value) : "nothing";
}
template <class T>
std::string shown(const std::vector<T>& values) {
    std::string text = "[";
    for (const auto& each : values) text += (text.size() == 1 ? "" : ", ") + shown(each);
    return text + "]";
}

[[noreturn]] inline void fail_check(const std::string& what,
                                    const std::source_location& where = std::source_location::current()) {
    const std::string_view path = where.file_name();
    throw check_failed(std::string(path.substr(path.find_last_of('/') + 1)) + ":" + std::to_string(where.line()) +
                       ": " + what);
}

inline void check(bool holds, std::string_view what, std::source_location where = std::source_location::current()) {
    if (!holds) fail_check(std::string(what) + ": expected to hold, does not", where);
}

// `what` names the thing that is compared.
template <class Found, class Expected>
void check_equal(const Found& found, const Expected& expected, std::string_view what,
                 std::source_location where = std::source_location::current()) {
    if (found == expected) return;
    fail_check(std::string(what) + ": expected " + shown(expected) + ", found " + shown(found), where);
}

template <class Found, class Low, class High>
void check_between(const Found& found, const Low& low, const High& high, std::string_view what,
                   std::source_location where = std::source_location::current()) {
    if (low <= found && found <= high) return;
    fail_check(std::string(what) + ": expected " + shown(low) + " to " + shown(high) + ", found " + shown(found),
               where);
}

// The exception is an E (or derived from it) with exactly this message.
template <class E>
void check_exception(const std::exception_ptr& thrown, std::string_view message, std::string_view what,
                     std::source_location where = std::source_location::current()) {
    const E* found = detail::exception_as<E>(thrown);
    if (found == nullptr)
        fail_check(std::string(what) + ": expected another type of exception, found " +
                       detail::exception_type_name(thrown) + " (" + detail::exception_message(thrown) + ")",
                   where);
    check_equal(std::string_view(found->what()), message, what, where);
}

// What the function throws; null when nothing.
template <class Function>
std::exception_ptr thrown_by(Function&& function) {
    try {
        function();
    } catch (const check_failed&) {
        throw;
    } catch (...) {
        return std::current_exception();
    }
    return nullptr;
}

} // namespace holdfast::conformance
