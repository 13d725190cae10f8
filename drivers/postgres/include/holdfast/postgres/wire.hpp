// Statement parameters in PostgreSQL's binary form, and reading the text of its answers. Pure.
#pragma once

#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/duration.hpp>
#include <holdfast/identifier.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/payload.hpp>

namespace holdfast::postgres {

// The server's numbers for the types that are sent.
enum class column : std::uint32_t { boolean = 16, bytes = 17, int8 = 20, int2 = 21, int4 = 23, text = 25, uuid = 2950 };

inline std::int64_t micros(duration d) noexcept {
    return std::chrono::duration_cast<std::chrono::microseconds>(d).count();
}

namespace detail {

template <class Number>
void put_number(std::string& out, Number value) {
    char bytes[sizeof value];
    auto bits = static_cast<std::make_unsigned_t<Number>>(value);
    for (std::size_t i = sizeof value; i-- > 0; bits = static_cast<decltype(bits)>(bits >> 8))
        bytes[i] = static_cast<char>(bits);
    out.append(bytes, sizeof value);
}

inline void put_value(std::string& out, column as, std::int64_t value) {
    switch (as) {
    case column::boolean: out += static_cast<char>(value != 0); return;
    case column::int2: return put_number(out, static_cast<std::int16_t>(value));
    case column::int4: return put_number(out, static_cast<std::int32_t>(value));
    default: return put_number(out, value);
    }
}
inline void put_value(std::string& out, column, std::string_view value) {
    out += value;
}
inline void put_value(std::string& out, column, const identifier& value) {
    out.append(reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size());
}

inline std::size_t value_size(column as, std::int64_t) noexcept {
    switch (as) {
    case column::boolean: return 1;
    case column::int2: return 2;
    case column::int4: return 4;
    default: return 8;
    }
}
inline std::size_t value_size(column, std::string_view value) noexcept {
    return value.size();
}
inline std::size_t value_size(column, const identifier& value) noexcept {
    return value.bytes.size();
}

// Gives false for NULL.
template <class Value>
bool put_element(std::string& out, column as, const Value& value) {
    put_number(out, static_cast<std::int32_t>(value_size(as, value)));
    put_value(out, as, value);
    return true;
}
template <class Value>
bool put_element(std::string& out, column as, const std::optional<Value>& value) {
    if (value) return put_element(out, as, *value);
    put_number(out, std::int32_t{-1});
    return false;
}

} // namespace detail

// In the order of $1, $2, …
class parameters {
public:
    template <class Value>
    parameters& one(column as, const Value& value) {
        detail::put_value(values_.emplace_back(), as, value);
        return *this;
    }
    // An array: pick(element) gives each value, an optional one for what may be NULL.
    template <class Range, class Pick>
    parameters& many(column as, const Range& range, Pick pick) {
        std::string& out = values_.emplace_back();
        const bool empty = std::begin(range) == std::end(range);
        detail::put_number(out, std::int32_t{empty ? 0 : 1});
        detail::put_number(out, std::int32_t{0}); // whether there are NULLs; filled in below
        detail::put_number(out, static_cast<std::uint32_t>(as));
        if (empty) return *this;
        detail::put_number(out, static_cast<std::int32_t>(std::size(range)));
        detail::put_number(out, std::int32_t{1});
        bool whole = true;
        for (const auto& each : range) whole &= detail::put_element(out, as, pick(each));
        if (!whole) out[7] = 1;
        return *this;
    }

    const std::vector<std::string>& values() const noexcept { return values_; }

private:
    std::vector<std::string> values_;
};

namespace detail {

inline constexpr auto hex_values = [] {
    std::array<signed char, 256> all{};
    all.fill(-1);
    for (int i = 0; i < 16; ++i) {
        all[static_cast<unsigned char>("0123456789abcdef"[i])] = static_cast<signed char>(i);
        all[static_cast<unsigned char>("0123456789ABCDEF"[i])] = static_cast<signed char>(i);
    }
    return all;
}();

// Negative: it is none.
inline int hex_digit(char c) noexcept {
    return hex_values[static_cast<unsigned char>(c)];
}

inline void put_text(std::string& out, std::string_view text) {
    put_number(out, static_cast<std::uint32_t>(text.size()));
    out += text;
}

inline std::string take_text(std::string_view& bytes) {
    if (bytes.size() < 4) {
        bytes = {};
        return {};
    }
    std::size_t size = 0;
    for (int i = 0; i < 4; ++i) size = size << 8 | static_cast<unsigned char>(bytes[static_cast<std::size_t>(i)]);
    bytes.remove_prefix(4);
    const std::string text(bytes.substr(0, size));
    bytes.remove_prefix(text.size());
    return text;
}

} // namespace detail

// Pairs as length and bytes, one after the other. Nothing for none.
inline std::string encode_headers(const headers& all) {
    std::string out;
    for (const auto& [key, value] : all) {
        detail::put_text(out, key);
        detail::put_text(out, value);
    }
    return out;
}

inline headers decode_headers(std::string_view bytes) {
    headers all;
    while (!bytes.empty()) {
        std::string key = detail::take_text(bytes);
        all.insert_or_assign(std::move(key), detail::take_text(bytes));
    }
    return all;
}

// "\x0a1b…" as the server writes bytea; nothing for any other text.
inline std::optional<std::string> decode_bytes(std::string_view text) {
    if (!text.starts_with("\\x") || text.size() % 2 != 0) return std::nullopt;
    std::string bytes(text.size() / 2 - 1, '\0');
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        const int high = detail::hex_digit(text[2 * i + 2]);
        const int low = detail::hex_digit(text[2 * i + 3]);
        if (high < 0 || low < 0) return std::nullopt;
        bytes[i] = static_cast<char>(high << 4 | low);
    }
    return bytes;
}

// "01234567-89ab-…"
inline std::optional<identifier> decode_uuid(std::string_view text) {
    if (text.size() != 36) return std::nullopt;
    identifier id;
    std::size_t digits = 0;
    for (const char c : text) {
        if (c == '-') continue;
        const int value = detail::hex_digit(c);
        if (value < 0 || digits == 32) return std::nullopt;
        id.bytes[digits / 2] = static_cast<std::uint8_t>(id.bytes[digits / 2] << 4 | value);
        ++digits;
    }
    return digits == 32 ? std::optional(id) : std::nullopt;
}

inline std::optional<std::int64_t> decode_integer(std::string_view text) {
    std::int64_t number = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (problem != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return number;
}

inline store_time to_store_time(std::int64_t since_1970) noexcept {
    return store_time{std::chrono::microseconds{since_1970}};
}

} // namespace holdfast::postgres
