// expect: a policy name is made of letters, digits, '-', '_' and '\.'
#include <holdfast/policy.hpp>

using namespace holdfast;
using namespace std::chrono_literals;

constexpr policy bad({.name = "two words"});
