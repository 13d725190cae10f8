// expect: no member named 'retry' in 'holdfast::retrying_rule'
#include <holdfast/exception_policy.hpp>

void declare(holdfast::exception_policy& rules) {
    rules.default_().retry().retry();
}
