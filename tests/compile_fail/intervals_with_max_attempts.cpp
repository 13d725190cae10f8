// expect: retry\.intervals already says how often and how long
#include <holdfast/policy.hpp>

using namespace holdfast;
using namespace std::chrono_literals;

constexpr policy bad({.name = "p", .retry = {.max_attempts = 2, .intervals = {1s, 5s}}});
