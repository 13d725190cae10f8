// expect: retry\.max_attempts must be 0 or more
#include <holdfast/policy.hpp>

using namespace holdfast;
using namespace std::chrono_literals;

constexpr policy bad({.name = "p", .retry = {.max_attempts = -2}});
