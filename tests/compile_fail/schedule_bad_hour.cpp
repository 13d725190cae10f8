// expect: a cron hour is 0 to 23
#include <holdfast/schedule.hpp>

using namespace holdfast;
using namespace std::chrono_literals;

constexpr schedule bad({.name = "bad", .cron = "0 24 * * *"});
