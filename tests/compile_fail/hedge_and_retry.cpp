// expect: a policy retries or hedges, not both
#include <holdfast/policy.hpp>

using namespace holdfast;
using namespace std::chrono_literals;

constexpr policy bad({.name = "p", .retry = {.max_attempts = 1}, .hedge = {.max_hedges = 1}});
