// 128-bit identifiers that sort by the time they were made: 48 bits of milliseconds, 80 random bits. As text, 26
// characters that are safe in URLs, file names and Redis keys.
#pragma once

#include <array>
#include <chrono>
#include <compare>
#include <cstdint>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <string_view>

#include <holdfast/backoff.hpp>

namespace holdfast {

struct identifier {
    std::array<std::uint8_t, 16> bytes{};

    friend constexpr auto operator<=>(const identifier&, const identifier&) = default;
    constexpr explicit operator bool() const noexcept { return *this != identifier{}; }
};

namespace detail {
inline constexpr std::string_view identifier_digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
// By character: the value of a digit, or -1.
inline constexpr std::array<signed char, 256> identifier_values = [] {
    std::array<signed char, 256> values{};
    values.fill(-1);
    for (std::size_t i = 0; i < identifier_digits.size(); ++i) {
        const char digit = identifier_digits[i];
        values[static_cast<unsigned char>(digit)] = static_cast<signed char>(i);
        if (digit >= 'A') values[static_cast<unsigned char>(digit - 'A' + 'a')] = static_cast<signed char>(i);
    }
    return values;
}();
} // namespace detail

inline std::string to_text(const identifier& id) {
    std::uint64_t high = 0;
    std::uint64_t low = 0;
    for (std::size_t i = 0; i < 8; ++i) {
        high = high << 8 | id.bytes[i];
        low = low << 8 | id.bytes[8 + i];
    }
    std::string text(26, '0');
    for (std::size_t i = text.size(); i-- > 0;) { // five bits each; two are left for the first
        text[i] = detail::identifier_digits[low & 31];
        low = low >> 5 | high << 59;
        high >>= 5;
    }
    return text;
}

// Nothing for a text that to_text would not have written. Small letters are taken too.
constexpr std::optional<identifier> parse_identifier(std::string_view text) {
    if (text.size() != 26) return std::nullopt;
    std::uint64_t high = 0;
    std::uint64_t low = 0;
    for (const char c : text) {
        const signed char value = detail::identifier_values[static_cast<unsigned char>(c)];
        if (value < 0 || high >> 59 != 0) return std::nullopt; // no digit, or more than 128 bits
        high = high << 5 | low >> 59;
        low = low << 5 | static_cast<std::uint64_t>(value);
    }
    identifier id;
    for (std::size_t i = 0; i < 8; ++i) {
        id.bytes[i] = static_cast<std::uint8_t>(high >> (56 - 8 * i));
        id.bytes[8 + i] = static_cast<std::uint8_t>(low >> (56 - 8 * i));
    }
    return id;
}

// Makes identifiers. Any thread. With a seed and times of its own, a test gets the same ones again.
class identifier_source {
public:
    identifier_source() : identifier_source(seed_from_system()) {}
    explicit identifier_source(std::uint64_t seed) : random_(seed) {}

    identifier next(std::chrono::system_clock::time_point at = std::chrono::system_clock::now()) {
        const auto ms = static_cast<std::uint64_t>(
            std::chrono::duration_cast<std::chrono::milliseconds>(at.time_since_epoch()).count());
        std::uint64_t high = 0;
        std::uint64_t low = 0;
        {
            const std::lock_guard lock(mutex_);
            high = random_.next();
            low = random_.next();
        }
        identifier id;
        for (std::size_t i = 0; i < 6; ++i) id.bytes[i] = static_cast<std::uint8_t>(ms >> (8 * (5 - i)));
        for (std::size_t i = 0; i < 2; ++i) id.bytes[6 + i] = static_cast<std::uint8_t>(high >> (8 * i));
        for (std::size_t i = 0; i < 8; ++i) id.bytes[8 + i] = static_cast<std::uint8_t>(low >> (8 * i));
        return id;
    }

private:
    static std::uint64_t seed_from_system() {
        std::random_device device;
        return (static_cast<std::uint64_t>(device()) << 32) | device();
    }
    std::mutex mutex_;
    random_series random_;
};

} // namespace holdfast
