// Catch2 2.13 and 3 under the names of version 3. Tests include this, never Catch2 itself.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>

namespace Catch::Matchers {

inline auto ContainsSubstring(const std::string& text, CaseSensitive::Choice choice = CaseSensitive::Yes) {
    return Contains(text, choice);
}

} // namespace Catch::Matchers

// Version 2 cannot mark a test as skipped: it says why and ends it.
#define SKIP(reason)                                                                                                   \
    do {                                                                                                               \
        WARN("skipped: " << reason);                                                                                   \
        return;                                                                                                        \
    } while (false)
#endif
