// A process that the desk starts, and may kill.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <sys/types.h>

class child {
public:
    // The first argument is the program; what it writes goes to the end of `log`.
    child(std::vector<std::string> arguments, const std::filesystem::path& log);
    ~child(); // asks it to end, and waits
    child(const child&) = delete;
    child& operator=(const child&) = delete;

    bool runs();
    void kill();                       // SIGKILL: it has no say
    int stop();                        // SIGTERM, and its exit code
    int code() const { return code_; } // 128 + the signal that ended it

private:
    void wait(int options);

    pid_t id_ = -1;
    int code_ = -1;
};
