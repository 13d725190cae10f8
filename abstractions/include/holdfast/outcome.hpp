// How an execution ended: why it stopped, what each attempt did, and the value if there is one.
#pragma once

#include <cstddef>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <holdfast/detail/exception_type.hpp>
#include <holdfast/detail/stored.hpp>
#include <holdfast/duration.hpp>
#include <holdfast/error.hpp>
#include <holdfast/policy.hpp>

namespace holdfast {

// Why no further attempt was made.
enum class stop_reason : unsigned char {
    succeeded,
    exhausted,    // the last allowed attempt failed
    deadline,     // the total timeout passed, or would pass before the next attempt
    budget,       // the retry budget is spent
    circuit_open, // the breaker refused the call
    rule,         // the failure is one that is not retried
    cancelled,    // the caller asked to stop
    rejected,     // the rate limit or the concurrency limit refused the call
};

constexpr std::string_view to_text(stop_reason r) noexcept {
    switch (r) {
    case stop_reason::succeeded: return "succeeded";
    case stop_reason::exhausted: return "exhausted";
    case stop_reason::deadline: return "deadline";
    case stop_reason::budget: return "budget";
    case stop_reason::circuit_open: return "circuit open";
    case stop_reason::rule: return "rule";
    case stop_reason::cancelled: return "cancelled";
    case stop_reason::rejected: return "rejected";
    }
    return "unknown";
}

enum class attempt_end : unsigned char {
    succeeded,
    failed,    // threw, or returned a failure
    timed_out, // ended after its deadline; a value that it produced all the same is kept
    cancelled, // the caller asked to stop, or another hedged attempt won
    refused,   // the breaker did not let it start
};

constexpr std::string_view to_text(attempt_end e) noexcept {
    switch (e) {
    case attempt_end::succeeded: return "succeeded";
    case attempt_end::failed: return "failed";
    case attempt_end::timed_out: return "timed out";
    case attempt_end::cancelled: return "cancelled";
    case attempt_end::refused: return "refused";
    }
    return "unknown";
}

struct attempt_record {
    int number = 0;
    attempt_end end = attempt_end::succeeded;
    bool hedge = false;
    std::optional<duration> took{};        // measured where the policy needs the clock or somebody listens
    std::optional<duration> delay_after{}; // the wait that followed, if another attempt was due
    std::optional<std::error_code> code{}; // of the failure, if it has one
    std::exception_ptr exception{};        // if it threw
};

// The attempts of one execution. The first three cost no allocation; of a very long series the middle is dropped.
class attempt_ledger {
public:
    static constexpr std::size_t keep_first = 32;
    static constexpr std::size_t keep_last = 32;

    attempt_ledger() noexcept {} // leaves the room for records alone; a defaulted one would clear it

    // A new record at the end, to be filled in.
    attempt_record& add() {
        if (inline_count_ < inline_records) return inline_[inline_count_++].emplace();
        if (more_.size() == keep_first + keep_last) {
            more_.erase(more_.begin() + keep_first);
            ++omitted_;
        }
        return more_.emplace_back();
    }
    attempt_record* last() noexcept {
        if (!more_.empty()) return &more_.back();
        return inline_count_ == 0 ? nullptr : &*inline_[inline_count_ - 1];
    }
    std::size_t size() const noexcept { return inline_count_ + more_.size(); }
    bool empty() const noexcept { return inline_count_ == 0; }
    std::size_t omitted() const noexcept { return omitted_; } // attempts that are not listed
    const attempt_record& operator[](std::size_t i) const noexcept {
        return i < inline_records ? *inline_[i] : more_[i - inline_records];
    }

    class iterator {
    public:
        iterator(const attempt_ledger& of, std::size_t at) noexcept : of_(&of), at_(at) {}
        const attempt_record& operator*() const noexcept { return (*of_)[at_]; }
        const attempt_record* operator->() const noexcept { return &(*of_)[at_]; }
        iterator& operator++() noexcept {
            ++at_;
            return *this;
        }
        friend bool operator==(const iterator&, const iterator&) = default;

    private:
        const attempt_ledger* of_;
        std::size_t at_;
    };
    iterator begin() const noexcept { return {*this, 0}; }
    iterator end() const noexcept { return {*this, size()}; }

private:
    static constexpr std::size_t inline_records = 3;
    std::optional<attempt_record> inline_[inline_records];
    std::size_t inline_count_ = 0;
    std::size_t omitted_ = 0;
    std::vector<attempt_record> more_;
};

// The execution failed, and so did its fallback.
class fallback_failed : public failed {
public:
    fallback_failed(std::exception_ptr thrown, std::exception_ptr cause)
        : failed({errc::internal,
                  "the fallback failed: " + detail::exception_message(thrown) +
                      "; it stood in for: " + detail::exception_message(cause),
                  std::nullopt}),
          thrown_(std::move(thrown)), cause_(std::move(cause)) {}
    const std::exception_ptr& thrown() const noexcept { return thrown_; } // by the fallback
    const std::exception_ptr& cause() const noexcept { return cause_; }   // what it was to make good

private:
    std::exception_ptr thrown_;
    std::exception_ptr cause_;
};

// Everything about an ended execution but its value.
class execution_report {
public:
    std::string_view policy_name() const noexcept { return f_.policy; }
    holdfast::stop_reason stop_reason() const noexcept { return f_.reason; }
    int attempt_count() const noexcept { return f_.attempt_count; }
    const attempt_ledger& attempts() const noexcept { return ledger_; }

