#include <iterator>

#include "store_lab.hpp"
#include "suite.hpp"

namespace holdfast::conformance {

namespace {

struct store_group {
    std::string name;
    std::vector<store_case_list> parts;
};

std::vector<store_group> all_groups() {
    return {
        {"store", {store_basics()}},
        {"jobs",
         {job_enqueue_cases(), job_claim_cases(), job_settle_cases(), job_fencing_cases(), job_recovery_cases(),
          job_cancel_cases(), job_family_cases(), job_requeue_cases(), job_reading_cases(), job_content_cases(),
          job_race_cases(), job_walk_cases(), job_watch_cases(), job_handover_cases(), job_process_cases()}},
        {"idempotency", {idempotency_cases(), idempotency_process_cases()}},
        {"locks", {lock_cases(), lock_process_cases()}},
        {"outbox", {outbox_cases(), outbox_failure_cases(), outbox_process_cases()}},
        {"units", {unit_cases(), unit_conflict_cases()}},
    };
}

void run_on_fresh_store(const store_case& what, const store_bed& bed, const store_options& how) {
    store_lab in(bed, how);
    what.run(in);
    in.close();
}

std::vector<runnable> all_cases(const store_bed& bed, const store_options& how) {
    std::vector<runnable> all;
    for (const store_group& group : all_groups()) {
        int number = 0;
        for (const store_case_list& part : group.parts)
            for (const store_case& each : part)
                all.push_back(
                    {{group.name, ++number, each.name}, [each, &bed, &how] { run_on_fresh_store(each, bed, how); }});
    }
    return all;
}

} // namespace

std::vector<case_info> store_cases() {
    return infos_of(all_cases({}, {})); // none is run
}

summary run_store_suite(const store_bed& bed, const store_options& how,
                        const std::function<void(const case_result&)>& report) {
    return run_all(all_cases(bed, how), how.filter, report);
}

} // namespace holdfast::conformance
