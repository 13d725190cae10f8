#include "lab.hpp"
#include "suite.hpp"

namespace holdfast::conformance {

namespace {

void run_in_form(const test_case& what, const runtime_factory& make, const options& how, form which) {
    lab in(make, how, which);
    try {
        what.run(in);
    } catch (const case_skipped&) {
        throw;
    } catch (const std::exception& e) {
        if (!what.both_forms) throw;
        throw check_failed((which == form::blocking ? "blocking: " : "coroutine: ") + std::string(e.what()));
    }
}

std::vector<runnable> all_cases(const runtime_factory& make, const options& how) {
    std::vector<runnable> all;
    for (const contract_case& each : contract_cases())
        all.push_back({{"runtime", each.number, each.name}, [run = each.run, &make] { run(make); }});
    for (const test_group& group : {attempts_group(), backoff_group(), time_group(), cancellation_group(),
                                    breaker_group(), limits_group(), reload_group(), trace_group()})
        for (const test_case& each : group.cases)
            all.push_back({{group.name, each.number, each.name}, [each, &make, &how] {
                               if (each.both_forms) run_in_form(each, make, how, form::blocking);
                               run_in_form(each, make, how, form::coroutine);
                           }});
    return all;
}

} // namespace

std::vector<case_info> runtime_cases() {
    return infos_of(all_cases({}, {})); // none is run
}

summary run_runtime_suite(const std::function<std::unique_ptr<runtime>()>& make, const options& how,
                          const std::function<void(const case_result&)>& report) {
    return run_all(all_cases(make, how), how.filter, report);
}

} // namespace holdfast::conformance
