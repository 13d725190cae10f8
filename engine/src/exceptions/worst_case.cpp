#include <algorithm>

#include <holdfast/exception_explain.hpp>

#include "total_delay.hpp"

namespace holdfast {

namespace {

// How often, at most.
long times(const std::optional<retry_settings>& step, long most) {
    if (!step) return 0;
    return step->max_attempts == unlimited ? most : std::min<long>(step->max_attempts, most);
}

// The first `count` waits of a step.
duration waits_of(const std::optional<retry_settings>& step, long count) {
    if (!step || count == 0) return duration::zero();
    retry_settings first = *step;
    first.max_attempts = static_cast<int>(count);
    return total_delay(first);
}

} // namespace

exception_worst_case worst_case(const exception_rule& rule, int max_total_attempts) {
    const long most = max_total_attempts;
    const long in_delivery = times(rule.retry, most) + 1;
    const long wanted = in_delivery * (times(rule.redeliver, most) + 1);
    const long calls = std::min(wanted, most);
    const long full_deliveries = (calls - 1) / in_delivery; // those that a redelivery follows
    const long last_retries = (calls - 1) % in_delivery;

    exception_worst_case worst{.calls = calls, .cut = wanted > most};
    worst.slot_for = waits_of(rule.retry, full_deliveries > 0 ? in_delivery - 1 : last_retries);
    worst.waits =
        saturating_sum(saturating_product(worst.slot_for, full_deliveries),
                       saturating_sum(waits_of(rule.retry, last_retries), waits_of(rule.redeliver, full_deliveries)));
    return worst;
}

} // namespace holdfast
