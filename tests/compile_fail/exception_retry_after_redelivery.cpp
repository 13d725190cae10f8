// expect: no member named 'retry' in 'holdfast::redelivering_rule'
#include <holdfast/exception_policy.hpp>

void declare(holdfast::exception_policy& rules) {
    rules.default_().retry().then_redeliver().retry();
}
