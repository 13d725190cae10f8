#include "child_rival.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <holdfast/error.hpp>

namespace holdfast::cli {

namespace {

constexpr int patience_ms = 60'000;

[[noreturn]] void give_up(const std::string& why) {
    throw failed({errc::unavailable, "the second process: " + why, std::nullopt});
}

} // namespace

child_rival::child_rival(std::vector<std::string> command) {
    int ends[2] = {-1, -1};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) give_up(std::strerror(errno));
    std::vector<char*> arguments;
    for (std::string& each : command) arguments.push_back(each.data());
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    const int problem = ::posix_spawn(&id_, arguments[0], &actions, nullptr, arguments.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    line_ = ends[0];
    if (problem == 0) return;
    ::close(line_);
    give_up("cannot start " + command.front() + ": " + std::strerror(problem));
}

child_rival::~child_rival() {
    ::close(line_); // it ends when there is nothing more to read
    ::waitpid(id_, nullptr, 0);
}

void child_rival::say(const std::string& line) {
    const std::string whole = line + "\n";
    for (std::size_t sent = 0; sent < whole.size();) {
        const ssize_t more = ::send(line_, whole.data() + sent, whole.size() - sent, MSG_NOSIGNAL);
        if (more < 0 && errno != EINTR) give_up(std::strerror(errno));
        if (more > 0) sent += static_cast<std::size_t>(more);
    }
}

std::string child_rival::hear() {
    for (;;) {
        if (const auto at = heard_.find('\n'); at != std::string::npos) {
            std::string line = heard_.substr(0, at);
            heard_.erase(0, at + 1);
            return line;
        }
        pollfd waits{line_, POLLIN, 0};
        const int ready = ::poll(&waits, 1, patience_ms);
        if (ready == 0) give_up("it did not answer in time");
        char some[4096];
        const ssize_t more = ready < 0 ? -1 : ::read(line_, some, sizeof(some));
        if (more == 0) give_up("it has ended");
        if (more < 0 && errno != EINTR) give_up(std::strerror(errno));
        if (more > 0) heard_.append(some, static_cast<std::size_t>(more));
    }
}

} // namespace holdfast::cli
