// A program started by a test. It never outlives the test: it ends with the object, and gets a signal from the system
// when the test process dies, or the thread of it that started the program: start it on one that stays.
#pragma once

#include <chrono>
#include <csignal>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace holdfast::harness {

struct user {
    uid_t id;
    gid_t group;
    std::string name;
};

// A user to run servers as that refuse to run as root: the first of `names` there is, else nobody. Nothing when this
// process is not root and need not change.
std::optional<user> unprivileged_user(const std::vector<std::string>& names);

struct command {
    std::vector<std::string> arguments; // the first is the program, with its path
    std::optional<user> as{};
    std::filesystem::path output{}; // where standard output and error go; empty: nowhere
    std::filesystem::path folder{}; // to run in; empty: /
    int on_death = SIGKILL;         // the signal it gets when the test process dies
};

// One thread at a time.
class child_process {
public:
    // Throws std::runtime_error when the program cannot be started.
    explicit child_process(const command& what);
    ~child_process();
    child_process(child_process&& other) noexcept;
    child_process& operator=(child_process&&) = delete;

    pid_t id() const noexcept { return id_; }
    bool running();
    void signal(int number) const;
    // Waits at most that long. The exit code, 128 + the signal that ended it, or nothing: it still runs.
    std::optional<int> wait(std::chrono::milliseconds at_most);
    // Asks with that signal, waits, then kills. Nothing when it has ended already.
    void stop(int number, std::chrono::milliseconds grace);

private:
    pid_t id_ = -1;
    std::optional<int> code_;
};

// Runs to the end; the exit code.
int run(const command& what);

} // namespace holdfast::harness
