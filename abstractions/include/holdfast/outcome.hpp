// How an execution ended: why it stopped, what each attempt did, and the value if there is one.
#pragma once

#include <cstddef>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <holdfast/detail/exception_type.hpp>
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
    std::error_code code{};                // of the failure, if it has one
    std::exception_ptr exception{};        // if it threw
};

// The attempts of one execution. The first three cost no allocation; of a very long series the middle is dropped.
class attempt_ledger {
public:
    static constexpr std::size_t keep_first = 32;
    static constexpr std::size_t keep_last = 32;

    void add(attempt_record record) {
        if (inline_count_ < inline_records) {
            inline_[inline_count_++].emplace(std::move(record));
            return;
        }
        if (more_.size() == keep_first + keep_last) {
            more_.erase(more_.begin() + keep_first);
            ++omitted_;
        }
        more_.push_back(std::move(record));
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
    std::string_view policy_name() const noexcept { return policy_; }
    holdfast::stop_reason stop_reason() const noexcept { return reason_; }
    int attempt_count() const noexcept { return attempt_count_; }
    const attempt_ledger& attempts() const noexcept { return ledger_; }

    // What the user's code threw, when that is how the execution ended.
    const std::exception_ptr& exception() const noexcept { return exception_; }
    // What Holdfast itself refused with, when that is how it ended.
    std::optional<errc> refusal() const noexcept { return refusal_; }
    // When the refusing side expects the next call to have a chance.
    std::optional<duration> retry_after() const noexcept { return retry_after_; }
    // A fallback gave the value in place of the attempts; stop_reason() still says why those stopped.
    bool fell_back() const noexcept { return fell_back_; }
    // What went wrong before the fallback that failed too, if that is what happened.
    const std::exception_ptr& cause() const noexcept { return cause_; }

    // The failure as one value. Call it only when there was one.
    holdfast::error error() const {
        if (refusal_) return {*refusal_, refusal_message(), retry_after_};
        if (const auto* known = detail::exception_as<failed>(exception_)) return known->what_failed();
        return {errc::internal, exception_ ? detail::exception_message(exception_) : "the operation returned a failure",
                std::nullopt};
    }
    // The failure as the throwing forms would throw it.
    std::exception_ptr to_exception() const {
        if (cause_) return std::make_exception_ptr(fallback_failed(exception_, cause_));
        if (!refusal_) return exception_;
        if (*refusal_ == errc::cancelled) return std::make_exception_ptr(operation_cancelled(refusal_message()));
        return std::make_exception_ptr(failed(error()));
    }

    // For runners.
    struct fields {
        std::string_view policy;
        holdfast::stop_reason reason = holdfast::stop_reason::succeeded;
        int attempt_count = 0;
        std::exception_ptr exception{};
        std::optional<errc> refusal{};
        std::optional<duration> retry_after{};
        attempt_ledger ledger{};
        std::exception_ptr cause{};
        bool fell_back = false;
    };
    explicit execution_report(fields&& f)
        : policy_(f.policy), reason_(f.reason), attempt_count_(f.attempt_count), exception_(std::move(f.exception)),
          refusal_(f.refusal), retry_after_(f.retry_after), ledger_(std::move(f.ledger)), cause_(std::move(f.cause)),
          fell_back_(f.fell_back) {}

private:
    std::string refusal_message() const {
        std::string text = "policy \"" + std::string(policy_) + "\": ";
        switch (*refusal_) {
        case errc::cancelled: text += "cancelled by the caller"; break;
        case errc::timed_out:
            text += reason_ == holdfast::stop_reason::deadline ? "out of time" : "the attempt timed out";
            break;
        case errc::circuit_open: text += "the circuit is open"; break;
        case errc::rate_limited: text += "over the rate limit"; break;
        case errc::concurrency_limited: text += "over the concurrency limit, and its queue is full"; break;
        default: text += to_text(*refusal_);
        }
        if (attempt_count_ > 0)
            text += ", after " + std::to_string(attempt_count_) + (attempt_count_ == 1 ? " attempt" : " attempts");
        if (retry_after_ && *retry_after_ != forever) text += "; try again in " + to_short_text(*retry_after_);
        return text;
    }

    std::string_view policy_;
    holdfast::stop_reason reason_;
    int attempt_count_;
    std::exception_ptr exception_;
    std::optional<errc> refusal_;
    std::optional<duration> retry_after_;
    attempt_ledger ledger_;
    std::exception_ptr cause_;
    bool fell_back_;
};

// An execution as a value. It holds a value when the operation returned one, even a returned failure: look at
// succeeded() for the verdict, at has_value() for whether there is something to read.
template <class T>
class outcome : public execution_report {
public:
    using value_type = T;
    using stored_type = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

    outcome(execution_report&& report, std::optional<stored_type>&& value)
        : execution_report(std::move(report)), value_(std::move(value)) {}

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
