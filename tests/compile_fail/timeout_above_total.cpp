// expect: timeout \(of one attempt\) is longer than total_timeout
#include <holdfast/policy.hpp>

using namespace holdfast;
using namespace std::chrono_literals;

constexpr policy bad({.name = "p", .timeout = 10s, .total_timeout = 5s});
