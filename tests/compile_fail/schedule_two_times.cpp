// expect: not several
#include <holdfast/schedule.hpp>

using namespace holdfast;
using namespace std::chrono_literals;

constexpr schedule bad({.name = "bad", .every = 5min, .after_each = 5min});
