// expect: misfire::catch_up needs overlap::queue or overlap::concurrent
#include <holdfast/schedule.hpp>

using namespace holdfast;
using namespace std::chrono_literals;

constexpr schedule bad({.name = "bad", .every = 5min, .misfire = misfire::catch_up});
