#include "worker_process.hpp"

#include <csignal>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

extern char** environ;

worker_process::worker_process(const std::filesystem::path& config, std::uint16_t mail_port,
                               const std::filesystem::path& log) {
    std::string program = "/proc/self/exe";
    std::string role = "--worker";
    std::string file = config.string();
    std::string port = std::to_string(mail_port);
    char* arguments[] = {program.data(), role.data(), port.data(), file.data(), nullptr};
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 2, log.c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600);
    const int problem = ::posix_spawn(&id_, program.c_str(), &files, nullptr, arguments, environ);
    posix_spawn_file_actions_destroy(&files);
    if (problem != 0) throw std::system_error(problem, std::generic_category(), "the worker cannot be started");
}

worker_process::~worker_process() {
    stop();
}

int worker_process::wait() {
    if (id_ < 0) return code_;
    int status = 0;
    ::waitpid(id_, &status, 0);
    id_ = -1;
    code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return code_;
}

bool worker_process::runs() {
    if (id_ < 0) return false;
    int status = 0;
    if (::waitpid(id_, &status, WNOHANG) != id_) return true;
    id_ = -1;
    code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return false;
}

void worker_process::kill() {
    if (id_ > 0) ::kill(id_, SIGKILL);
    wait();
}

int worker_process::stop() {
    if (id_ > 0) ::kill(id_, SIGTERM);
    return wait();
}
