// expect: say what to do: retry\(\), redeliver\(\), dead_letter\(\) or discard\(\)
#pragma GCC diagnostic error "-Wunused-result"
#pragma GCC diagnostic error "-Wunused-value"
#include <holdfast/exception_policy.hpp>

void declare(holdfast::exception_policy& rules) {
    rules.on<std::runtime_error>();
}
