#include <holdfast/virtual_time.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <utility>

namespace holdfast {

namespace {

constexpr time_point last_moment = never - duration{1};

// Work that waits here may be woken from outside, which nobody tells us: so look again this often.
constexpr auto tick = std::chrono::milliseconds{1};
// A pool whose threads all wait here cannot start what stands in its queue: after so long, that no longer counts.
constexpr auto patience_with_pool = std::chrono::milliseconds{100};
constexpr auto patience_when_idle = std::chrono::seconds{10};
constexpr auto patience_when_busy = std::chrono::seconds{100};

// The runtime whose work this thread is running.
thread_local const virtual_time_runtime* carried_by = nullptr;

[[noreturn]] void no_progress(std::string_view inner, int carried, int waiting, std::size_t timers) {
    std::fprintf(stderr,
                 "holdfast: virtual time on the runtime \"%.*s\" stands still while somebody waits: "
                 "%d pieces of work taken and not ended, %d of them waiting, %zu timers armed\n",
                 static_cast<int>(inner.size()), inner.data(), carried, waiting, timers);
    std::abort();
}

} // namespace

// One piece of work on its way through the inner runtime.
struct virtual_time_runtime::carrier : work {
    carrier(virtual_time_runtime& through, work& what, wake reason, bool for_pool) noexcept
        : owner(through), carried(what), why(reason), blocking(for_pool) {
        run = &arrived;
    }

    static void arrived(work& w, wake inner_says) noexcept {
        auto& self = static_cast<carrier&>(w);
        const wake why = inner_says == wake::stopped ? wake::stopped : self.why;
        virtual_time_runtime& owner = self.owner;
        work& what = self.carried;
        if (self.blocking) owner.left_pool_queue();
        delete &self;
        const auto* before = std::exchange(carried_by, &owner);
        what.run(what, why);
        carried_by = before;
        owner.work_ended();
    }

    virtual_time_runtime& owner;
    work& carried;
    wake why;
    bool blocking;
};

virtual_time_runtime::virtual_time_runtime(runtime& inner)
    : inner_(inner), now_(duration(std::chrono::hours{1}).count()) {} // as in the simulated runtime

virtual_time_runtime::~virtual_time_runtime() {
    stop();
}

time_point virtual_time_runtime::now() const noexcept {
    return time_point(duration(now_.load(std::memory_order_acquire)));
}

bool virtual_time_runtime::post(work& w) noexcept {
    return forward(w, false);
}

bool virtual_time_runtime::post_blocking(work& w) noexcept {
    return forward(w, true);
}

bool virtual_time_runtime::forward(work& w, bool blocking) noexcept {
    auto* c = new (std::nothrow) carrier(*this, w, wake::due, blocking);
    if (c == nullptr) return false;
    {
        const std::lock_guard lock(mutex_);
        if (stopped_) {
            delete c;
            return false;
        }
        ++carried_;
        if (blocking) ++in_pool_queue_;
    }
    if (blocking ? inner_.post_blocking(*c) : inner_.post(*c)) return true;
    delete c;
    if (blocking) left_pool_queue();
    work_ended();
    return false;
}

void virtual_time_runtime::left_pool_queue() noexcept {
    const std::lock_guard lock(mutex_);
    --in_pool_queue_;
    ++progress_;
}

void virtual_time_runtime::work_ended() noexcept {
    const std::lock_guard lock(mutex_);
    --carried_;
    ++progress_;
    changed_.notify_all();
}

bool virtual_time_runtime::arm(timer& t, time_point due) noexcept {
    const std::lock_guard lock(mutex_);
    if (stopped_) return false;
    timers_.push(t, due);
    ++progress_;
    changed_.notify_all();
    return true;
}

bool virtual_time_runtime::cancel(timer& t) noexcept {
    const std::lock_guard lock(mutex_);
    return timers_.remove(t);
}

std::size_t virtual_time_runtime::timers() const {
    const std::lock_guard lock(mutex_);
    return timers_.size();
}

// Nothing runs, and nobody who waits has been woken and is about to.
bool virtual_time_runtime::settled(bool pool_is_stuck) const noexcept {
    return carried_ - (pool_is_stuck ? in_pool_queue_ : 0) == waiting_ &&
           std::none_of(awaited_.begin(), awaited_.end(), [](const parker* p) { return p->ready(); });
}

// On a thread of the inner runtime; here and now when that has stopped. Lets go of the lock meanwhile.
void virtual_time_runtime::run_timer(std::unique_lock<std::mutex>& lock, timer& t, wake why) noexcept {
    ++carried_;
    ++progress_;
    lock.unlock();
    auto* c = new carrier(*this, t, why, false);
    if (!inner_.post(*c)) carrier::arrived(*c, wake::stopped);
    lock.lock();
}

void virtual_time_runtime::wait(parker& p) noexcept {
    const bool carried = carried_by == this;
    std::unique_lock lock(mutex_);
    awaited_.push_back(&p);
    if (carried) ++waiting_;
    changed_.notify_all();
    auto seen = progress_;
    auto quiet = std::chrono::milliseconds::zero(); // counted, not measured: a stopped process is not a standstill
    while (!p.ready()) {
        if (!stopped_ && settled(quiet > patience_with_pool)) {
            if (timer* t = timers_.pop_due(last_moment)) {
                now_.store(std::max(now(), t->due).time_since_epoch().count(), std::memory_order_release);
                run_timer(lock, *t, wake::due);
                continue;
            }
        }
        changed_.wait_for(lock, tick);
        quiet = std::exchange(seen, progress_) == progress_ ? quiet + tick : std::chrono::milliseconds::zero();
        if (quiet > (carried_ == waiting_ ? patience_when_idle : patience_when_busy))
            no_progress(inner_.name(), carried_, waiting_, timers_.size());
    }
    if (carried) --waiting_;
    awaited_.erase(std::find(awaited_.begin(), awaited_.end(), &p));
    changed_.notify_all();
    lock.unlock();
    p.park(); // so that whoever unparked it has left it
}

void virtual_time_runtime::stop() noexcept {
    std::unique_lock lock(mutex_);
    if (stopped_.exchange(true)) return;
    while (timer* t = timers_.pop()) run_timer(lock, *t, wake::stopped);
    changed_.wait(lock, [&, mine = carried_by == this ? 1 : 0] { return carried_ == mine; });
}

bool virtual_time_runtime::stopped() const noexcept {
    return stopped_;
}

virtual_time_runtime::participant::participant(virtual_time_runtime& in) noexcept
    : in_(in), before_(std::exchange(carried_by, &in)) {
    const std::lock_guard lock(in_.mutex_);
    ++in_.carried_;
}

virtual_time_runtime::participant::~participant() {
    carried_by = before_;
    in_.work_ended();
}

} // namespace holdfast
