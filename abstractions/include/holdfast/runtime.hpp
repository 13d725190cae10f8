// The seam a runtime plugin implements: run work, wake at a time, run blocking work on a bounded pool, tell the time,
// stop. Nothing here allocates: callers own the nodes they hand over until those have run.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

#include <holdfast/duration.hpp>

namespace holdfast {

// Why a piece of work runs.
enum class wake : unsigned char {
    due,     // as asked
    stopped, // the runtime is stopping; a timer runs before its time
};

// One piece of work. The poster owns it and keeps it alive until `run` is called; `run` may destroy it.
struct work {
    using function = void (*)(work&, wake) noexcept;
    function run = nullptr;
    work* next = nullptr; // the runtime's, while it holds the work
};

// Work for a point in time. The fields below `run` belong to the runtime while the timer is armed.
struct timer : work {
    time_point due{};
    std::uint64_t sequence = 0;
    std::size_t position = std::numeric_limits<std::size_t>::max();
};

// A one-shot event that a thread can wait for.
class parker {
public:
    bool ready() const noexcept { return ready_.load(std::memory_order_acquire); }
    // Any thread, once. The parker may be destroyed as soon as a wait for it has returned.
    void unpark() noexcept {
        const std::lock_guard lock(mutex_);
        ready_.store(true, std::memory_order_release);
        changed_.notify_all();
    }
    void park() noexcept {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return ready(); });
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::atomic<bool> ready_ = false;
};

// What a thread that is not the runtime's own may be used for.
enum class thread_loan : unsigned char {
    none,
    waiter,   // it is starting something that it will wait for: sync_wait()
    listener, // a store's, which waits for hints: what one sets off may go on here up to the answer to its first call
};

// Something that can be read from, a socket, say, and work for when there is something to read. Any thread.
class readable_watch {
public:
    // Gives back work that still waits. Before the runtime goes.
    virtual ~readable_watch() = default;
    // Runs w on a runtime thread, once, as soon as there is something to read, be it the end. Never inside this call.
    // One piece of work at a time. False: stopped, or no memory; w was not taken.
    [[nodiscard]] virtual bool wait(work& w) noexcept = 0;
    // True: w will not run, and is the caller's again. False: nothing waits; it has run, is running, or is about to.
    // What waits when the runtime stops does not run any more, and is given back here.
    virtual bool cancel() noexcept = 0;

protected:
    readable_watch() = default;
    readable_watch(const readable_watch&) = delete;
    readable_watch& operator=(const readable_watch&) = delete;
};

// All members may be called from any thread, except stop(), which must not be called from the runtime's own threads.
class runtime {
public:
    virtual ~runtime() = default;

    virtual std::string_view name() const noexcept = 0;

    // Steady: never goes back.
    virtual time_point now() const noexcept = 0;

    // The same clock, read cheaply: never ahead of now(), and behind it by no more than coarse_error under ordinary
    // conditions. Used where "surely not yet" is enough.
    virtual time_point coarse_now() const noexcept { return now(); }
    static constexpr duration coarse_error = std::chrono::milliseconds{20};

    // Runs w on a runtime thread, soon. Never runs it inside this call. False: stopped, w was not taken.
    [[nodiscard]] virtual bool post(work& w) noexcept = 0;

    // Runs w on a thread that may block. False: the pool's queue is full, or stopped; w was not taken.
    [[nodiscard]] virtual bool post_blocking(work& w) noexcept = 0;

    // Runs t on a runtime thread at `due` or soon after, never before. Timers due at the same time run in the order
    // in which they were armed. False: stopped, t was not taken.
    [[nodiscard]] virtual bool arm(timer& t, time_point due) noexcept = 0;

    // True: t will not run, and is the caller's again. False: it has run, is running, or is about to.
    virtual bool cancel(timer& t) noexcept = 0;

    // To read without a thread that waits for it. The descriptor stays the caller's, may be made non-blocking, and may be
    // closed once the watch is gone. Null: this runtime cannot, and who asks needs a thread of its own.
    virtual std::unique_ptr<readable_watch> watch_readable(int descriptor) {
        static_cast<void>(descriptor);
        return nullptr;
    }

    // Blocks the calling thread until p is unparked. A runtime on virtual time moves time along meanwhile.
    virtual void wait(parker& p) noexcept { p.park(); }

    // Tells what the calling thread may be used for, until told otherwise; gives what was told before. Virtual so that
    // whoever asks sees the same, whichever shared object it is in.
    virtual thread_loan lend_thread(thread_loan what) noexcept { return std::exchange(lent(), what); }
    // True: the caller may block this thread with one call, which need not go to another thread then. Once for each
    // loan, so that several things that were begun together still run side by side.
    [[nodiscard]] bool borrow_thread() noexcept { return lend_thread(thread_loan::none) != thread_loan::none; }

    // Takes nothing new, runs what was posted, runs every armed timer with wake::stopped, then returns; nothing runs
    // afterwards. Calling it again does nothing.
    virtual void stop() noexcept = 0;
    virtual bool stopped() const noexcept = 0;

protected:
    runtime() = default;
    runtime(const runtime&) = delete;
    runtime& operator=(const runtime&) = delete;

private:
    static thread_loan& lent() noexcept {
        static thread_local thread_loan what = thread_loan::none;
        return what;
    }
};

// Lends the calling thread for as long as this lives.
class lent_thread {
public:
    lent_thread(runtime& to, thread_loan what) noexcept : to_(to), before_(to.lend_thread(what)) {}
    ~lent_thread() { to_.lend_thread(before_); }
    lent_thread(const lent_thread&) = delete;
    lent_thread& operator=(const lent_thread&) = delete;

private:
    runtime& to_;
    thread_loan before_;
};

} // namespace holdfast
