// A second process on the data of a case's store. It is asked with a line and answers with one; see serve_rival().
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <sys/types.h>

namespace holdfast::conformance {

// One thread at a time. Ends with the object.
class rival {
public:
    // The command starts a program that calls serve_rival(). Waits until it is ready; throws check_failed when it never is.
    explicit rival(const std::vector<std::string>& command);
    ~rival() { stop(); }
    rival(const rival&) = delete;
    rival& operator=(const rival&) = delete;

    // Has it begin; what it did comes later.
    void begin(const std::string& request);
    // What it did; throws check_failed when that went wrong, or the process ended.
    std::string end();

private:
    std::string hear();
    void stop() noexcept;

    pid_t id_ = -1;
    int line_ = -1;
    std::string heard_; // after the last whole line
};

// What one process did to one thing: the time of this machine, in which processes can be compared, before and after.
struct deed {
    std::string what;
    std::uint64_t token = 0;
    std::int64_t from = 0;
    std::int64_t until = 0;
};

std::int64_t ticks();
std::string to_line(const std::vector<deed>& deeds);
std::vector<deed> deeds_in(const std::string& line);

} // namespace holdfast::conformance
