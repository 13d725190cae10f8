// expect: rate\.burst needs rate\.permits
#include <holdfast/policy.hpp>

using namespace holdfast;
using namespace std::chrono_literals;

constexpr policy bad({.name = "p", .rate = {.burst = 5}});
