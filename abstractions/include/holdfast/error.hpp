// The error model. What a caller must handle travels as `result<T>`; exceptions are for user code and for bugs.
// Everything here is a value type, safe to copy between threads.
#pragma once

#include <expected>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <holdfast/duration.hpp>

namespace holdfast {

// Closed: plugins report one of these and nothing else.
enum class errc {
    cancelled = 1,       // the caller asked to stop
    timed_out,           // an attempt, or the whole execution, ran out of time
    circuit_open,        // the breaker refused the call
    rate_limited,        // no permit left in this period
    concurrency_limited, // all slots taken and the queue is full
    stopped,             // the runtime is shutting down
    overloaded,          // a bounded queue of the runtime is full
    invalid_argument,    // the call itself is wrong; trying again cannot help
    invalid_policy,      // a policy breaks one of its rules
    unknown_policy,      // no policy of that name was registered
    duplicate,           // the name is taken
    configuration,       // the host's configuration is wrong
    plugin,              // a plugin cannot be loaded or started
    not_found,           // there is no such thing
    unsupported,         // this backend does not offer it
    unavailable,         // a server cannot be reached now; trying later may help
    stale_lease,         // somebody else holds, or held, a newer lease: stop
    unknown_outcome,     // the connection was lost before the answer: read back before trying again
    too_large,           // above a limit that the message names
    internal,            // a bug, in Holdfast or in a plugin
};

constexpr std::string_view to_text(errc code) noexcept {
    switch (code) {
    case errc::cancelled: return "cancelled";
    case errc::timed_out: return "timed out";
    case errc::circuit_open: return "circuit open";
    case errc::rate_limited: return "rate limited";
    case errc::concurrency_limited: return "concurrency limited";
    case errc::stopped: return "stopped";
    case errc::overloaded: return "overloaded";
    case errc::invalid_argument: return "invalid argument";
    case errc::invalid_policy: return "invalid policy";
    case errc::unknown_policy: return "unknown policy";
    case errc::duplicate: return "duplicate";
    case errc::configuration: return "configuration";
    case errc::plugin: return "plugin";
    case errc::not_found: return "not found";
    case errc::unsupported: return "unsupported";
    case errc::unavailable: return "unavailable";
    case errc::stale_lease: return "stale lease";
    case errc::unknown_outcome: return "unknown outcome";
    case errc::too_large: return "too large";
    case errc::internal: return "internal error";
    }
    return "unknown error";
}

// The category compares by name, not by address, so that codes made in different plugins are equal.
class error_category final : public std::error_category {
public:
    const char* name() const noexcept override { return "holdfast"; }
    std::string message(int code) const override { return std::string(to_text(static_cast<errc>(code))); }
    bool equivalent(const std::error_code& code, int condition) const noexcept override {
        return code.value() == condition && std::string_view(code.category().name()) == name();
    }
};

namespace detail {
inline constinit const error_category category_instance;
}
inline const std::error_category& category() noexcept {
    return detail::category_instance;
}

inline std::error_code make_error_code(errc code) noexcept {
    return {static_cast<int>(code), category()};
}

// The errc inside a std::error_code, wherever that code was made.
inline std::optional<errc> to_errc(const std::error_code& code) noexcept {
    if (std::string_view(code.category().name()) != "holdfast") return std::nullopt;
    return static_cast<errc>(code.value());
}

// What went wrong, for the program (code), for people (message), and when to come back, if that is known.
struct error {
    errc code = errc::internal;
    std::string message;
    std::optional<duration> retry_after;
};

template <class T>
using result = std::expected<T, error>;

inline std::unexpected<error> fail(errc code, std::string message) {
    return std::unexpected(error{code, std::move(message), std::nullopt});
}

// An `error` as an exception, thrown where the caller chose the throwing form of a call.
class failed : public std::runtime_error {
public:
    explicit failed(error e) : std::runtime_error(e.message), error_(std::move(e)) {}
    const error& what_failed() const noexcept { return error_; }
    errc code() const noexcept { return error_.code; }

private:
    error error_;
};

// Throw (or derive from) this to end an execution at once: it is never retried.
class non_retryable_error : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

// The caller asked to stop. Never retried, and never counted as a failure by a breaker.
class operation_cancelled : public failed {
public:
    operation_cancelled() : operation_cancelled("the operation was cancelled by its caller") {}
    explicit operation_cancelled(std::string message) : failed({errc::cancelled, std::move(message), std::nullopt}) {}
};

} // namespace holdfast

template <>
struct std::is_error_code_enum<holdfast::errc> : std::true_type {};
