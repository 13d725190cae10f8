#include "host_impl.hpp"

#include <algorithm>
#include <thread>

#include <unistd.h>

#include <holdfast/sync_wait.hpp>
#include <holdfast/when_all.hpp>

namespace holdfast {

void host::impl::add(std::unique_ptr<job_type> kind) {
    if (phase_ != phase::starting) must_be_setting_up("add");
    detail::value_or_throw(kinds_.add(std::move(kind)));
}

void host::impl::add(recurring_job which) {
    if (phase_ != phase::starting) must_be_setting_up("add");
    recurring_.push_back(std::move(which));
}

void host::impl::use(exception_policy rules) {
    if (phase_ != phase::starting) must_be_setting_up("use");
    if (rules_) throw failed({errc::duplicate, "the host has exception rules already: one policy is for all", {}});
    rules_ = std::move(rules);
}

void host::impl::without_work() {
    must_be_setting_up("without_work");
    config_.jobs.work = config_.relay.work = config_.consumers.work = false;
}

holdfast::jobs& host::impl::jobs() {
    static_cast<void>(job_store()); // says what to write when there is none
    return *jobs_;
}

worker_snapshot host::impl::worker() const {
    return worker_ ? worker_->snapshot() : worker_snapshot{};
}

namespace {

void add_queue(std::vector<worker_queue>& to, std::string_view name) {
    if (std::ranges::find(to, name, &worker_queue::name) == to.end()) to.push_back({.name = std::string(name)});
}

// The queues that the kinds go to by themselves.
std::vector<worker_queue> queues_of(const job_registry& kinds) {
    std::vector<worker_queue> queues;
    kinds.for_each([&](const job_type& kind) { add_queue(queues, kind.options().queue); });
    return queues;
}

std::string machine_name() {
    char name[256] = {};
    return ::gethostname(name, sizeof(name) - 1) == 0 ? name : "";
}

std::string in_words(const std::vector<worker_queue>& queues) {
    std::string text;
    for (const worker_queue& each : queues) text += (text.empty() ? "" : ", ") + each.name;
    return text;
}

} // namespace

void host::impl::make_client(holdfast::store& kept) {
    jobs_.emplace(*kept.jobs(), *ids_, config_.jobs.how.defaults, log_.get());
}

void host::impl::start_jobs() {
    const auto kept = stores_.of(facet::jobs);
    const bool has_work = !kinds_.empty() || !recurring_.empty();
    if (!kept && !has_work) return;
    detail::value_or_throw(kept); // kinds of jobs, and nothing to keep them in
    make_client(**kept);
    if (!has_work) return;
    detail::value_or_throw(detail::apply_overrides(recurring_, config_.schedules));
    if (!config_.jobs.work) return;
    start_isolation(**kept);
    worker_options how = config_.jobs.how;
    if (!config_.jobs.queues_given) how.queues = queues_of(kinds_);
    if (!recurring_.empty()) make_scheduler(**kept, how.queues);
    worker_.emplace(worker_parts{.on = *runtime_,
                                 .store = *(*kept)->jobs(),
                                 .kinds = kinds_,
                                 .log = *log_,
                                 .policies = policies_.get(),
                                 .client = &*jobs_,
                                 .rules = rules_ ? &*rules_ : nullptr,
                                 .isolation = isolation_.get()},
                    how);
    detail::value_or_throw(worker_->start());
    log_->info("working on jobs from " + in_words(how.queues) + " as " + worker_->name() + ", " +
               std::to_string(how.concurrency) + " at a time");
    if (scheduler_) detail::value_or_throw(scheduler_->start());
}

// Slots are jobs themselves, so the worker gets their kinds and works on their queues.
void host::impl::make_scheduler(holdfast::store& kept, std::vector<worker_queue>& queues) {
    const std::string node = config_.jobs.node.empty() ? machine_name() : config_.jobs.node;
    scheduler_.emplace(
        scheduler_parts{.on = *runtime_, .store = kept, .client = *jobs_, .log = *log_, .zones = time_zones_},
        scheduler_options{.node = node});
    for (const recurring_job& each : recurring_) {
        if (!config_.jobs.queues_given) add_queue(queues, each.type.queue);
        else if (!each.when.per_node && std::ranges::find(queues, each.type.queue, &worker_queue::name) == queues.end())
            log_->info("schedule \"" + std::string(each.when.name) + "\" is fired by those who work on queue \"" +
                       std::string(each.type.queue) + "\", which is not among the queues of this process");
        detail::value_or_throw(scheduler_->add(each));
    }
    detail::value_or_throw(scheduler_->add_kinds(kinds_));
    const auto own = scheduler_->node_queues();
    for (const std::string& each : own) add_queue(queues, each);
    if (!own.empty())
        log_->info("firing per-node schedules as node \"" + node + "\"; processes that share this name share them" +
                   (config_.jobs.node.empty() ? ", [jobs] node gives each its own" : ""));
}

task<result<std::vector<schedule_status>>> host::impl::schedules() {
    if (scheduler_) return scheduler_->inspect();
    return []() -> task<result<std::vector<schedule_status>>> { co_return std::vector<schedule_status>{}; }();
}

void host::impl::tell_of_running_jobs() noexcept {
    const worker_snapshot left = worker_->snapshot();
    if (left.running.empty()) return;
    if (exit_code_ == 0) exit_code_ = 1;
    log_->error(std::to_string(left.running.size()) + (left.running.size() == 1 ? " job goes" : " jobs go") +
                " on although asked to stop, the first is " + to_text(left.running.front().id) + " \"" +
                left.running.front().type + "\"; another worker takes over when its lease has run out");
}

namespace {

// Both at once: each has a grace of its own.
task<void> stop_both(job_worker* jobs, event_worker* consumers) {
    std::vector<task<void>> stopping;
    if (jobs != nullptr) stopping.push_back(jobs->stop());
    if (consumers != nullptr) stopping.push_back(consumers->stop());
    co_await when_all(std::move(stopping));
}

} // namespace

// After this no handler runs, but those that ignored their tokens.
void host::impl::stop_work() noexcept {
    if (!worker_ && !consuming_) return;
    sync_wait(*runtime_, stop_both(worker_ ? &*worker_ : nullptr, consuming_ ? &*consuming_ : nullptr));
    if (isolation_) isolation_->stop();
    if (worker_ && scheduler_) sync_wait(*runtime_, scheduler_->stop());
    if (worker_) tell_of_running_jobs();
    if (consuming_) tell_of_running_consumers();
}

// While the host stops, a second signal cuts the grace of running handlers short.
void host::impl::stop_watching() noexcept {
    if (!worker_ && !consuming_) return stop();
    const std::jthread impatience([this] {
        for (auto why = wake_.wait(); why != detail::wake_up::done; why = wake_.wait()) {
            if (why != detail::wake_up::hurry) continue;
            if (worker_) worker_->stop_now();
            if (consuming_) consuming_->stop_now();
        }
    });
    stop();
    wake_.wake(detail::wake_up::done);
}

} // namespace holdfast
