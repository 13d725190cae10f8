#include "zygote.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <set>
#include <system_error>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <holdfast/error.hpp>

namespace holdfast::detail {

namespace {

// Over the control socket, which keeps messages apart.
struct request {
    enum class kind : char { start, start_without_stores, kill } what;
    pid_t id;
};
struct reply {
    enum class kind : char { started, ended } what;
    pid_t id;
    int number; // errno, or the wait status
};

constexpr int look_after_parent = 1000; // ms

void do_nothing(int) {}

// Signals that end the worker in good order go to the whole group; helpers go on until it has no more use for them, and
// what is written to nobody is an error of the write. Not ignored, so that what a handler executes has them back as they
// were.
void leave_signals_to_the_worker() {
    for (const int each : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGPIPE}) ::signal(each, &do_nothing);
    ::signal(SIGCHLD, SIG_DFL);
}

template <class T>
bool send_with(int to, const T& what, const int* files, std::size_t count) noexcept {
    iovec data{const_cast<T*>(&what), sizeof what};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    alignas(cmsghdr) char room[CMSG_SPACE(2 * sizeof(int))] = {};
    if (count > 0) {
        message.msg_control = room;
        message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        cmsghdr* header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(count * sizeof(int));
        std::memcpy(CMSG_DATA(header), files, count * sizeof(int));
    }
    ssize_t sent = 0;
    do sent = ::sendmsg(to, &message, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent == static_cast<ssize_t>(sizeof what);
}

// The files that came with a message; those that there was no room for are missing.
std::array<file_handle, 2> files_of(msghdr& message) noexcept {
    int numbers[2] = {-1, -1};
    if (const cmsghdr* files = CMSG_FIRSTHDR(&message))
        std::memcpy(numbers, CMSG_DATA(files), std::min(sizeof numbers, files->cmsg_len - CMSG_LEN(0)));
    return {file_handle(numbers[0]), file_handle(numbers[1])};
}

// In the zygote, which has one thread and never returns from here.
class nursery {
public:
    nursery(int control, pid_t parent, std::function<int(helper_side)> helper)
        : control_(control), parent_(parent), helper_(std::move(helper)) {}

    [[noreturn]] void serve() {
        ::prctl(PR_SET_NAME, "holdfast-zygote");
        leave_signals_to_the_worker();
        sigset_t deaths;
        ::sigemptyset(&deaths);
        ::sigaddset(&deaths, SIGCHLD);
        ::pthread_sigmask(SIG_SETMASK, &deaths, nullptr);
        deaths_ = ::signalfd(-1, &deaths, SFD_CLOEXEC | SFD_NONBLOCK);
        while (::getppid() == parent_) {
            std::array<pollfd, 2> ready{{{control_, POLLIN, 0}, {deaths_, POLLIN, 0}}};
            if (::poll(ready.data(), ready.size(), look_after_parent) < 0 && errno != EINTR) break;
            if (ready[1].revents != 0) bury();
            if (ready[0].revents != 0 && !listen()) break;
        }
        ::_exit(0); // and the helpers die with it
    }

private:
    bool listen() {
        request asked{};
        const auto got = ::recv(control_, &asked, sizeof asked, 0);
        if (got < 0) return errno == EINTR;
        if (got != sizeof asked) return false;
        if (asked.what == request::kind::kill) {
            if (alive_.contains(asked.id)) ::kill(asked.id, SIGKILL);
            return true;
        }
        return start(asked.what == request::kind::start);
    }

    bool start(bool with_stores) {
        int talk[2];
        int last_words[2];
        if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, talk) != 0) return refuse();
        file_handle ours(talk[0]);
        file_handle theirs(talk[1]);
        if (::pipe2(last_words, O_CLOEXEC | O_NONBLOCK) != 0) return refuse();
        file_handle read_end(last_words[0]);
        file_handle write_end(last_words[1]);
        const pid_t me = ::getpid();
        const pid_t id = ::fork();
        if (id < 0) return refuse();
        if (id == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (::getppid() != me) ::_exit(1);
            ::prctl(PR_SET_NAME, "holdfast-helper");
            ::close(control_);
            ::close(deaths_);
            ours.close();
            read_end.close();
            sigset_t none;
            ::sigemptyset(&none);
            ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
            ::_exit(helper_({theirs.get(), write_end.get(), with_stores}));
        }
        alive_.insert(id);
        const int files[] = {ours.get(), read_end.get()};
        return send_with(control_, reply{reply::kind::started, id, 0}, files, 2);
    }

