#include <holdfast/simulated_runtime.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace holdfast {

namespace {

// One nanosecond short of `never`: a timer for `never` does not move the clock.
constexpr time_point last_moment = never - duration{1};

[[noreturn]] void nothing_left(std::size_t timers) {
    std::fprintf(stderr,
                 "holdfast: the simulated runtime waits for something that cannot happen: nothing is left to run, "
                 "and no timer will fall due (%zu armed for never)\n",
                 timers);
    std::abort();
}

} // namespace

simulated_runtime::simulated_runtime(std::uint64_t seed) : random_(seed), shuffle_(seed != 0) {}

simulated_runtime::~simulated_runtime() {
    stop();
}

bool simulated_runtime::post(work& w) noexcept {
    if (stopped_) return false;
    ready_.push_back(&w);
    return true;
}

bool simulated_runtime::post_blocking(work& w) noexcept {
    return post(w);
}

bool simulated_runtime::arm(timer& t, time_point due) noexcept {
    if (stopped_) return false;
    timers_.push(t, due);
    return true;
}

bool simulated_runtime::cancel(timer& t) noexcept {
    return timers_.remove(t);
}

void simulated_runtime::wait(parker& p) noexcept {
    while (!p.ready())
        if (!run_one() && !jump_to_next(last_moment)) nothing_left(timers_.size());
    p.park(); // so that whoever unparked it has left it
}

void simulated_runtime::stop() noexcept {
    if (stopped_) return;
    stopped_ = true;
    for (;;) {
        if (run_one()) continue;
        timer* t = timers_.pop();
        if (t == nullptr) return;
        t->run(*t, wake::stopped);
    }
}

void simulated_runtime::run_ready() {
    while (run_one() || jump_to_next(now_)) {
    }
}

void simulated_runtime::advance(duration d) {
    const time_point target = std::min(saturating_add(now_, std::max(d, duration::zero())), last_moment);
    while (run_one() || jump_to_next(target)) {
    }
    now_ = std::max(now_, target);
}

void simulated_runtime::run_until_idle() {
    while (run_one() || jump_to_next(last_moment)) {
    }
}

bool simulated_runtime::run_one() {
    if (first_ == ready_.size()) {
        ready_.clear();
        first_ = 0;
        return false;
    }
    if (first_ >= 1024 && first_ * 2 > ready_.size()) {
        ready_.erase(ready_.begin(), ready_.begin() + static_cast<std::ptrdiff_t>(first_));
        first_ = 0;
    }
    if (shuffle_) std::swap(ready_[first_], ready_[first_ + random_.next() % (ready_.size() - first_)]);
    work& w = *ready_[first_++];
    w.run(w, wake::due);
    return true;
}

bool simulated_runtime::jump_to_next(time_point no_later_than) {
    timer* t = timers_.pop_due(no_later_than);
    if (t == nullptr) return false;
    now_ = std::max(now_, t->due);
    t->run(*t, wake::due);
    return true;
}

} // namespace holdfast
