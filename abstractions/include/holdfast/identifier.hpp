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
}

inline std::string to_text(const identifier& id) {
    std::string text(26, '0');
    // 128 bits in groups of five, the first group with two bits only.
    for (std::size_t i = 0; i < 26; ++i) {
        unsigned value = 0;
        for (std::size_t bit = 0; bit < 5; ++bit) {
            const auto position = static_cast<int>(i * 5 + bit) - 2;
            value <<= 1;
            if (position < 0) continue;
            const auto at = static_cast<std::size_t>(position);
            value |= (id.bytes[at / 8] >> (7 - at % 8)) & 1u;
        }
        text[i] = detail::identifier_digits[value];
    }
    return text;
}

// Nothing for a text that to_text would not have written. Small letters are taken too.
constexpr std::optional<identifier> parse_identifier(std::string_view text) {
    if (text.size() != 26) return std::nullopt;
    identifier id;
    for (std::size_t i = 0; i < 26; ++i) {
        const char c = text[i] >= 'a' && text[i] <= 'z' ? static_cast<char>(text[i] - 'a' + 'A') : text[i];
        const auto value = detail::identifier_digits.find(c);
        if (value == std::string_view::npos || (i == 0 && value > 7)) return std::nullopt;
        for (std::size_t bit = 0; bit < 5; ++bit) {
            const auto position = static_cast<int>(i * 5 + bit) - 2;
            if (position < 0 || ((value >> (4 - bit)) & 1) == 0) continue;
            const auto at = static_cast<std::size_t>(position);
            id.bytes[at / 8] = static_cast<std::uint8_t>(id.bytes[at / 8] | (0x80 >> (at % 8)));
        }
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
