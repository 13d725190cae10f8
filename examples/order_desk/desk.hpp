// Starts the shop and billing as processes of their own, kills either again and again, and compares their books.
#pragma once

#include <filesystem>

struct desk_options {
    int orders = 300;
    int kills = 12;
    std::filesystem::path events{}; // a file with an [events] section; empty: a Redis server of the desk's own
};

inline constexpr int no_server = 77; // the exit code when there is neither

int run_desk(const desk_options& options);
