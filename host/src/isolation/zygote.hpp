// A process forked while the program had one thread only, which forks helper processes on demand. It starts nothing by
// itself, so every helper begins as the program was then.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include <sys/types.h>

#include "file_handle.hpp"

namespace holdfast::detail {

// What a helper process is given.
struct helper_side {
    int socket;       // to the worker; a stream
    int crash_report; // for the last words; what does not fit is lost, for nobody reads it before the end
    bool with_stores; // as the worker asked
};

// What the worker gets of it.
struct started_helper {
    pid_t id = -1;
    int problem = 0; // errno, when there is none
    file_handle socket;
    file_handle crash_report; // to be read once it has ended; reading waits for nothing
};

struct ended_helper {
    pid_t id = -1;
    int wait_status = 0;
};

// One thread at a time. Ends with its owner, helpers included.
class zygote {
public:
    // The child never comes back from this: it forks helpers, and ends them with itself. `helper` runs in those, on
    // their only thread; its value is their exit code. Throws failed when the system has no process left, or when this
    // process has more than one thread.
    static std::unique_ptr<zygote> fork(std::function<int(helper_side)> helper);
    ~zygote();
    zygote(const zygote&) = delete;
    zygote& operator=(const zygote&) = delete;

    // Becomes readable when there is something to receive.
    int file() const noexcept { return control_.get(); }
    // False: the zygote is dead.
    bool ask_for_helper(bool with_stores) noexcept;
    bool kill(pid_t helper) noexcept;

    struct message {
        std::optional<started_helper> started;
        std::optional<ended_helper> ended;
        bool dead = false; // the zygote is gone, and its helpers with it
    };
    // Waits for nothing: neither set when there is none.
    message receive() noexcept;

private:
    zygote(pid_t id, file_handle control) noexcept : id_(id), control_(std::move(control)) {}

    pid_t id_;
    file_handle control_;
};

// Threads of this process.
int count_threads();

} // namespace holdfast::detail
