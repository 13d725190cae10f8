// What your code is told about the attempt it is running in.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <stop_token>
#include <string_view>
#include <utility>

#include <holdfast/duration.hpp>
#include <holdfast/error.hpp>
#include <holdfast/policy.hpp>
#include <holdfast/runtime.hpp>
#include <holdfast/sleep.hpp>
#include <holdfast/task.hpp>

namespace holdfast {

// How many attempts run past their deadline right now. Shared, for a timer may outlive the pipeline it counts for.
using overdue_count = std::shared_ptr<std::atomic<int>>;

namespace detail {

// A stop source that fires at a deadline or with its parent. Counted: the timer may still be running its callback,
// which may itself end the attempt, when the attempt lets go.
class deadline_source final : timer {
public:
    static deadline_source* make(runtime& on, time_point due, const std::stop_token& parent, overdue_count overdue) {
        auto* self = new deadline_source(on, std::move(overdue));
        if (parent.stop_possible()) self->from_parent_.emplace(parent, forward{self});
        self->references_.store(2, std::memory_order_relaxed);
        if (!on.arm(*self, due)) { // stopped: nothing will ever wake it
            self->references_.store(1, std::memory_order_relaxed);
            self->armed_ = false;
            self->source_.request_stop();
        }
        return self;
    }
    std::stop_token token() const noexcept { return source_.get_token(); }

    // The attempt has ended. Out of line: most attempts never ask for a token.
    [[gnu::noinline]] void let_go() noexcept {
        from_parent_.reset();
        ended_.store(true); // first, so that either this or expired() sees the other and takes the count back
        if (overdue_now_.exchange(false)) overdue_->fetch_sub(1, std::memory_order_relaxed);
        if (armed_ && on_.cancel(*this)) release();
        release();
    }

private:
    struct forward {
        deadline_source* self;
        void operator()() const noexcept { self->source_.request_stop(); }
    };

    deadline_source(runtime& on, overdue_count overdue) : on_(on), overdue_(std::move(overdue)) { run = &expired; }

    static void expired(work& w, wake) noexcept {
        auto& self = static_cast<deadline_source&>(static_cast<timer&>(w));
        if (self.overdue_ != nullptr) {
            self.overdue_->fetch_add(1, std::memory_order_relaxed);
            self.overdue_now_.store(true);
            // The attempt may have ended in between: then nobody else takes the count back.
            if (self.ended_.load() && self.overdue_now_.exchange(false))
                self.overdue_->fetch_sub(1, std::memory_order_relaxed);
        }
        self.source_.request_stop();
        self.release();
    }
    void release() noexcept {
        if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
    }

    runtime& on_;
    std::stop_source source_;
    std::optional<std::stop_callback<forward>> from_parent_;
    std::atomic<int> references_ = 1;
    overdue_count overdue_;
    std::atomic<bool> overdue_now_ = false;
    std::atomic<bool> ended_ = false;
    bool armed_ = true;
};

} // namespace detail

// Valid until the attempt ends. One thread at a time.
class attempt {
public:
    // For runners. `caller` and `overdue` must outlive the attempt.
    attempt(holdfast::runtime& on, std::string_view policy, const std::stop_token& caller, int number, int max_number,
            time_point deadline, const overdue_count& overdue) noexcept
        : on_(on), caller_(caller), policy_(policy), deadline_(deadline), overdue_(overdue), number_(number),
          max_number_(max_number) {}
    attempt(const attempt&) = delete;
    attempt& operator=(const attempt&) = delete;
    ~attempt() {
        if (source_ != nullptr) [[unlikely]]
            source_->let_go();
    }

    int number() const noexcept { return number_; }         // 1 for the first call
    int max_number() const noexcept { return max_number_; } // or `unlimited`
    bool last() const noexcept { return number_ == max_number_; }
    std::string_view policy_name() const noexcept { return policy_; }
    holdfast::runtime& runtime() const noexcept { return on_; }

    // `never` when nothing limits this attempt.
    time_point deadline() const noexcept { return deadline_; }
    duration remaining() const noexcept {
        if (deadline_ == never) return forever;
        const time_point now = on_.now();
        return now >= deadline_ ? duration::zero() : deadline_ - now;
    }

    // Fires when the attempt runs out of time or the caller cancels. Pass it on to whatever you wait for. Its timer is
    // armed by the first call, so an attempt that never asks pays nothing.
    std::stop_token stop_token() {
        if (deadline_ == never) return caller_;
        if (source_ == nullptr) source_ = detail::deadline_source::make(on_, deadline_, caller_, overdue_);
        return source_->token();
    }
    // The same question without a timer: reads the clock.
    bool stop_requested() const noexcept {
        return caller_.stop_requested() || (deadline_ != never && on_.now() >= deadline_);
    }

    // The other side said when to come back: the next retry waits this long, within max_delay and the deadline.
    void retry_after(duration d) noexcept { retry_after_ = d; }
    std::optional<duration> retry_after() const noexcept { return retry_after_; }

    // Sleep within the attempt; throws operation_cancelled when the attempt has to stop.
    void block_for(duration d) { throw_unless_due(holdfast::block_for(on_, d, stop_token())); }
    task<void> sleep_for(duration d) { return sleep(on_, d, stop_token()); }

private:
    static void throw_unless_due(sleep_end end) {
        if (end != sleep_end::due) throw operation_cancelled("the attempt was asked to stop");
    }
    static task<void> sleep(holdfast::runtime& on, duration d, std::stop_token stop) {
        throw_unless_due(co_await holdfast::sleep_for(on, d, std::move(stop)));
    }

    holdfast::runtime& on_;
    const std::stop_token& caller_;
    std::string_view policy_;
    time_point deadline_;
    detail::deadline_source* source_ = nullptr;
    const overdue_count& overdue_;
    std::optional<duration> retry_after_;
    int number_;
    int max_number_;
};

} // namespace holdfast
