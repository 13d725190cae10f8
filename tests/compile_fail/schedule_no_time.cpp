// expect: a schedule says when
#include <holdfast/schedule.hpp>

using namespace holdfast;
using namespace std::chrono_literals;

constexpr schedule bad({.name = "bad"});
