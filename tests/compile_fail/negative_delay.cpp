// expect: retry\.delay must not be negative
#include <holdfast/policy.hpp>

using namespace holdfast;
using namespace std::chrono_literals;

constexpr policy bad({.name = "p", .retry = {.delay = -1s}});
