#include "child.hpp"

#include <csignal>
#include <system_error>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

extern char** environ;

child::child(std::vector<std::string> arguments, const std::filesystem::path& log) {
    std::vector<char*> words;
    for (std::string& each : arguments) words.push_back(each.data());
    words.push_back(nullptr);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 1, log.c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600);
    posix_spawn_file_actions_adddup2(&files, 1, 2);
    const int problem = ::posix_spawnp(&id_, words.front(), &files, nullptr, words.data(), environ);
    posix_spawn_file_actions_destroy(&files);
    if (problem != 0)
        throw std::system_error(problem, std::generic_category(), arguments.front() + " cannot be started");
}

child::~child() {
    stop();
}

void child::wait(int options) {
    int status = 0;
    if (id_ < 0 || ::waitpid(id_, &status, options) != id_) return;
    id_ = -1;
    code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool child::runs() {
    wait(WNOHANG);
    return id_ > 0;
}

void child::kill() {
    if (id_ > 0) ::kill(id_, SIGKILL);
    wait(0);
}

int child::stop() {
    if (id_ > 0) ::kill(id_, SIGTERM);
    wait(0);
    return code_;
}
