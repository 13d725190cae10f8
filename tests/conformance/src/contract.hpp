// What the cases on the bare contract share. They use real time, a few milliseconds of it, and get every piece of work
// back before they end, whatever their checks say.
#pragma once

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "lab.hpp"

namespace holdfast::conformance {

// Counts down to zero, then wakes whoever waits.
class tally {
public:
    explicit tally(int expected) : left_(expected) {}
    void arrive() noexcept {
        if (left_.fetch_sub(1) == 1) done_.unpark();
    }
    void wait(runtime& on) { on.wait(done_); }

private:
    std::atomic<int> left_;
    parker done_;
};

// Work, or a timer, that notes what happened to it.
struct probe : timer {
    probe() noexcept { run = &ran; }

    static void ran(work& w, wake why) noexcept {
        auto& self = static_cast<probe&>(static_cast<timer&>(w));
        ++self.runs;
        self.why = why;
        if (self.on != nullptr) self.at = self.on->now();
        self.thread = std::this_thread::get_id();
        if (self.order != nullptr) self.place = self.order->fetch_add(1);
        tally* const counted_by = self.count;
        if (self.then) self.then(); // may post the probe again, so it is not ours afterwards
        if (counted_by != nullptr) counted_by->arrive();
    }

    std::atomic<int> runs = 0;
    wake why = wake::due;
    time_point asked{};
    time_point at{};
    std::thread::id thread;
    int place = -1;
    runtime* on = nullptr;
    std::atomic<int>* order = nullptr;
    std::function<void()> then;
    tally* count = nullptr;
};

// A runtime of its own for each case, stopped at its end.
class rig {
public:
    explicit rig(const runtime_factory& make) : made_(make()) {
        if (made_ == nullptr) throw check_failed("the factory gave no runtime");
        tally one(1);
        probe p;
        p.count = &one;
        check(made_->post(p), "a new runtime takes work");
        one.wait(*made_);
        alone_ = p.thread == std::this_thread::get_id();
    }
    ~rig() { made_->stop(); }
    rig(const rig&) = delete;
    rig& operator=(const rig&) = delete;

    runtime& operator*() const noexcept { return *made_; }
    runtime* operator->() const noexcept { return made_.get(); }
    // Everything runs on the thread that waits; then nothing may be called from other threads.
    bool alone() const noexcept { return alone_; }
    int callers() const noexcept { return alone_ ? 1 : 4; }

private:
    std::unique_ptr<runtime> made_;
    bool alone_ = false;
};

// Runs the function on several threads at once, this one among them.
template <class Function>
void on_threads(int count, Function function) {
    std::vector<std::jthread> others;
    for (int i = 1; i < count; ++i) others.emplace_back([=] { function(i); });
    function(0);
}

std::vector<contract_case> pool_and_stop_cases();
std::vector<contract_case> reading_cases();

} // namespace holdfast::conformance
