// expect: rules holds at most 8 rules
#include <holdfast/policy.hpp>

using namespace holdfast;
using namespace std::chrono_literals;

constexpr policy bad({.name = "p",
                      .rules = {stop_on(errc::cancelled), stop_on(errc::timed_out), stop_on(errc::circuit_open),
                                stop_on(errc::rate_limited), stop_on(errc::concurrency_limited), stop_on(errc::stopped),
                                stop_on(errc::overloaded), stop_on(errc::invalid_argument),
                                stop_on(errc::invalid_policy)}});
