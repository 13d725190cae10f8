// expect: concurrency\.queue needs a concurrency\.limit
#include <holdfast/policy.hpp>

using namespace holdfast;
using namespace std::chrono_literals;

constexpr policy bad({.name = "p", .concurrency = {.queue = 5}});
