// What processes tell each other through files: whole lines, which outlive whoever wrote them.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace holdfast::test {

// A queue and a kind of job of that name are there.
inline constexpr std::string_view odd_name = "it's \"odd\" {%s}\r\n; DROP TABLE jobs -- \u00e9\U0001F600";

// One line, in one write: whole or not at all.
inline void note(const std::filesystem::path& file, const std::string& line) {
    const int to = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    const std::string text = line + "\n";
    if (to < 0 || ::write(to, text.data(), text.size()) != static_cast<ssize_t>(text.size())) std::abort();
    ::close(to);
}

inline std::vector<std::string> notes_in(const std::filesystem::path& file) {
    std::vector<std::string> lines;
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
}

inline bool exists(const std::filesystem::path& file) {
    std::error_code none;
    return std::filesystem::exists(file, none);
}

} // namespace holdfast::test
