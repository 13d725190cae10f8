// What every suite has in common: a list of cases, run one after the other under a watchdog.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <holdfast/conformance.hpp>

namespace holdfast::conformance {

struct runnable {
    case_info info;
    std::function<void()> run; // throws check_failed or case_skipped
};

std::vector<case_info> infos_of(std::vector<runnable> all);

summary run_all(const std::vector<runnable>& all, const std::string& filter,
                const std::function<void(const case_result&)>& report);

} // namespace holdfast::conformance
