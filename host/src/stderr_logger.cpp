#include "stderr_logger.hpp"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <string>

#include <unistd.h>

namespace holdfast::detail {

namespace {

std::string utc_now() {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    tm parts{};
    ::gmtime_r(&now.tv_sec, &parts);
    char seconds[32];
    std::strftime(seconds, sizeof(seconds), "%Y-%m-%dT%H:%M:%S", &parts);
    char text[64];
    std::snprintf(text, sizeof(text), "%s.%03dZ", seconds, static_cast<int>(now.tv_nsec / 1'000'000));
    return text;
}

} // namespace

void stderr_logger::write(log_level level, std::string_view message) noexcept {
    if (!enabled(level)) return;
    try {
        std::string line = utc_now() + " " + std::string(to_text(level)) + " " + std::string(message);
        std::ranges::replace(line, '\n', ' ');
        line += '\n';
        [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
    } catch (...) { // out of memory: dropped
    }
}

} // namespace holdfast::detail
