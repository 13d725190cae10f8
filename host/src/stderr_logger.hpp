#pragma once

#include <holdfast/logger.hpp>

namespace holdfast::detail {

// "2026-01-31T12:00:00.123Z warning message" on standard error, whole lines.
class stderr_logger final : public logger {
public:
    explicit stderr_logger(log_level least) noexcept : least_(least) {}
    bool enabled(log_level level) const noexcept override { return level >= least_; }
    void write(log_level level, std::string_view message) noexcept override;

private:
    log_level least_;
};

} // namespace holdfast::detail
