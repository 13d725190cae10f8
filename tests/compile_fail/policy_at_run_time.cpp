// expect: (call to consteval function|not a constant expression)
// A policy's name lives as long as the program: only a constant makes one. At run time it is policy_options.
#include <holdfast/policy.hpp>

using namespace holdfast;
using namespace std::chrono_literals;

policy make(const char* name) {
    return policy({.name = name});
}
