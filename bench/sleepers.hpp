// Many sleeping retries at once: what each costs in memory, and how quickly all of them are called off.
#pragma once

#include <holdfast/policies.hpp>
#include <holdfast/runtime.hpp>

namespace bench {

struct sleeper_figures {
    int sleepers = 0;
    double bytes_per_sleeper = 0;
    double cancel_all_ms = 0;
};
// The policy `patient` of subjects.hpp must be known.
sleeper_figures measure_sleepers(holdfast::policies& policies, int count);

struct timer_figures {
    int timers = 0;
    double all_expired_ms = 0; // from the first arm to the last expiry; they are due within the first 50 ms
    int early = 0;
    int missing = 0;
};
timer_figures measure_timers(holdfast::runtime& on, int count);

} // namespace bench
