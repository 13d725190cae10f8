// expect: breaker takes consecutive_failures or failure_ratio, not both
#include <holdfast/policy.hpp>

using namespace holdfast;
using namespace std::chrono_literals;

constexpr policy bad({.name = "p", .breaker = {.consecutive_failures = 5, .failure_ratio = 0.5}});
