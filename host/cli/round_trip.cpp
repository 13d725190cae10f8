#include "round_trip.hpp"

#include <condition_variable>
#include <memory>
#include <mutex>

namespace holdfast::cli {

namespace {

using clock = std::chrono::steady_clock;

struct probe : timer {
    std::mutex mutex;
    std::condition_variable changed;
    std::optional<clock::time_point> ran;

    probe() { run = &ran_now; }
    static void ran_now(work& w, wake) noexcept {
        auto& self = static_cast<probe&>(static_cast<timer&>(w));
        const std::lock_guard lock(self.mutex);
        self.ran = clock::now();
        self.changed.notify_all();
    }
};

template <class Give>
std::optional<duration> round_trip(Give give) {
    auto sent = std::make_unique<probe>();
    const auto begin = clock::now();
    if (!give(*sent)) return std::nullopt;
    std::unique_lock lock(sent->mutex);
    if (sent->changed.wait_for(lock, round_trip_limit, [&] { return sent->ran.has_value(); }))
        return *sent->ran - begin;
    lock.unlock();
    static_cast<void>(sent.release()); // the runtime still has it
    return std::nullopt;
}

} // namespace

std::optional<duration> post_round_trip(runtime& on) {
    return round_trip([&](probe& p) { return on.post(p); });
}

std::optional<duration> blocking_round_trip(runtime& on) {
    return round_trip([&](probe& p) { return on.post_blocking(p); });
}

std::optional<duration> timer_round_trip(runtime& on, duration after) {
    return round_trip([&](probe& p) { return on.arm(p, on.now() + after); });
}

} // namespace holdfast::cli
