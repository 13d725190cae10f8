// expect: retry\.max_delay is shorter than retry\.delay
#include <holdfast/policy.hpp>

using namespace holdfast;
using namespace std::chrono_literals;

constexpr policy bad({.name = "p", .retry = {.max_delay = 100ms}});
