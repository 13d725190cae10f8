// The breaker's state, apart from clocks and pipelines: the caller brings the time, the settings and the listener.
// Closed costs one atomic load to enter and, with nothing to reset, one to leave; no lock.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include <holdfast/duration.hpp>
#include <holdfast/pipeline.hpp>
#include <holdfast/policy.hpp>

namespace holdfast {

// breaker_options with every default filled in.
struct breaker_settings {
    int consecutive_failures = 0; // 0: by ratio
    double failure_ratio = 0;
    duration window{};
    int min_throughput = 0;
    duration break_for{};
    duration max_break_for{};
    int probes = 1;
    duration probe_timeout{};

    static breaker_settings from(const breaker_options& o);
};

// Counts over a sliding window of ten buckets. Any thread, no lock.
class failure_window {
public:
    struct counts {
        std::uint64_t total = 0;
        std::uint64_t failures = 0;
    };
    void record(bool failed, time_point now, duration window) noexcept;
    counts sum(time_point now, duration window) const noexcept;
    void clear() noexcept;

private:
    static constexpr std::int64_t bucket_count = 10;
    // Each bucket: 28 bits of its number, 18 bits total, 18 bits failures.
    std::array<std::atomic<std::uint64_t>, bucket_count> buckets_{};
};

class circuit_breaker {
public:
    enum class verdict : unsigned char { success, failure, ignored };

    // The right to make one call. Give it back through record(), once.
    struct permit {
        std::uint32_t generation = 0;
        std::uint32_t probe = 0; // 0: an ordinary call
    };
    struct transition {
        circuit_state to;
        time_point at;
        duration break_for{};
    };
    // Called with no lock held, in order, each transition once; may call back into the breaker.
    using observer = std::function<void(const transition&)>;

    explicit circuit_breaker(observer on_transition) : observer_(std::move(on_transition)) {}

    // True: `given` holds a permit. False: refused, and `retry_after` says when the next call has a chance.
    // Now is called only when the circuit is not closed.
    template <class Now>
    bool enter(const breaker_settings& s, Now&& now, permit& given, duration& retry_after) {
        const std::uint64_t word = word_.load(std::memory_order_acquire);
        if (state_of(word) == circuit_state::closed) [[likely]] {
            given = {generation_of(word), 0};
            return true;
        }
        return enter_slowly(s, now(), given, retry_after);
    }

    // Now is called only when the time matters: in ratio mode, and for failures.
    template <class Now>
    void record(const breaker_settings& s, Now&& now, permit p, verdict v) {
        if (p.probe == 0 && v == verdict::ignored) return;
        if (p.probe == 0 && v == verdict::success && s.consecutive_failures > 0) [[likely]] {
            const std::uint64_t word = word_.load(std::memory_order_relaxed);
            if (failures_of(word) == 0) return; // nothing to reset
            reset_failures(p);
            return;
        }
        record_slowly(s, now(), p, v);
    }

    bool closed() const noexcept { return state_of(word_.load(std::memory_order_acquire)) == circuit_state::closed; }
    // True: a call at `now` would be refused, until `retry_after`. False: it may or may not. No lock.
    bool refuses(time_point now, duration& retry_after) const noexcept {
        if (state_of(word_.load(std::memory_order_acquire)) != circuit_state::open) return false;
        const std::int64_t left = open_until_.load(std::memory_order_acquire) - now.time_since_epoch().count();
        retry_after = duration{left};
        return left > 0;
    }
    // What a call would find at `now`.
    circuit_state state(time_point now) const noexcept;

    void isolate(time_point now);
    void close(time_point now);

private:
    struct running_probe {
        std::uint32_t id;
        time_point expires;
    };

    // 2 bits state, 30 bits failures in a row, 32 bits generation.
    static circuit_state state_of(std::uint64_t word) noexcept { return static_cast<circuit_state>(word >> 62); }
    static std::uint32_t failures_of(std::uint64_t word) noexcept { return (word >> 32) & 0x3fff'ffff; }
    static std::uint32_t generation_of(std::uint64_t word) noexcept { return static_cast<std::uint32_t>(word); }
    static std::uint64_t pack(circuit_state s, std::uint32_t failures, std::uint32_t generation) noexcept {
        return (static_cast<std::uint64_t>(s) << 62) | (static_cast<std::uint64_t>(failures & 0x3fff'ffff) << 32) |
               generation;
    }

    bool enter_slowly(const breaker_settings& s, time_point now, permit& given, duration& retry_after);
    void record_slowly(const breaker_settings& s, time_point now, permit p, verdict v);
    void record_closed(const breaker_settings& s, time_point now, permit p, bool failed);
    void record_probe(const breaker_settings& s, time_point now, permit p, verdict v);
    void reset_failures(permit p) noexcept;

    void notify();

    // With the lock held.
    void move_to(circuit_state to, time_point now, duration break_for = {});
    void open(const breaker_settings& s, time_point now);
    void forget_expired_probes(time_point now);

    std::atomic<std::uint64_t> word_ = 0;
    std::atomic<std::int64_t> open_until_ = 0;
    failure_window window_;

    std::mutex mutex_;
    std::vector<running_probe> probes_;
    int probe_successes_ = 0;
    std::uint32_t next_probe_ = 1;
    int breaks_in_a_row_ = 0;
    std::deque<transition> untold_;
    std::atomic<bool> has_untold_ = false;
    bool telling_ = false;
    observer observer_;
};

} // namespace holdfast
