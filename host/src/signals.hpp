#pragma once

#include <csignal>

#include <holdfast/error.hpp>

namespace holdfast::detail {

enum class wake_up : char { stop = 's', reload = 'r', hurry = 'h', done = 'd' };

// What wakes a thread that waits in wait(): wake() from any thread, or a signal while a signal_watch is alive.
class wake_pipe {
public:
    wake_pipe(); // throws failed when the system has no pipes left
    ~wake_pipe();
    wake_pipe(const wake_pipe&) = delete;
    wake_pipe& operator=(const wake_pipe&) = delete;

    void wake(wake_up why) noexcept; // also from a signal handler
    wake_up wait() noexcept;

private:
    int read_end_ = -1;
    int write_end_ = -1;
};

// While alive: SIGTERM and SIGINT wake with `stop`, SIGHUP with `reload`, and a second SIGTERM or SIGINT (a third, with
// patience) ends the process at once with 128 + the signal. One per process: throws failed(errc::duplicate).
class signal_watch {
public:
    explicit signal_watch(wake_pipe& to);
    ~signal_watch();
    // The second one wakes with `hurry`.
    void be_patient() const noexcept;
    signal_watch(const signal_watch&) = delete;
    signal_watch& operator=(const signal_watch&) = delete;

private:
    struct sigaction before_[3];
};

} // namespace holdfast::detail
