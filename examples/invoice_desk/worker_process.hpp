// A worker as a process of its own, which is how one can be killed.
#pragma once

#include <cstdint>
#include <filesystem>

#include <sys/types.h>

class worker_process {
public:
    worker_process(const std::filesystem::path& config, std::uint16_t mail_port, const std::filesystem::path& log);
    ~worker_process(); // asks it to end, and waits
    worker_process(const worker_process&) = delete;
    worker_process& operator=(const worker_process&) = delete;

    pid_t id() const { return id_; }
    bool runs();
    // SIGKILL: it has no say.
    void kill();
    // SIGTERM, and its exit code.
    int stop();

private:
    int wait();

    pid_t id_ = -1;
    int code_ = -1;
};
