// Isolated jobs: the processes that they run in, and what the host is in one of those.
#include <set>
#include <string>

#include "host_impl.hpp"
#include "isolation/crash_report.hpp"
#include "isolation/helper.hpp"

namespace holdfast {

namespace {

// The kinds whose handlers run in processes of their own.
std::set<std::string, std::less<>> isolated(const job_registry& kinds, detail::isolation_settings::which which) {
    using enum detail::isolation_settings::which;
    std::set<std::string, std::less<>> names;
    if (which == none) return names;
    kinds.for_each([&](const job_type& kind) {
        if (which == all || kind.options().isolate) names.emplace(kind.options().name);
    });
    return names;
}

} // namespace

// First of all, for it can be done only while there is one thread. What an application plugin will declare is not known
// yet, so for one it is done in case.
void host::impl::prepare_isolation() {
    if (!config_.jobs.work || without_stores_) return;
    const auto names = isolated(kinds_, config_.jobs.isolation.jobs);
    const bool may_come = config_.application && config_.jobs.isolation.jobs != detail::isolation_settings::which::none;
    if (names.empty() && !may_come) return;
    if (names.empty() && (runtime_ != nullptr || detail::count_threads() > 1)) return;
    make_zygote(names.empty() ? "" : *names.begin());
}

void host::impl::make_zygote(const std::string& job) {
    const std::string what = "job \"" + job + "\" is to be isolated: ";
    if (runtime_ != nullptr && !own_runtime_)
        throw failed({errc::configuration,
                      what + "that needs a runtime from the configuration, the program's own cannot be copied",
                      {}});
    try {
        zygote_ = detail::zygote::fork([this](detail::helper_side side) { return serve_as_helper(side); });
    } catch (const failed& e) {
        throw failed({e.code(), what + e.what(), std::nullopt});
    }
}

// Once everything is declared, and the store is known.
void host::impl::start_isolation(const holdfast::store& kept) {
    auto names = isolated(kinds_, config_.jobs.isolation.jobs);
    if (names.empty()) return zygote_.reset();
    if (!zygote_) make_zygote(*names.begin()); // too late, which it says
    log_->info(std::to_string(names.size()) + (names.size() == 1 ? " type of job runs" : " types of jobs run") +
               " in up to " + std::to_string(config_.jobs.isolation.processes) + " processes of their own");
    isolation_ = std::make_shared<detail::helper_pool>(
        std::move(zygote_),
        detail::pool_options{.processes = config_.jobs.isolation.processes,
                             .with_stores = config_.stores.main.has_value() && kept.capabilities().shared,
                             .kinds = std::move(names)},
        *runtime_, *log_);
}

// In a helper process: the same host, as it was before its start, which starts what handlers may ask for and no more.
int host::impl::serve_as_helper(detail::helper_side side) {
    detail::report_crashes_to(side.crash_report);
    detail::limit_memory(config_.jobs.isolation.memory);
    detail::helper_link link(side.socket);
    const auto log = std::make_shared<detail::link_logger>(link, log_);
    log_ = log;
    try {
        ids_.emplace(); // or they would be those of all other copies
        start_runtime();
        if (config_.application) start_application();
        start_policies();
        if (side.with_stores) {
            start_stores();
            make_client(*detail::value_or_throw(stores_.of(facet::jobs)));
        }
    } catch (const std::exception& e) {
        link.send(detail::frame_kind::failed, e.what());
        return 1;
    }
    log->speak(); // all of the above was said by the worker's own start
    link.send(detail::frame_kind::ready);
    detail::serve_attempts(link, {*runtime_, kinds_, *log_, jobs_ ? &*jobs_ : nullptr, rules_ ? &*rules_ : nullptr});
}

} // namespace holdfast
