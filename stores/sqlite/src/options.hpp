// What a configuration says about one SQLite store.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include <holdfast/duration.hpp>
#include <holdfast/store_limits.hpp>

namespace holdfast::sqlite {

struct options {
    std::string file; // absolute
    bool full_sync = true;
    bool secure_delete = false; // some builds of SQLite do it unless told
    duration busy_timeout = std::chrono::seconds{5};
    std::string prefix = "holdfast";
    std::size_t max_payload = store_limits::default_max_payload;
    duration keep_succeeded = std::chrono::hours{24};
    duration keep_tombstones = std::chrono::hours{24 * 7};
    // While several callers are about, a commit waits this long for as many calls as the one before had.
    duration group_commit_window = std::chrono::microseconds{200};
};

// Bodies above this live in a table of their own: an UPDATE rewrites its whole row, and a heartbeat must not rewrite
// megabytes.
inline constexpr std::size_t inline_body = 2048;

} // namespace holdfast::sqlite
