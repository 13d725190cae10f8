#include "harness/temporary_folder.hpp"

#include <cerrno>
#include <csignal>
#include <system_error>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace holdfast::harness {

namespace {

// Waits in a process of its own for the end of the pipe, which is the end of the test process, then removes the folder.
// Only the exec of /bin/sh after the fork: the test process may have threads.
pid_t start_sweeper(const std::string& path, int& keep_open) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return -1;
    const char* const arguments[] = {"sh",    "-c",         "read -r _; sleep 1; rm -rf -- \"$1\"",
                                     "sweep", path.c_str(), nullptr};
    const pid_t sweeper = ::fork();
    if (sweeper == 0) {
        ::setsid(); // a signal to the test's group must not reach it
        ::dup2(ends[0], 0);
        const int nowhere = ::open("/dev/null", O_WRONLY);
        ::dup2(nowhere, 1);
        ::dup2(nowhere, 2);
        ::close_range(3, ~0U, 0);
        ::execv("/bin/sh", const_cast<char* const*>(arguments));
        ::_exit(127);
    }
    ::close(ends[0]);
    keep_open = ends[1];
    return sweeper;
}

} // namespace

temporary_folder::temporary_folder(const std::string& prefix) : made_by_(::getpid()) {
    std::string pattern = (std::filesystem::temp_directory_path() / (prefix + ".XXXXXX")).string();
    if (::mkdtemp(pattern.data()) == nullptr)
        throw std::filesystem::filesystem_error("cannot make a temporary folder", pattern,
                                                std::error_code(errno, std::generic_category()));
    path_ = pattern;
    sweeper_ = start_sweeper(pattern, sweeper_pipe_);
}

temporary_folder::~temporary_folder() {
    if (::getpid() != made_by_) return;
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
    if (sweeper_ <= 0) return;
    ::kill(sweeper_, SIGKILL);
    ::waitpid(sweeper_, nullptr, 0);
    ::close(sweeper_pipe_);
}

void temporary_folder::give_to(uid_t user, gid_t group) const {
    if (::chown(path_.c_str(), user, group) != 0)
        throw std::filesystem::filesystem_error("cannot change its owner", path_,
                                                std::error_code(errno, std::generic_category()));
}

} // namespace holdfast::harness
