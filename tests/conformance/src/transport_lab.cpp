#include "transport_lab.hpp"

#include <holdfast/store_conformance.hpp>

#include "suite.hpp"

namespace holdfast::conformance {

transport_lab::transport_lab(const transport_bed& bed, const transport_options& how, const transport_settings& with)
    : plugin_lab(*bed.on, how.rounds), bed_(bed), transport_(opened(bed.fresh(with))) {}

transport_lab::~transport_lab() {
    other_.reset();
    if (transport_ == nullptr) return;
    try {
        static_cast<void>(await(transport_->destroy()));
    } catch (...) {
        // The case has failed already, and says why.
    }
}

void transport_lab::close() {
    other_.reset();
    ok(transport_->destroy(), "destroy()");
    transport_.reset();
}

std::unique_ptr<event_transport> transport_lab::opened(std::unique_ptr<event_transport> made) {
    if (made == nullptr) throw check_failed("the factory gave no transport");
    ok(made->prepare(), "prepare()");
    return made;
}

event_transport& transport_lab::other() {
    if (!transport_->capabilities().shared) throw case_skipped("the transport is not shared");
    if (!bed_.again) throw case_skipped("no second instance was given");
    if (other_ == nullptr) other_ = opened(bed_.again());
    return *other_;
}

void transport_lab::reopen() {
    if (transport_->capabilities().writes_survive == survives::nothing)
        throw case_skipped("the transport says that nothing survives its process");
    if (!bed_.again) throw case_skipped("no second instance was given");
    transport_.reset();
    transport_ = opened(bed_.again());
}

namespace {

struct transport_group {
    std::string name;
    transport_case_list cases;
};

std::vector<transport_group> all_groups() {
    return {
        {"publishing", publishing_cases()}, {"subscriptions", subscription_cases()},
        {"order", event_order_cases()},     {"leases", delivery_lease_cases()},
        {"redelivery", redelivery_cases()}, {"dead letters", dead_message_cases()},
        {"replay", replay_cases()},         {"care", transport_care_cases()},
        {"fleet", transport_fleet_cases()},
    };
}

void run_on_fresh_transport(const transport_case& what, const transport_bed& bed, const transport_options& how) {
    transport_lab in(bed, how, what.with);
    what.run(in);
    in.close();
}

std::vector<runnable> all_cases(const transport_bed& bed, const transport_options& how) {
    std::vector<runnable> all;
    for (const transport_group& group : all_groups()) {
        int number = 0;
        for (const transport_case& each : group.cases)
            all.push_back(
                {{group.name, ++number, each.name}, [each, &bed, &how] { run_on_fresh_transport(each, bed, how); }});
    }
    return all;
}

} // namespace

std::vector<case_info> transport_cases() {
    return infos_of(all_cases({}, {})); // none is run
}

summary run_transport_suite(const transport_bed& bed, const transport_options& how,
                            const std::function<void(const case_result&)>& report) {
    return run_all(all_cases(bed, how), how.filter, report);
}

} // namespace holdfast::conformance
