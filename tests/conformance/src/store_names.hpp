// Names and bytes that break careless stores.
#pragma once

#include <string>
#include <vector>

namespace holdfast::conformance {

// UTF-8 without NUL, none longer than the limit of 1024 bytes.
inline std::vector<std::string> odd_names() {
    return {"it's \"quoted\" \\ `so`",
            "%s%n%d%%",
            "a\r\nb\tc",
            "{hash}{tag} {}",
            "'); DROP TABLE jobs; --",
            "$1 :name ? @p",
            "a:b/c.d*e?[f]",
            "\xF0\x9F\x90\xA2 \xC3\xA9t\xC3\xA9 \xE6\x97\xA5\xE6\x9C\xAC",
            " leading and trailing ",
            "NULL",
            std::string(1024, 'x')};
}

// Any bytes at all.
inline std::vector<std::string> odd_bytes() {
    std::string every;
    for (int i = 0; i < 256; ++i) every.push_back(static_cast<char>(i));
    return {std::string("\0", 1), std::string("a\0b", 3), "\xFF\xFE\xC0\x80", every, "\\x00", "\r\n"};
}

} // namespace holdfast::conformance
