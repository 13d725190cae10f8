// Awaiting time and threads: sleep_until, sleep_for, resume_on, run_blocking.
#pragma once

#include <atomic>
#include <coroutine>
#include <optional>
#include <stop_token>
#include <type_traits>
#include <utility>

#include <holdfast/error.hpp>
#include <holdfast/runtime.hpp>
#include <holdfast/sync_wait.hpp>
#include <holdfast/task.hpp>

namespace holdfast {

enum class sleep_end : unsigned char {
    due,       // the time came
    cancelled, // the stop token fired first
    stopped,   // the runtime is stopping
};

namespace detail {

class sleeper : timer {
public:
    // `stops_here`, if given: whether the one who stops it resumes it, there and then; else it is posted.
    sleeper(runtime& on, time_point due, std::stop_token stop, const bool* stops_here = nullptr) noexcept
        : on_(on), due_(due), stop_(std::move(stop)), stops_here_(stops_here) {
        run = &woke;
        posted_.run = &posted;
        posted_.self = this;
    }
    sleeper(const sleeper&) = delete;
    sleeper& operator=(const sleeper&) = delete;

    bool await_ready() noexcept {
        if (!stop_.stop_requested()) return false;
        end_ = sleep_end::cancelled;
        return true;
    }
    // The timer, the stop callback and this function each may be last; whoever is resumes the coroutine, so nobody
    // resumes it while the callback is still being put in place.
    bool await_suspend(std::coroutine_handle<> awaiting) noexcept {
        awaiting_ = awaiting;
        if (!on_.arm(*this, due_)) {
            end_ = sleep_end::stopped;
            return false;
        }
        if (stop_.stop_possible()) on_stop_.emplace(stop_, cancel_sleep{this});
        return !arrive();
    }
    sleep_end await_resume() noexcept {
        on_stop_.reset();
        return end_;
    }

private:
    struct cancel_sleep {
        sleeper* self;
        void operator()() const noexcept { self->cancelled(); }
    };
    struct repost : work {
        sleeper* self = nullptr;
    };

    bool arrive() noexcept { return parties_.fetch_sub(1, std::memory_order_acq_rel) == 1; }

    void cancelled() noexcept {
        if (!on_.cancel(*this)) return; // the timer got there first
        end_ = sleep_end::cancelled;
        const bool here = stops_here_ != nullptr && *stops_here_;
        if (here || !on_.post(posted_)) finish(); // a stopped runtime cannot take us; go on right here
    }
    void finish() noexcept {
        if (arrive()) awaiting_.resume();
    }
    static void woke(work& w, wake why) noexcept {
        auto& self = static_cast<sleeper&>(static_cast<timer&>(w));
        self.end_ = why == wake::stopped ? sleep_end::stopped : sleep_end::due;
        self.finish();
    }
    static void posted(work& w, wake) noexcept { static_cast<repost&>(w).self->finish(); }

    runtime& on_;
    time_point due_;
    std::stop_token stop_;
    const bool* stops_here_;
    std::coroutine_handle<> awaiting_;
    std::atomic<int> parties_ = 2;
    sleep_end end_ = sleep_end::due;
    repost posted_;
    std::optional<std::stop_callback<cancel_sleep>> on_stop_;
};

// Goes on as work that was posted there: to a runtime, to a blocking_pool. Gives false, on the same thread, when it is not
// taken.
template <class Place>
class resume_elsewhere : work {
public:
    using poster = bool (Place::*)(work&) noexcept;
    resume_elsewhere(Place& on, poster how) noexcept : on_(on), how_(how) { run = &resume; }

    bool await_ready() const noexcept { return false; }
    bool await_suspend(std::coroutine_handle<> awaiting) noexcept {
        awaiting_ = awaiting;
        taken_ = true; // before the post: the other thread may resume, and destroy this, during it
        if ((on_.*how_)(*this)) return true;
        taken_ = false;
        return false;
    }
    bool await_resume() const noexcept { return taken_; }

private:
    static void resume(work& w, wake) noexcept { static_cast<resume_elsewhere&>(w).awaiting_.resume(); }

    Place& on_;
    poster how_;
    std::coroutine_handle<> awaiting_;
    bool taken_ = false;
};

} // namespace detail

// Sleeps until `due` on the runtime's clock, without holding a thread. Resumes on a runtime thread.
inline detail::sleeper sleep_until(runtime& on, time_point due, std::stop_token stop = {}) noexcept {
    return {on, due, std::move(stop)};
}
inline detail::sleeper sleep_for(runtime& on, duration d, std::stop_token stop = {}) noexcept {
    return {on, d <= duration::zero() ? on.now() : saturating_add(on.now(), d), std::move(stop)};
}

// Goes on as posted work on a runtime thread. Gives false, on the same thread, when the runtime has stopped.
inline detail::resume_elsewhere<runtime> resume_on(runtime& on) noexcept {
    return {on, &runtime::post};
}

namespace detail {

// Runs the function over there and comes back to a runtime thread with its value.
template <class Place, class Function>
task<std::invoke_result_t<Function&>> run_blocking_at(Place& there, typename resume_elsewhere<Place>::poster how,
                                                      runtime& on, Function function) {
    using value = std::invoke_result_t<Function&>;
    resume_elsewhere<Place> to_pool(there, how);
    if (!co_await to_pool)
        throw failed({on.stopped() ? errc::stopped : errc::overloaded,
                      on.stopped() ? "the runtime has stopped" : "the blocking pool's queue is full", std::nullopt});
    std::exception_ptr thrown;
    if constexpr (std::is_void_v<value>) {
        try {
            function();
        } catch (...) {
            thrown = std::current_exception();
        }
        co_await resume_on(on);
        if (thrown) std::rethrow_exception(std::move(thrown));
    } else {
        std::optional<value> result;
        try {
            result.emplace(function());
        } catch (...) {
            thrown = std::current_exception();
        }
        co_await resume_on(on);
        if (thrown) std::rethrow_exception(std::move(thrown));
        co_return std::move(*result);
    }
}

} // namespace detail

// Runs a blocking function on the runtime's bounded pool and comes back to a runtime thread with its value. Throws
// failed(errc::overloaded) when the pool's queue is full, failed(errc::stopped) when the runtime has stopped. The pool is for
// handlers, who may have all of it for long: what they depend on, such as a store, has a blocking_pool of its own.
template <class Function>
task<std::invoke_result_t<Function&>> run_blocking(runtime& on, Function function) {
    return detail::run_blocking_at(on, &runtime::post_blocking, on, std::move(function));
}

// The same for code that is not a coroutine: blocks the calling thread.
inline sleep_end block_until(runtime& on, time_point due, std::stop_token stop = {}) {
    auto sleeping = [](runtime& r, time_point t, std::stop_token s) -> task<sleep_end> {
        co_return co_await sleep_until(r, t, std::move(s));
    };
    return sync_wait(on, sleeping(on, due, std::move(stop)));
}
inline sleep_end block_for(runtime& on, duration d, std::stop_token stop = {}) {
    return block_until(on, d <= duration::zero() ? on.now() : saturating_add(on.now(), d), std::move(stop));
}

} // namespace holdfast
