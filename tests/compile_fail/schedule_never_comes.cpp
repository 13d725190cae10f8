// expect: no month that the cron expression names has that day
#include <holdfast/schedule.hpp>

using namespace holdfast;
using namespace std::chrono_literals;

constexpr schedule bad({.name = "bad", .cron = "0 3 30 2 *"});
