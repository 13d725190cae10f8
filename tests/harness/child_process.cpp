#include "harness/child_process.hpp"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace holdfast::harness {

namespace {

// Between fork and exec only what is safe after a fork of a program with threads. Reports errno and ends on failure.
[[noreturn]] void become(char* const* arguments, const user* as, const char* output, const char* folder, int on_death,
                         pid_t parent, int report) {
    const auto give_up = [&] {
        const int problem = errno;
        [[maybe_unused]] const auto written = ::write(report, &problem, sizeof problem);
        ::_exit(127);
    };
    const int out = ::open(output, O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0644);
    const int in = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (out < 0 || in < 0) give_up();
    if (::dup2(in, 0) < 0 || ::dup2(out, 1) < 0 || ::dup2(out, 2) < 0) give_up();
    if (as != nullptr && (::setgroups(0, nullptr) != 0 || ::setgid(as->group) != 0 || ::setuid(as->id) != 0)) give_up();
    if (::chdir(folder) != 0) give_up();
    // After the change of user, which clears it.
    if (::prctl(PR_SET_PDEATHSIG, on_death) != 0) give_up();
    if (::getppid() != parent) ::_exit(127);
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::execv(arguments[0], arguments);
    give_up();
    ::_exit(127);
}

} // namespace

std::optional<user> unprivileged_user(const std::vector<std::string>& names) {
    if (::geteuid() != 0) return std::nullopt;
    for (const std::string& name : names)
        if (const passwd* found = ::getpwnam(name.c_str())) return user{found->pw_uid, found->pw_gid, name};
    return user{65534, 65534, "nobody"};
}

child_process::child_process(const command& what) {
    std::vector<std::string> words = what.arguments;
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const std::string output = what.output.empty() ? "/dev/null" : what.output.string();
    const std::string folder = what.folder.empty() ? "/" : what.folder.string();

    int report[2];
    if (::pipe2(report, O_CLOEXEC) != 0) throw std::runtime_error("cannot make a pipe");
    const pid_t parent = ::getpid();
    id_ = ::fork();
    if (id_ == 0)
        become(arguments.data(), what.as ? &*what.as : nullptr, output.c_str(), folder.c_str(), what.on_death, parent,
               report[1]);
    ::close(report[1]);
    int problem = id_ < 0 ? errno : 0;
    while (id_ > 0 && ::read(report[0], &problem, sizeof problem) < 0 && errno == EINTR) {
    }
    ::close(report[0]);
    if (problem == 0) return;
    if (id_ > 0) ::waitpid(id_, nullptr, 0);
    id_ = -1;
    throw std::runtime_error("cannot start " + what.arguments.front() + ": " + std::strerror(problem));
}

child_process::child_process(child_process&& other) noexcept : id_(std::exchange(other.id_, -1)), code_(other.code_) {}

child_process::~child_process() {
    if (id_ <= 0 || !running()) return;
    ::kill(id_, SIGKILL);
    ::waitpid(id_, nullptr, 0);
}

bool child_process::running() {
    return id_ > 0 && !wait(std::chrono::milliseconds{0});
}

void child_process::signal(int number) const {
    if (id_ > 0 && !code_) ::kill(id_, number);
}

std::optional<int> child_process::wait(std::chrono::milliseconds at_most) {
    const auto until = std::chrono::steady_clock::now() + at_most;
    while (!code_) {
        int status = 0;
        const pid_t ended = ::waitpid(id_, &status, WNOHANG);
        if (ended == id_) code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        else if (ended < 0 && errno != EINTR) code_ = -1; // somebody else took its status
        else if (std::chrono::steady_clock::now() >= until) break;
        else std::this_thread::sleep_for(std::chrono::milliseconds{2});
    }
    return code_;
}

void child_process::stop(int number, std::chrono::milliseconds grace) {
    if (!running()) return;
    signal(number);
    if (wait(grace)) return;
    signal(SIGKILL);
    wait(std::chrono::seconds{10});
}

int run(const command& what) {
    child_process process(what);
    return process.wait(std::chrono::minutes{5}).value_or(-1);
}

} // namespace holdfast::harness
