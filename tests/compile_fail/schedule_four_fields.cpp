// expect: a cron expression has five fields
#include <holdfast/schedule.hpp>

using namespace holdfast;
using namespace std::chrono_literals;

constexpr schedule bad({.name = "bad", .cron = "0 3 * *"});
