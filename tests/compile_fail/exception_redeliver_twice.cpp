// expect: no member named 'then_redeliver' in 'holdfast::redelivering_rule'
#include <holdfast/exception_policy.hpp>

void declare(holdfast::exception_policy& rules) {
    rules.default_().redeliver().then_redeliver();
}
