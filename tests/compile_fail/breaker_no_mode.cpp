// expect: breaker needs consecutive_failures or failure_ratio
#include <holdfast/policy.hpp>

using namespace holdfast;
using namespace std::chrono_literals;

constexpr policy bad({.name = "p", .breaker = {.break_for = 5s}});
