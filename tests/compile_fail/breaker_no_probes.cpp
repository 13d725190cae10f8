// expect: breaker\.probes must be 1 to 1000
#include <holdfast/policy.hpp>

using namespace holdfast;
using namespace std::chrono_literals;

constexpr policy bad({.name = "p", .breaker = {.consecutive_failures = 5, .probes = 0}});
