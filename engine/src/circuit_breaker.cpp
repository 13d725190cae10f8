#include "circuit_breaker.hpp"

#include <algorithm>
#include <chrono>

namespace holdfast {

breaker_settings breaker_settings::from(const breaker_options& o) {
    breaker_settings s;
    s.consecutive_failures = o.consecutive_failures.value_or(0);
    s.failure_ratio = o.failure_ratio.value_or(0);
    s.window = o.window.value_or(std::chrono::seconds{30});
    s.min_throughput = o.min_throughput.value_or(10);
    s.break_for = o.break_for.value_or(std::chrono::seconds{5});
    s.max_break_for = o.max_break_for.value_or(s.break_for);
    s.probes = o.probes.value_or(1);
    s.probe_timeout = o.probe_timeout.value_or(std::chrono::seconds{30});
    return s;
}

namespace {

constexpr std::uint64_t count_bits = 18;
constexpr std::uint64_t count_mask = (1u << count_bits) - 1;
constexpr std::uint64_t tag_mask = (1u << 28) - 1;

constexpr std::uint64_t pack_bucket(std::uint64_t tag, std::uint64_t total, std::uint64_t failures) {
    return (tag << (2 * count_bits)) | (total << count_bits) | failures;
}
constexpr std::uint64_t tag_of(std::uint64_t bucket) {
    return bucket >> (2 * count_bits);
}

} // namespace

void failure_window::record(bool failed, time_point now, duration window) noexcept {
    const std::int64_t number = now.time_since_epoch().count() / (window.count() / bucket_count);
    // Tag 0 marks an empty bucket, so numbers start at 1.
    const std::uint64_t tag = static_cast<std::uint64_t>(number + 1) & tag_mask;
    auto& bucket = buckets_[static_cast<std::size_t>(number % bucket_count)];
    std::uint64_t found = bucket.load(std::memory_order_relaxed);
    for (;;) {
        std::uint64_t total = 0;
        std::uint64_t failures = 0;
        if (tag_of(found) == tag) {
            total = (found >> count_bits) & count_mask;
            failures = found & count_mask;
            if (total == count_mask) { // full: halve both, the ratio stays
                total /= 2;
                failures /= 2;
            }
        }
        const std::uint64_t next = pack_bucket(tag, total + 1, failures + (failed ? 1 : 0));
        if (bucket.compare_exchange_weak(found, next, std::memory_order_relaxed)) return;
    }
}

failure_window::counts failure_window::sum(time_point now, duration window) const noexcept {
    const std::int64_t number = now.time_since_epoch().count() / (window.count() / bucket_count);
    counts all;
    for (std::int64_t back = 0; back < bucket_count && back <= number; ++back) {
        const std::uint64_t bucket =
            buckets_[static_cast<std::size_t>((number - back) % bucket_count)].load(std::memory_order_relaxed);
        if (tag_of(bucket) != (static_cast<std::uint64_t>(number - back + 1) & tag_mask)) continue;
        all.total += (bucket >> count_bits) & count_mask;
        all.failures += bucket & count_mask;
    }
    return all;
}

void failure_window::clear() noexcept {
    for (auto& bucket : buckets_) bucket.store(0, std::memory_order_relaxed);
}

circuit_state circuit_breaker::state(time_point now) const noexcept {
    const circuit_state s = state_of(word_.load(std::memory_order_acquire));
    const bool break_over = now.time_since_epoch().count() >= open_until_.load(std::memory_order_acquire);
    return s == circuit_state::open && break_over ? circuit_state::half_open : s;
}

bool circuit_breaker::enter_slowly(const breaker_settings& s, time_point now, permit& given, duration& retry_after) {
    if (refuses(now, retry_after)) return false;
    const std::int64_t t = now.time_since_epoch().count();
    bool entered = false;
    {
        const std::lock_guard lock(mutex_);
        circuit_state found = state_of(word_.load(std::memory_order_relaxed));
        if (found == circuit_state::open && t >= open_until_.load(std::memory_order_relaxed)) {
            probes_.clear();
            probe_successes_ = 0;
            move_to(circuit_state::half_open, now);
            found = circuit_state::half_open;
        }
        const std::uint32_t generation = generation_of(word_.load(std::memory_order_relaxed));
        switch (found) {
        case circuit_state::closed: // closed meanwhile
            given = {generation, 0};
            entered = true;
            break;
        case circuit_state::open: retry_after = duration{open_until_.load(std::memory_order_relaxed) - t}; break;
        case circuit_state::isolated: retry_after = forever; break;
        case circuit_state::half_open:
            forget_expired_probes(now);
            // With none under way one may always go, for the settings may ask for fewer by now than have succeeded.
            if (probes_.empty() || static_cast<int>(probes_.size()) + probe_successes_ < s.probes) {
                given = {generation, next_probe_};
                probes_.push_back({next_probe_, saturating_add(now, s.probe_timeout)});
                if (++next_probe_ == 0) next_probe_ = 1;
                entered = true;
            } else {
                const auto first = std::ranges::min_element(probes_, {}, &running_probe::expires);
                retry_after = first == probes_.end() ? s.break_for : first->expires - now;
            }
            break;
        }
    }
    notify();
    return entered;
}

void circuit_breaker::record_slowly(const breaker_settings& s, time_point now, permit p, verdict v) {
    if (p.probe != 0) record_probe(s, now, p, v);
    else record_closed(s, now, p, v == verdict::failure);
    notify();
}

void circuit_breaker::record_closed(const breaker_settings& s, time_point now, permit p, bool failed) {
    std::uint64_t word = word_.load(std::memory_order_acquire);
    if (state_of(word) != circuit_state::closed || generation_of(word) != p.generation) return; // of an older time
    if (s.consecutive_failures == 0) {
        window_.record(failed, now, s.window);
        if (!failed) return;
        const auto seen = window_.sum(now, s.window);
        const bool enough = seen.total >= static_cast<std::uint64_t>(s.min_throughput);
        if (!enough || static_cast<double>(seen.failures) < s.failure_ratio * static_cast<double>(seen.total)) return;
    } else {
        std::uint32_t failures = 0;
        do {
            if (state_of(word) != circuit_state::closed || generation_of(word) != p.generation) return;
            failures = std::min(failures_of(word) + 1, 0x3fff'fffeU);
        } while (!word_.compare_exchange_weak(word, pack(circuit_state::closed, failures, p.generation),
                                              std::memory_order_acq_rel));
        if (failures < static_cast<std::uint32_t>(s.consecutive_failures)) return;
    }
    const std::lock_guard lock(mutex_);
    word = word_.load(std::memory_order_relaxed);
    if (state_of(word) != circuit_state::closed || generation_of(word) != p.generation) return; // another was quicker
    open(s, now);
}

void circuit_breaker::record_probe(const breaker_settings& s, time_point now, permit p, verdict v) {
    const std::lock_guard lock(mutex_);
    const std::uint64_t word = word_.load(std::memory_order_relaxed);
    if (state_of(word) != circuit_state::half_open || generation_of(word) != p.generation) return;
    const auto mine = std::ranges::find(probes_, p.probe, &running_probe::id);
    if (mine == probes_.end()) return; // it took too long and lost its permit
    probes_.erase(mine);
    switch (v) {
    case verdict::ignored: break;
    case verdict::failure: open(s, now); break;
    case verdict::success:
        if (++probe_successes_ < s.probes) break;
        breaks_in_a_row_ = 0;
        window_.clear();
        move_to(circuit_state::closed, now);
        break;
    }
}

void circuit_breaker::reset_failures(permit p) noexcept {
    std::uint64_t word = word_.load(std::memory_order_relaxed);
    while (state_of(word) == circuit_state::closed && generation_of(word) == p.generation && failures_of(word) != 0)
        if (word_.compare_exchange_weak(word, pack(circuit_state::closed, 0, p.generation), std::memory_order_acq_rel))
            return;
}

void circuit_breaker::isolate(time_point now) {
    {
        const std::lock_guard lock(mutex_);
        if (state_of(word_.load(std::memory_order_relaxed)) == circuit_state::isolated) return;
        move_to(circuit_state::isolated, now);
    }
    notify();
}

void circuit_breaker::close(time_point now) {
    {
        const std::lock_guard lock(mutex_);
        if (state_of(word_.load(std::memory_order_relaxed)) == circuit_state::closed) return;
        breaks_in_a_row_ = 0;
        window_.clear();
        move_to(circuit_state::closed, now);
    }
    notify();
}

void circuit_breaker::open(const breaker_settings& s, time_point now) {
    duration break_for = s.break_for;
    for (int i = 0; i < breaks_in_a_row_ && break_for < s.max_break_for; ++i)
        break_for = break_for > s.max_break_for / 2 ? s.max_break_for : break_for * 2;
    ++breaks_in_a_row_;
    window_.clear();
    open_until_.store(saturating_add(now, break_for).time_since_epoch().count(), std::memory_order_release);
    move_to(circuit_state::open, now, break_for);
}

void circuit_breaker::move_to(circuit_state to, time_point now, duration break_for) {
    const std::uint32_t generation = generation_of(word_.load(std::memory_order_relaxed)) + 1;
    word_.store(pack(to, 0, generation), std::memory_order_release);
    untold_.push_back({to, now, break_for});
    has_untold_.store(true, std::memory_order_release);
}

void circuit_breaker::forget_expired_probes(time_point now) {
    std::erase_if(probes_, [&](const running_probe& each) { return each.expires <= now; });
}

// Whoever finds nobody telling tells everything, also what is added meanwhile: so the order is kept, and an observer
// that calls back does not wait for itself.
void circuit_breaker::notify() {
    if (!has_untold_.load(std::memory_order_acquire)) [[likely]]
        return;
    std::unique_lock lock(mutex_);
    if (telling_) return;
    telling_ = true;
    while (!untold_.empty()) {
        const transition next = untold_.front();
        untold_.pop_front();
        lock.unlock();
        if (observer_) observer_(next);
        lock.lock();
    }
    telling_ = false;
    has_untold_.store(false, std::memory_order_relaxed);
}

} // namespace holdfast
