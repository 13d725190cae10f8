#include "json.hpp"

#include <cstdio>

namespace holdfast::cli {

namespace {

// The length of the UTF-8 character at the start of `text`; 0 when it is none.
std::size_t utf8_length(std::string_view text) {
    const auto at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char first = at(0);
    if (first < 0x80) return 1;
    const std::size_t length = first >= 0xC2 && first < 0xE0   ? 2
                               : first >= 0xE0 && first < 0xF0 ? 3
                               : first >= 0xF0 && first < 0xF5 ? 4
                                                               : 0;
    if (length == 0 || text.size() < length) return 0;
    for (std::size_t i = 1; i < length; ++i)
        if ((at(i) & 0xC0) != 0x80) return 0;
    // Overlong forms, surrogates, and what lies beyond the last character.
    if ((first == 0xE0 && at(1) < 0xA0) || (first == 0xED && at(1) > 0x9F)) return 0;
    if ((first == 0xF0 && at(1) < 0x90) || (first == 0xF4 && at(1) > 0x8F)) return 0;
    return length;
}

std::string escaped(unsigned code) {
    char text[8];
    std::snprintf(text, sizeof(text), "\\u%04x", code);
    return text;
}

} // namespace

std::string json_text(std::string_view text) {
    std::string quoted = "\"";
    while (!text.empty()) {
        const std::size_t length = utf8_length(text);
        const char c = text.front();
        if (length == 0) quoted += "\\ufffd";
        else if (length == 2 && text[0] == '\xC2' &&
                 static_cast<unsigned char>(text[1]) < 0xA0) // to terminals, controls
            quoted += escaped(static_cast<unsigned char>(text[1]));
        else if (length > 1) quoted += text.substr(0, length);
        else if (c == '"' || c == '\\') (quoted += '\\') += c;
        else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) quoted += escaped(static_cast<unsigned char>(c));
        else quoted += c;
        text.remove_prefix(length == 0 ? 1 : length);
    }
    return quoted + '"';
}

} // namespace holdfast::cli
