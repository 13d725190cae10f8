// expect: no member named 'then_redeliver' in 'holdfast::finished_rule'
#include <holdfast/exception_policy.hpp>

void declare(holdfast::exception_policy& rules) {
    rules.on<std::runtime_error>().dead_letter().then_redeliver();
}
