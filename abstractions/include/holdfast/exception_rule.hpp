// One row of an exception policy as data: which errors it takes, and what becomes of what failed with one. Made by the
// chains of exception_policy; immutable afterwards.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include <holdfast/detail/derivation.hpp>
#include <holdfast/error.hpp>
#include <holdfast/failure.hpp>
#include <holdfast/policy.hpp>

namespace holdfast {

// A code to match: exactly that one (std::error_code, holdfast::errc, an enum of your own), or all that mean it
// (std::errc, std::error_condition).
class matched_code {
public:
    matched_code(const std::error_code& exact) : exact_(exact) {}
    matched_code(const std::error_condition& meaning) : meaning_(meaning), exactly_(false) {}
    template <class Code>
        requires std::is_error_code_enum_v<Code>
    matched_code(Code code) : matched_code(std::error_code(make_error_code(code))) {}
    template <class Condition>
        requires std::is_error_condition_enum_v<Condition>
    matched_code(Condition meaning) : matched_code(std::error_condition(make_error_condition(meaning))) {}

    bool matches(const std::error_code& found) const noexcept {
        if (!found) return false;
        if (!exactly_) return found == meaning_;
        const auto own = to_errc(exact_); // by name: other modules have a category of their own
        return own ? to_errc(found) == own : found == exact_;
    }
    bool is(errc code) const noexcept { return exactly_ && to_errc(exact_) == code; }
    bool is_holdfast() const noexcept { return exactly_ && to_errc(exact_).has_value(); }
    // "holdfast: unavailable", "generic: Connection reset by peer"
    std::string text() const {
        if (exactly_) return std::string(exact_.category().name()) + ": " + exact_.message();
        return std::string(meaning_.category().name()) + ": " + meaning_.message();
    }

    friend bool operator==(const matched_code&, const matched_code&) = default;

private:
    std::error_code exact_;
    std::error_condition meaning_;
    bool exactly_ = true;
};

struct exception_rule {
    // What it takes. Neither a type nor codes: whatever it is.
    const detail::catchable* type = nullptr;
    std::vector<matched_code> codes{};
    // Where all else fits. Called from several threads at once. Empty: always.
    std::function<bool(const failure&)> predicate{};

    // What it gets: retries within the delivery, then redeliveries, then its end.
    enum class ending : unsigned char { dead_letter, discard };
    std::optional<retry_settings> retry{};
    std::optional<retry_settings> redeliver{};
    ending then = ending::dead_letter;

    // It ends at once.
    bool is_terminal() const noexcept { return !retry && !redeliver; }
    bool takes_all() const noexcept { return type == nullptr && codes.empty() && !predicate; }
};

} // namespace holdfast