    bool refuse() { return send_with(control_, reply{reply::kind::started, -1, errno}, nullptr, 0); }

    void bury() {
        signalfd_siginfo ignored[16];
        while (::read(deaths_, ignored, sizeof ignored) > 0) {
        }
        int status = 0;
        for (pid_t id = 0; (id = ::waitpid(-1, &status, WNOHANG)) > 0;)
            if (alive_.erase(id) > 0) send_with(control_, reply{reply::kind::ended, id, status}, nullptr, 0);
    }

    int control_;
    pid_t parent_;
    std::function<int(helper_side)> helper_;
    int deaths_ = -1;
    std::set<pid_t> alive_;
};

} // namespace

int count_threads() {
    std::error_code ignored;
    int count = 0;
    for (const auto& each : std::filesystem::directory_iterator("/proc/self/task", ignored)) {
        static_cast<void>(each);
        ++count;
    }
    return count;
}

std::unique_ptr<zygote> zygote::fork(std::function<int(helper_side)> helper) {
    if (const int threads = count_threads(); threads != 1)
        throw failed({errc::unsupported,
                      "processes for isolated jobs can only be prepared while the program has one thread, and it has " +
                          std::to_string(threads) + ": start the host before anything that starts threads",
                      std::nullopt});
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        throw failed({errc::unavailable, "the system gives no socket: " + std::generic_category().message(errno), {}});
    file_handle ours(ends[0]);
    file_handle theirs(ends[1]);
    std::cout.flush();
    std::fflush(nullptr); // or what is waiting to be written would be written twice
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before); // no signal before its new handlers are there
    const pid_t parent = ::getpid();
    const pid_t id = ::fork();
    if (id == 0) {
        ours.close();
        nursery(theirs.get(), parent, std::move(helper)).serve();
    }
    const int problem = errno;
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (id < 0) throw failed({errc::unavailable, "cannot fork: " + std::generic_category().message(problem), {}});
    return std::unique_ptr<zygote>(new zygote(id, std::move(ours)));
}

zygote::~zygote() {
    control_.close();
    while (::waitpid(id_, nullptr, 0) < 0 && errno == EINTR) {
    }
}

bool zygote::ask_for_helper(bool with_stores) noexcept {
    const auto what = with_stores ? request::kind::start : request::kind::start_without_stores;
    return send_with(control_.get(), request{what, 0}, nullptr, 0);
}

bool zygote::kill(pid_t helper) noexcept {
    return send_with(control_.get(), request{request::kind::kill, helper}, nullptr, 0);
}

zygote::message zygote::receive() noexcept {
    reply got{};
    iovec data{&got, sizeof got};
    alignas(cmsghdr) char room[CMSG_SPACE(2 * sizeof(int))] = {};
    msghdr header{};
    header.msg_iov = &data;
    header.msg_iovlen = 1;
    header.msg_control = room;
    header.msg_controllen = sizeof room;
    const auto size = ::recvmsg(control_.get(), &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    message made;
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return made;
    if (size != sizeof got) {
        made.dead = true;
        return made;
    }
    if (got.what == reply::kind::ended) {
        made.ended = ended_helper{got.id, got.number};
        return made;
    }
    auto [socket, crash_report] = files_of(header);
    started_helper& started = made.started.emplace();
    if (got.id >= 0 && (!socket || !crash_report)) { // it ends by itself, for nobody has the other end of its socket
        started.problem = EMFILE;
        return made;
    }
    started.id = got.id;
    started.problem = got.number;
    started.socket = std::move(socket);
    started.crash_report = std::move(crash_report);
    return made;
}

} // namespace holdfast::detail