    // What the user's code threw, when that is how the execution ended.
    const std::exception_ptr& exception() const noexcept { return f_.exception; }
    // What Holdfast itself refused with, when that is how it ended.
    std::optional<errc> refusal() const noexcept { return f_.refusal; }
    // When the refusing side expects the next call to have a chance.
    std::optional<duration> retry_after() const noexcept { return f_.retry_after; }
    // A fallback gave the value in place of the attempts; stop_reason() still says why those stopped.
    bool fell_back() const noexcept { return f_.fell_back; }
    // What went wrong before the fallback that failed too, if that is what happened.
    const std::exception_ptr& cause() const noexcept { return f_.cause; }

    // The failure as one value. Call it only when there was one.
    holdfast::error error() const {
        if (f_.refusal) return {*f_.refusal, refusal_message(), f_.retry_after};
        if (const auto* known = detail::exception_as<failed>(f_.exception)) return known->what_failed();
        return {errc::internal,
                f_.exception ? detail::exception_message(f_.exception) : "the operation returned a failure",
                std::nullopt};
    }
    // The failure as the throwing forms would throw it.
    std::exception_ptr to_exception() const {
        if (f_.cause) return std::make_exception_ptr(fallback_failed(f_.exception, f_.cause));
        if (!f_.refusal) return f_.exception;
        if (*f_.refusal == errc::cancelled) return std::make_exception_ptr(operation_cancelled(refusal_message()));
        return std::make_exception_ptr(failed(error()));
    }

    // What a runner fills in.
    struct fields {
        std::string_view policy{};
        holdfast::stop_reason reason = holdfast::stop_reason::succeeded;
        bool fell_back = false;
        int attempt_count = 0;
        std::exception_ptr exception{};
        std::exception_ptr cause{};
        std::optional<errc> refusal{};
        std::optional<duration> retry_after{};
    };
    execution_report() noexcept {}
    explicit execution_report(fields f) noexcept : f_(std::move(f)) {}
    fields& to_fill() noexcept { return f_; }
    attempt_ledger& ledger_to_fill() noexcept { return ledger_; }

private:
    std::string refusal_message() const {
        std::string text = "policy \"" + std::string(f_.policy) + "\": ";
        switch (*f_.refusal) {
        case errc::cancelled: text += "cancelled by the caller"; break;
        case errc::timed_out:
            text += f_.reason == holdfast::stop_reason::deadline ? "out of time" : "the attempt timed out";
            break;
        case errc::circuit_open: text += "the circuit is open"; break;
        case errc::rate_limited: text += "over the rate limit"; break;
        case errc::concurrency_limited: text += "over the concurrency limit, and its queue is full"; break;
        default: text += to_text(*f_.refusal);
        }
        if (f_.attempt_count > 0)
            text += ", after " + std::to_string(f_.attempt_count) + (f_.attempt_count == 1 ? " attempt" : " attempts");
        if (f_.retry_after && *f_.retry_after != forever) text += "; try again in " + to_short_text(*f_.retry_after);
        return text;
    }

    fields f_;
    attempt_ledger ledger_;
};

// An execution as a value. It holds a value when the operation returned one, even a returned failure: look at
// succeeded() for the verdict, at has_value() for whether there is something to read.
template <class T>
class outcome : public execution_report {
public:
    using value_type = T;
    using stored_type = detail::stored<T>; // T; of a reference a std::reference_wrapper, of void a std::monostate

    outcome() noexcept {}                                // for runners to fill in
    void set_value(std::optional<stored_type>&& value) { // T need not be assignable
        value_.reset();
        if (value) value_.emplace(std::move(*value));
    }

    bool succeeded() const noexcept { return stop_reason() == holdfast::stop_reason::succeeded || fell_back(); }
    explicit operator bool() const noexcept { return succeeded(); }
    bool has_value() const noexcept { return value_.has_value(); }

    const stored_type& operator*() const& noexcept { return *value_; }
    stored_type& operator*() & noexcept { return *value_; }
    stored_type&& operator*() && noexcept { return std::move(*value_); }
    const stored_type* operator->() const noexcept { return &*value_; }
    stored_type* operator->() noexcept { return &*value_; }

    // The value, or the failure thrown as the throwing forms would.
    stored_type& value() & {
        throw_if_none();
        return *value_;
    }
    stored_type&& value() && {
        throw_if_none();
        return std::move(*value_);
    }

private:
    void throw_if_none() const {
        if (!value_) std::rethrow_exception(to_exception());
    }
    std::optional<stored_type> value_;
};

} // namespace holdfast
