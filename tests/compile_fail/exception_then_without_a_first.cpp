// expect: no member named 'then_redeliver' in 'holdfast::unfinished_rule'
#include <holdfast/exception_policy.hpp>

void declare(holdfast::exception_policy& rules) {
    rules.default_().then_redeliver();
}
