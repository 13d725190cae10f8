// A lease is the right to write to one thing in a store, for a while. Stores make them; every owner-only write takes
// one, and the store refuses it (errc::stale_lease) once somebody else holds a newer one.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include <holdfast/duration.hpp>

namespace holdfast {

// A time on the store's clock. Workers never compare their own clock with it.
using store_time = std::chrono::sys_time<std::chrono::microseconds>;

// When something is to happen, in terms the store's clock can judge.
struct due {
    enum class kind : unsigned char { now, after, at } how = kind::now;
    duration delay{};
    store_time time{};

    static due now() noexcept { return {}; }
    static due after(duration d) noexcept { return {kind::after, d, {}}; }
    static due at(store_time t) noexcept { return {kind::at, {}, t}; }

    // For stores: the time it stands for when the store's clock says `present`.
    store_time on(store_time present) const noexcept {
        switch (how) {
        case kind::now: break;
        case kind::after: return present + std::chrono::duration_cast<std::chrono::microseconds>(delay);
        case kind::at: return time;
        }
        return present;
    }
};

// Move-only. Of says what it leases, so that one kind is not taken for another.
template <class Of>
class lease {
public:
    lease(std::string subject, std::uint64_t token) : subject_(std::move(subject)), token_(token) {}
    lease(lease&&) noexcept = default;
    lease& operator=(lease&&) noexcept = default;

    const std::string& subject() const noexcept { return subject_; }
    // Grows with every new holder of the same subject, for ever.
    std::uint64_t token() const noexcept { return token_; }

private:
    std::string subject_;
    std::uint64_t token_;
};

} // namespace holdfast
