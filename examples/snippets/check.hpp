#pragma once

#include <cstdio>
#include <cstdlib>

inline void check(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "failed: %s\n", what);
    std::exit(1);
}
