// For texts that come from others, and are kept.
#pragma once

#include <cstddef>
#include <string>

namespace holdfast::detail {

// A text of more bytes ends there, with "…" behind its last whole character.
inline std::string cut_text(std::string text, std::size_t longest) {
    if (text.size() <= longest) return text;
    while (longest > 0 && (static_cast<unsigned char>(text[longest]) & 0xC0) == 0x80) --longest;
    text.resize(longest);
    text += "…";
    return text;
}

} // namespace holdfast::detail
