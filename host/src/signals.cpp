#include "signals.hpp"

#include <atomic>
#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

namespace holdfast::detail {

namespace {

constexpr int watched[] = {SIGTERM, SIGINT, SIGHUP};

std::atomic<wake_pipe*> target = nullptr;
std::atomic<int> stops_left = 1; // signals to stop that are not the last word
std::atomic<bool> stop_seen = false;
static_assert(std::atomic<wake_pipe*>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

extern "C" void holdfast_on_signal(int signal) {
    const int kept = errno;
    wake_up why = wake_up::reload;
    if (signal != SIGHUP) {
        if (stops_left.fetch_sub(1) <= 0) ::_exit(128 + signal);
        why = stop_seen.exchange(true) ? wake_up::hurry : wake_up::stop;
    }
    if (wake_pipe* pipe = target.load()) pipe->wake(why);
    errno = kept;
}

} // namespace

wake_pipe::wake_pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw failed({errc::unavailable, "the system gives no pipe", std::nullopt});
    read_end_ = ends[0];
    write_end_ = ends[1];
    ::fcntl(write_end_, F_SETFL, O_NONBLOCK); // a full pipe wakes just as well
}

wake_pipe::~wake_pipe() {
    ::close(read_end_);
    ::close(write_end_);
}

void wake_pipe::wake(wake_up why) noexcept {
    const char byte = static_cast<char>(why);
    [[maybe_unused]] const auto written = ::write(write_end_, &byte, 1);
}

wake_up wake_pipe::wait() noexcept {
    char byte = static_cast<char>(wake_up::stop);
    while (::read(read_end_, &byte, 1) < 0 && errno == EINTR) {
    }
    return static_cast<wake_up>(byte);
}

signal_watch::signal_watch(wake_pipe& to) {
    wake_pipe* none = nullptr;
    if (!target.compare_exchange_strong(none, &to))
        throw failed({errc::duplicate, "another host of this process is running already", std::nullopt});
    stops_left = 1;
    stop_seen = false;
    struct sigaction ours{};
    ours.sa_handler = &holdfast_on_signal;
    ours.sa_flags = SA_RESTART;
    ::sigemptyset(&ours.sa_mask);
    for (int i = 0; i < 3; ++i) ::sigaction(watched[i], &ours, &before_[i]);
}

void signal_watch::be_patient() const noexcept {
    stops_left = 2;
}

signal_watch::~signal_watch() {
    for (int i = 0; i < 3; ++i) ::sigaction(watched[i], &before_[i], nullptr);
    target = nullptr;
}

} // namespace holdfast::detail
