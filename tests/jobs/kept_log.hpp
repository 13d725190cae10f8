// A log that tests can look into.
#pragma once

#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/logger.hpp>

namespace holdfast::test {

// Keeps what it is told.
class kept_log final : public logger {
public:
    bool enabled(log_level) const noexcept override { return true; }
    void write(log_level level, std::string_view message) noexcept override {
        const std::lock_guard lock(mutex_);
        lines_.push_back(std::string(to_text(level)) + ": " + std::string(message));
    }
    int count(std::string_view part) const {
        const std::lock_guard lock(mutex_);
        int found = 0;
        for (const std::string& each : lines_)
            if (each.find(part) != std::string::npos) ++found;
        return found;
    }
    std::string all() const {
        const std::lock_guard lock(mutex_);
        std::string text;
        for (const std::string& each : lines_) text += each + "\n";
        return text;
    }

private:
    mutable std::mutex mutex_;
    std::vector<std::string> lines_;
};

} // namespace holdfast::test
