// Where messages for people go. Any thread.
#pragma once

#include <string_view>

namespace holdfast {

enum class log_level : unsigned char { debug, info, warning, error };

constexpr std::string_view to_text(log_level l) noexcept {
    switch (l) {
    case log_level::debug: return "debug";
    case log_level::info: return "info";
    case log_level::warning: return "warning";
    case log_level::error: return "error";
    }
    return "unknown";
}

class logger {
public:
    virtual ~logger() = default;
    virtual bool enabled(log_level level) const noexcept = 0;
    // One message, one line. Never throws: a message that cannot be written is dropped.
    virtual void write(log_level level, std::string_view message) noexcept = 0;

    void debug(std::string_view m) noexcept { write(log_level::debug, m); }
    void info(std::string_view m) noexcept { write(log_level::info, m); }
    void warning(std::string_view m) noexcept { write(log_level::warning, m); }
    void error(std::string_view m) noexcept { write(log_level::error, m); }
};

// Drops everything.
class null_logger final : public logger {
public:
    bool enabled(log_level) const noexcept override { return false; }
    void write(log_level, std::string_view) noexcept override {}
};

} // namespace holdfast
