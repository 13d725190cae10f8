#include "wire.hpp"

#include <charconv>

namespace holdfast::postgres {

namespace {

int hex_digit(char c) noexcept {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

void put_text(std::string& out, std::string_view text) {
    detail::put_number(out, static_cast<std::uint32_t>(text.size()));
    out += text;
}

std::string take_text(std::string_view& bytes) {
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

} // namespace

std::string encode_headers(const headers& all) {
    std::string out;
    for (const auto& [key, value] : all) {
        put_text(out, key);
        put_text(out, value);
    }
    return out;
}

headers decode_headers(std::string_view bytes) {
    headers all;
    while (!bytes.empty()) {
        std::string key = take_text(bytes);
        all.insert_or_assign(std::move(key), take_text(bytes));
    }
    return all;
}

std::optional<std::string> decode_bytes(std::string_view text) {
    if (!text.starts_with("\\x") || text.size() % 2 != 0) return std::nullopt;
    std::string bytes(text.size() / 2 - 1, '\0');
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        const int high = hex_digit(text[2 * i + 2]);
        const int low = hex_digit(text[2 * i + 3]);
        if (high < 0 || low < 0) return std::nullopt;
        bytes[i] = static_cast<char>(high << 4 | low);
    }
    return bytes;
}

std::optional<identifier> decode_uuid(std::string_view text) {
    if (text.size() != 36) return std::nullopt;
    identifier id;
    std::size_t digits = 0;
    for (const char c : text) {
        if (c == '-') continue;
        const int value = hex_digit(c);
        if (value < 0 || digits == 32) return std::nullopt;
        id.bytes[digits / 2] = static_cast<std::uint8_t>(id.bytes[digits / 2] << 4 | value);
        ++digits;
    }
    return digits == 32 ? std::optional(id) : std::nullopt;
}

std::optional<std::int64_t> decode_integer(std::string_view text) {
    std::int64_t number = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (problem != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return number;
}

} // namespace holdfast::postgres
