// What the loops of workers and relays have in common: how they take failures of what they depend on.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <holdfast/backoff.hpp>
#include <holdfast/error.hpp>
#include <holdfast/logger.hpp>
#include <holdfast/runtime.hpp>
#include <holdfast/task_scope.hpp>

namespace holdfast {

// Trying the same call again may help.
constexpr bool is_passing(errc code) noexcept {
    switch (code) {
    case errc::unavailable:
    case errc::unknown_outcome:
    case errc::overloaded:
    case errc::timed_out:
    case errc::rate_limited:
    case errc::concurrency_limited:
    case errc::circuit_open:
    case errc::cancelled:
    case errc::stopped: return true;
    default: return false;
    }
}

// The wait before the n-th try again of a loop; not for long once it is stopping.
inline duration loop_back_off(int n, random_series& random, bool stopping) {
    constexpr duration first = std::chrono::milliseconds{100};
    constexpr duration longest = std::chrono::seconds{5};
    constexpr duration longest_when_stopping = std::chrono::milliseconds{200};
    const duration wait = with_jitter(backoff_delay(backoff::exponential, first, longest, n), random);
    return stopping ? std::min(wait, longest_when_stopping) : wait;
}

// How much may be held beyond what has a slot: what the slots get through in about a tenth of a second, so that slow work
// is left for others. `average_run` in seconds; below 0: nothing has run yet.
inline int ahead_of_slots(double average_run, int slots, int most) noexcept {
    constexpr double soon = 0.1;
    if (average_run < 0) return 0;
    return static_cast<int>(std::min(static_cast<double>(most), soon * slots / std::max(average_run, 1e-9)));
}
// The moving average with one more run.
inline double with_run(double average_run, duration took) noexcept {
    const double seconds = std::max(0.0, std::chrono::duration<double>(took).count());
    return average_run < 0 ? seconds : average_run + (seconds - average_run) / 16;
}

// Whose loops run in scopes of its own, and keep it alive: until the last of them has ended somebody else must. For those
// that go away without a stop; join() is awaited here.
template <class Owner, class... Scopes>
detail::detached outlive([[maybe_unused]] std::shared_ptr<Owner> owner, Scopes&... scopes) {
    try {
        (co_await scopes.join(), ...);
    } catch (...) { // nobody is there to be told
    }
}

// The outages of one thing that several loops depend on: told once, and once when nothing fails any more. Any thread.
class outage_log {
public:
    // "worker a" cannot claim jobs; "worker a": "the store" is back.
    outage_log(logger& log, const runtime& on, std::string what) : log_(log), on_(on), what_(std::move(what)) {}

    // `duty` lives as long as the program: "claim jobs".
    void failed(std::string_view who, std::string_view duty, const error& e) {
        {
            const std::lock_guard lock(mutex_);
            failing_.insert(duty);
            if (since_) return;
            since_ = on_.now();
            out_ = true;
        }
        log_.warning(std::string(who) + " cannot " + std::string(duty) +
                     " and keeps trying: " + std::string(to_text(e.code)) + ": " + e.message);
    }
    void answered(std::string_view who, std::string_view duty) {
        if (!out_) return;
        std::optional<time_point> since;
        {
            const std::lock_guard lock(mutex_);
            failing_.erase(duty);
            if (!since_ || !failing_.empty()) return;
            since = std::exchange(since_, std::nullopt);
            out_ = false;
        }
        log_.info(std::string(who) + ": " + what_ + " is back after " + to_short_text(on_.now() - *since));
    }
    bool is_out() const noexcept { return out_; }

private:
    logger& log_;
    const runtime& on_;
    const std::string what_;
    std::mutex mutex_;
    std::set<std::string_view> failing_;
    std::optional<time_point> since_;
    std::atomic<bool> out_ = false;
};

std::uint64_t seed_or_random(std::uint64_t seed);
// host:pid:random
std::string default_worker_name(random_series& random);

} // namespace holdfast
