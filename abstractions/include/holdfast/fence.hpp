// The other half of a lock: what it protects refuses a holder that was paused past its time and came back.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>

#include <holdfast/error.hpp>

namespace holdfast {

// Remembers the largest fencing token that it let through. Any thread. Where the resource is a row of a database, the
// same is `UPDATE … SET fence = $token … WHERE fence <= $token`, and no row means stale.
class fence {
public:
    explicit fence(std::uint64_t highest = 0) noexcept : highest_(highest) {}

    // False: a larger one was here before.
    bool admit(std::uint64_t token) noexcept {
        std::uint64_t seen = highest_.load(std::memory_order_relaxed);
        while (seen < token)
            if (highest_.compare_exchange_weak(seen, token, std::memory_order_acq_rel)) return true;
        return seen == token;
    }
    std::uint64_t highest() const noexcept { return highest_.load(std::memory_order_acquire); }

private:
    std::atomic<std::uint64_t> highest_;
};

// A resource of this process behind a fence: nobody touches it but with a token that is not stale, one at a time.
template <class Resource>
class guarded {
public:
    template <class... Arguments>
    explicit guarded(Arguments&&... arguments) : resource_(std::forward<Arguments>(arguments)...) {}
    guarded(const guarded&) = delete;
    guarded& operator=(const guarded&) = delete;

    // Runs use(resource), blocking others meanwhile; errc::stale_lease, without running it, for a token smaller than
    // one seen before. `holder` is a held_lock, a lock_lease, or anything else with a token().
    template <class Holder, class Function>
    result<std::invoke_result_t<Function&, Resource&>> with(const Holder& holder, Function use) {
        const std::lock_guard lock(mutex_);
        const std::uint64_t token = holder.token();
        if (!fence_.admit(token))
            return fail(errc::stale_lease, "fencing token " + std::to_string(token) +
                                               " is stale: " + std::to_string(fence_.highest()) + " was here before");
        if constexpr (std::is_void_v<std::invoke_result_t<Function&, Resource&>>) {
            use(resource_);
            return {};
        } else {
            return use(resource_);
        }
    }

private:
    std::mutex mutex_;
    fence fence_;
    Resource resource_;
};

} // namespace holdfast
