// Rules decide whether a failed attempt is tried again. They are constant data, part of a policy:
//
//   .rules = {stop_on<bad_address>(), retry_on<smtp_error>(5), retry_on(std::errc::connection_reset)}
//
// Verdict: cancellation and non_retryable_error always stop. Then any stop rule that matches stops. Then the first
// retry rule that matches retries, at most as often as it says, each rule with a counter of its own. What no rule
// names: an exception is retried, unless the policy names exception types to retry, in which case it is not; a
// returned failure is not retried; an attempt that timed out is.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <system_error>

#include <holdfast/error.hpp>
#include <holdfast/failure.hpp>

namespace holdfast {

// Retry as often as the policy allows.
inline constexpr int unlimited = -1;

struct rule {
    enum class verdict : unsigned char { retry, stop };
    enum class subject : unsigned char { exception_type, code, anything };
    // May throw: the exception then ends the execution and reaches the caller unchanged.
    using matcher = bool (*)(const failure&);

    verdict then = verdict::stop;
    subject on = subject::anything;
    matcher matches = nullptr; // null: compare codes
    int max_attempts = unlimited;
    int code = 0;
    bool standard_code = false; // code is a std::errc, else a holdfast::errc

    bool applies_to(const failure& f) const {
        if (matches != nullptr) return matches(f);
        const std::error_code found = f.code();
        if (!found) return false;
        if (standard_code) return found == static_cast<std::errc>(code);
        return to_errc(found) == static_cast<errc>(code);
    }

    friend constexpr bool operator==(const rule&, const rule&) = default;
};

namespace detail {
template <class E>
bool is_exception(const failure& f) {
    return f.as<E>() != nullptr;
}
} // namespace detail

template <class E>
constexpr rule retry_on(int max_attempts = unlimited) {
    return {rule::verdict::retry, rule::subject::exception_type, &detail::is_exception<E>, max_attempts};
}
constexpr rule retry_on(std::errc code, int max_attempts = unlimited) {
    return {rule::verdict::retry, rule::subject::code, nullptr, max_attempts, static_cast<int>(code), true};
}
constexpr rule retry_on(errc code, int max_attempts = unlimited) {
    return {rule::verdict::retry, rule::subject::code, nullptr, max_attempts, static_cast<int>(code), false};
}
// Sees every exception and every returned value, good ones too: the way to retry on chosen results.
constexpr rule retry_when(rule::matcher predicate, int max_attempts = unlimited) {
    return {rule::verdict::retry, rule::subject::anything, predicate, max_attempts};
}

template <class E>
constexpr rule stop_on() {
    return {rule::verdict::stop, rule::subject::exception_type, &detail::is_exception<E>};
}
constexpr rule stop_on(std::errc code) {
    return {rule::verdict::stop, rule::subject::code, nullptr, unlimited, static_cast<int>(code), true};
}
constexpr rule stop_on(errc code) {
    return {rule::verdict::stop, rule::subject::code, nullptr, unlimited, static_cast<int>(code), false};
}
constexpr rule stop_when(rule::matcher predicate) {
    return {rule::verdict::stop, rule::subject::anything, predicate};
}

// A short constant list; `overflowed()` tells that more was given than it holds.
template <class T, std::size_t Capacity>
class fixed_list {
public:
    constexpr fixed_list() = default;
    constexpr fixed_list(std::initializer_list<T> items) {
        for (const T& item : items) push_back(item);
    }
    constexpr void push_back(const T& item) {
        if (size_ == Capacity) overflowed_ = true;
        else items_[size_++] = item;
    }
    constexpr const T* begin() const noexcept { return items_.data(); }
    constexpr const T* end() const noexcept { return items_.data() + size_; }
    constexpr const T& operator[](std::size_t i) const noexcept { return items_[i]; }
    constexpr std::size_t size() const noexcept { return size_; }
    constexpr bool empty() const noexcept { return size_ == 0; }
    constexpr bool overflowed() const noexcept { return overflowed_; }
    static constexpr std::size_t capacity() noexcept { return Capacity; }

    friend constexpr bool operator==(const fixed_list&, const fixed_list&) = default;

private:
    std::array<T, Capacity> items_{};
    std::size_t size_ = 0;
    bool overflowed_ = false;
};

inline constexpr std::size_t max_rules = 8;
using rule_list = fixed_list<rule, max_rules>;

} // namespace holdfast
