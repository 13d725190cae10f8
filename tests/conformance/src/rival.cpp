#include "rival.hpp"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <sstream>

#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.hpp"

extern "C" char** environ; // NOLINT(readability-redundant-declaration): not declared everywhere

namespace holdfast::conformance {

namespace {

constexpr int patience_ms = 60'000;

[[noreturn]] void give_up(const std::string& why) {
    throw check_failed("the second process: " + why);
}

} // namespace

rival::rival(const std::vector<std::string>& command) {
    int ends[2] = {-1, -1};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) give_up(std::strerror(errno));
    line_ = ends[0];
    std::vector<std::string> words = command;
    std::vector<char*> arguments;
    for (std::string& each : words) arguments.push_back(each.data());
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    const int problem = ::posix_spawn(&id_, arguments[0], &actions, nullptr, arguments.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    try {
        if (problem != 0) give_up("cannot start " + command.front() + ": " + std::strerror(problem));
        if (const std::string greeting = hear(); greeting != "ready") give_up(greeting);
    } catch (...) {
        stop();
        throw;
    }
}

void rival::stop() noexcept {
    ::close(line_); // it ends when there is nothing more to read
    if (id_ > 0) ::waitpid(id_, nullptr, 0);
}

void rival::begin(const std::string& request) {
    const std::string line = request + "\n";
    for (std::size_t sent = 0; sent < line.size();) {
        const ssize_t more = ::send(line_, line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
        if (more < 0 && errno != EINTR) give_up(std::strerror(errno));
        if (more > 0) sent += static_cast<std::size_t>(more);
    }
    if (const std::string answer = hear(); answer != "begun") give_up(answer);
}

std::string rival::end() {
    const std::string answer = hear();
    if (!answer.starts_with("done")) give_up(answer);
    return answer.substr(4);
}

std::string rival::hear() {
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

std::int64_t ticks() {
    return std::chrono::steady_clock::now().time_since_epoch().count();
}

std::string to_line(const std::vector<deed>& deeds) {
    std::ostringstream line;
    for (const deed& each : deeds)
        line << " " << each.what << " " << each.token << " " << each.from << " " << each.until;
    return line.str();
}

std::vector<deed> deeds_in(const std::string& line) {
    std::vector<deed> all;
    std::istringstream in(line);
    for (deed each; in >> each.what >> each.token >> each.from >> each.until;) all.push_back(each);
    return all;
}

} // namespace holdfast::conformance
