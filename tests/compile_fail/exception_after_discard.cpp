// expect: no member named 'retry' in 'holdfast::finished_rule'
#include <holdfast/exception_policy.hpp>

void declare(holdfast::exception_policy& rules) {
    rules.on<std::runtime_error>().discard().retry();
}
