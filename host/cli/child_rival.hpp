#pragma once

#include <memory>
#include <string>
#include <vector>

#include <sys/types.h>

#include <holdfast/store_conformance.hpp>

namespace holdfast::cli {

// A process of a command, the program with its path first, that calls serve_rival().
class child_rival final : public conformance::rival {
public:
    // Throws failed when it cannot be started.
    explicit child_rival(std::vector<std::string> command);
    ~child_rival() override;
    child_rival(const child_rival&) = delete;
    child_rival& operator=(const child_rival&) = delete;

    void say(const std::string& line) override;
    std::string hear() override;

private:
    pid_t id_ = -1;
    int line_ = -1;
    std::string heard_; // after the last whole line
};

} // namespace holdfast::cli
