// Locks with a time limit and a fencing token. A lock alone cannot stop a holder that was paused past its time: pass
// the token on to whatever the lock protects, and let that refuse smaller ones.
#pragma once

#include <optional>
#include <string>

#include <holdfast/duration.hpp>
#include <holdfast/error.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/task.hpp>

namespace holdfast {

struct of_lock;
using lock_lease = lease<of_lock>;

inline constexpr duration default_lock_ttl = std::chrono::minutes{5};

// Any thread.
class lock_store {
public:
    // Never waits: nothing when somebody else holds it. The token is larger than any before for this resource.
    virtual task<result<std::optional<lock_lease>>> try_acquire(std::string resource,
                                                                duration ttl = default_lock_ttl) = 0;
    // Holds on for ttl from now. errc::stale_lease when it was lost, whether or not somebody has it now.
    virtual task<result<void>> renew(const lock_lease& held, duration ttl) = 0;
    // Not an error when it was lost already.
    virtual task<result<void>> release(const lock_lease& held) = 0;

protected:
    ~lock_store() = default;
};

} // namespace holdfast
