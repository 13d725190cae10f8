// expect: no member named 'then_redeliver' in 'holdfast::finished_rule'
#include <holdfast/exception_policy.hpp>

void declare(holdfast::exception_policy& rules) {
    rules.default_().retry().then_dead_letter().then_redeliver();
}
