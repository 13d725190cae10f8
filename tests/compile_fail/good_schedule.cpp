// compiles
#include <holdfast/schedule.hpp>

#include "job_support.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

constexpr schedule full({
    .name = "good.full",
    .cron = "*/10 0 9-17/2 * JAN,JUN-AUG MON-FRI",
    .at_start = true,
    .time_zone = "Europe/Berlin",
    .overlap = overlap::queue,
    .misfire = misfire::catch_up,
    .max_catch_up = 1000,
    .misfire_after = 1h,
    .per_node = true,
});
constexpr schedule words({.name = "good.words", .cron = "@daily"});
constexpr schedule last_day({.name = "good.last", .cron = "0 0 L * ?"});
constexpr schedule rate({.name = "good.rate", .every = 1s, .overlap = overlap::concurrent});
constexpr schedule delay({.name = "good.delay", .after_each = 5min, .at_start = true});
constexpr schedule start({.name = "good.start", .at_start = true});

struct tidy_up : coded {
    static constexpr job_options options{.name = "good.tidy_up"};
    std::string unique_key() const { return "one"; }
};
const recurring_job made = recurring(full, tidy_up{});
