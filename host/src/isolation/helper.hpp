// In a helper process: runs attempts that arrive over a socket, one at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>

#include <holdfast/job_registry.hpp>
#include <holdfast/jobs.hpp>
#include <holdfast/logger.hpp>
#include <holdfast/runtime.hpp>

#include "frames.hpp"

namespace holdfast::detail {

// The helper's end. Sending: any thread; a worker that is gone makes no difference.
class helper_link {
public:
    explicit helper_link(int socket) noexcept : socket_(socket) {}

    void send(frame_kind kind, std::string_view body = {}) noexcept;
    // The next frame, if it comes within so many ms (-1: however long it takes). Nothing and !open(): the worker is gone.
    std::optional<frame> receive(int wait_ms);
    bool open() const noexcept { return open_; }

private:
    int socket_;
    bool open_ = true;
    std::mutex mutex_;
    frame_buffer received_;
};

// Messages go to the worker's log.
class link_logger final : public logger {
public:
    link_logger(helper_link& to, std::shared_ptr<logger> like) : to_(to), like_(std::move(like)) {}
    bool enabled(log_level level) const noexcept override { return !quiet_ && like_->enabled(level); }
    void write(log_level level, std::string_view message) noexcept override;
    // Before that, nothing is passed on.
    void speak() noexcept { quiet_ = false; }

private:
    std::atomic<bool> quiet_ = true;
    helper_link& to_;
    std::shared_ptr<logger> like_; // from before the fork; asked, never written to
};

struct helper_parts {
    runtime& on;
    const job_registry& kinds;
    logger& log;
    jobs* client;                  // null: the store is not to be had here
    const exception_policy* rules; // the host's; null: it has none
};

// Until the worker closes its end, which ends this process.
[[noreturn]] void serve_attempts(helper_link& link, const helper_parts& with);

// Of this process: its memory, if that is not 0, and that it is the first to go when the machine has none left.
void limit_memory(std::uint64_t bytes);

} // namespace holdfast::detail
