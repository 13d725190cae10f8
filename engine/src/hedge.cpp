#include "hedge.hpp"

#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

#include <holdfast/sleep.hpp>
#include <holdfast/task_scope.hpp>

namespace holdfast {
namespace {

struct completion {
    unsigned slot;
    invoke_end end;
    time_point at;
};

// Where attempts report their end, and how the coordinator is woken from its sleep.
class finish_line {
public:
    void push(completion c) {
        std::optional<std::stop_source> wake_up;
        {
            const std::lock_guard lock(mutex_);
            ended_.push_back(c);
            wake_up = std::exchange(waiting_, std::nullopt);
        }
        if (wake_up) wake_up->request_stop();
    }
    std::vector<completion> take() {
        const std::lock_guard lock(mutex_);
        return std::exchange(ended_, {});
    }
    // A token that fires at the next push; nothing when something is there already.
    std::optional<std::stop_token> next_push() {
        const std::lock_guard lock(mutex_);
        if (!ended_.empty()) return std::nullopt;
        waiting_.emplace();
        return waiting_->get_token();
    }

private:
    std::mutex mutex_;
    std::vector<completion> ended_;
    std::optional<std::stop_source> waiting_;
};

task<invoke_end> invoke(async_operation& what, attempt& a, unsigned slot) {
    co_return co_await invoke_async{what, a, slot};
}

struct invoke_here {
    operation& what;
    attempt& a;
    unsigned slot;
    invoke_end operator()() const noexcept { return what.invoke(a, slot); }
};

task<invoke_end> invoke(operation& what, attempt& a, unsigned slot) {
    return run_blocking(a.runtime(), invoke_here{what, a, slot});
}

template <class Operation>
task<void> one_attempt(call& c, Operation& what, const call::hedged_attempt& h, const std::stop_token& stop,
                       finish_line& finish) {
    const auto slot = static_cast<unsigned>(h.number - 1);
    std::optional<invoke_end> end;
    {
        attempt a(c.on(), c.owner().name(), stop, h.number, c.plan().max_number, h.deadline, c.overdue());
        try {
            end = co_await invoke(what, a, slot);
        } catch (...) { // the pool is full: this attempt could not run here, so it runs where it is
        }
        if constexpr (std::is_same_v<Operation, operation>)
            if (!end) end = what.invoke(a, slot);
    }
    finish.push({slot, end.value_or(invoke_end::threw), c.read_clock()});
}

struct stop_losers {
    std::stop_source source;
    void operator()() { source.request_stop(); }
};

template <class Operation>
class race {
public:
    race(call& c, Operation& what)
        : c_(c), what_(what), most_(static_cast<unsigned>(c.plan().options.hedge.max_hedges) + 1),
          after_(c.plan().options.hedge.after), attempts_(most_), token_(losers_.get_token()) {
        what_.reserve(most_);
        for (unsigned i = 0; i < most_; ++i) attempts_[i].number = static_cast<int>(i) + 1;
    }

    task<void> run() {
        std::stop_callback<stop_losers> cancelled(c_.stop(), stop_losers{losers_});
        start_next();
        while (!over()) {
            const auto next_end = finish_.next_push();
            if (next_end) {
                const bool more = may_start_ && started_ < most_;
                const sleep_end woke = co_await sleep_until(c_.on(), more ? next_start_ : never, *next_end);
                if (woke == sleep_end::stopped) break; // the scope below still waits for every attempt
                if (woke == sleep_end::due) start_next();
            }
            settle_ended();
        }
        losers_.request_stop();
        may_start_ = false;
        co_await scope_.join();
        settle_ended();
        conclude();
    }

private:
    bool over() const noexcept { return decided() || (ended_ == started_ && (!may_start_ || started_ == most_)); }
    bool decided() const noexcept { return winner_ || terminal_; }

    void start_next() {
        if (!may_start_ || started_ == most_) return;
        call::hedged_attempt& h = attempts_[started_];
        if (started_ > 0 && !c_.may_hedge()) {
            may_start_ = false;
            return;
        }
        if (const auto refused = c_.before_hedge(h)) {
            if (started_ == 0) refusal_ = refused;
            may_start_ = false;
            return;
        }
        ++started_;
        next_start_ = saturating_add(h.started, after_);
        scope_.spawn(one_attempt(c_, what_, h, token_, finish_));
    }

    void settle_ended() {
        for (const completion& each : finish_.take()) {
            ++ended_;
            switch (c_.after_hedge(attempts_[each.slot], each.end, each.at, decided())) {
            case call::hedge_verdict::won: winner_ = each.slot; break;
            case call::hedge_verdict::terminal: terminal_ = each.slot; break;
            case call::hedge_verdict::failed: start_next(); break; // no use in waiting any longer
            case call::hedge_verdict::lost: may_start_ = false; break;
            }
        }
    }

    void conclude() {
        if (winner_) return c_.finish_hedged(*winner_, stop_reason::succeeded, std::nullopt);
        if (terminal_) return c_.finish_hedged(*terminal_, stop_reason::rule, std::nullopt);
        if (c_.stop().stop_requested()) return c_.finish_hedged_cancelled();
        if (refusal_ == errc::circuit_open) return c_.finish_hedged(0, stop_reason::circuit_open, refusal_);
        const stop_reason reason = c_.out_of_time() ? stop_reason::deadline : stop_reason::exhausted;
        if (attempts_[0].timed_out) refusal_ = errc::timed_out;
        c_.finish_hedged(0, reason, refusal_);
    }

    call& c_;
    Operation& what_;
    const unsigned most_;
    const duration after_;
    std::vector<call::hedged_attempt> attempts_;
    std::stop_source losers_;
    const std::stop_token token_;
    finish_line finish_;
    task_scope scope_;
    time_point next_start_{};
    unsigned started_ = 0;
    unsigned ended_ = 0;
    bool may_start_ = true;
    std::optional<unsigned> winner_;
    std::optional<unsigned> terminal_;
    std::optional<errc> refusal_;
};

template <class Operation>
task<void> run_race(call& c, Operation& what) {
    race<Operation> r(c, what);
    co_await r.run();
}

} // namespace

task<void> run_hedged(call& c, async_operation& what) {
    return run_race(c, what);
}
task<void> run_hedged(call& c, operation& what) {
    return run_race(c, what);
}

} // namespace holdfast
