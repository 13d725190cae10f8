#include "host_impl.hpp"

#include <algorithm>
#include <thread>

#include <holdfast/sync_wait.hpp>

namespace holdfast {

void host::impl::add(std::unique_ptr<job_type> kind) {
    if (phase_ != phase::starting) must_be_setting_up("add");
    detail::value_or_throw(kinds_.add(std::move(kind)));
}

void host::impl::without_work() {
    must_be_setting_up("without_work");
    config_.jobs.work = false;
}

holdfast::jobs& host::impl::jobs() {
    static_cast<void>(job_store()); // says what to write when there is none
    return *jobs_;
}

worker_snapshot host::impl::worker() const {
    return worker_ ? worker_->snapshot() : worker_snapshot{};
}

namespace {

// The queues that the kinds go to by themselves.
std::vector<worker_queue> queues_of(const job_registry& kinds) {
    std::vector<worker_queue> queues;
    kinds.for_each([&](const job_type& kind) {
        const std::string_view name = kind.options().queue;
        if (std::ranges::find(queues, name, &worker_queue::name) == queues.end())
            queues.push_back({.name = std::string(name)});
    });
    return queues;
}

std::string in_words(const std::vector<worker_queue>& queues) {
    std::string text;
    for (const worker_queue& each : queues) text += (text.empty() ? "" : ", ") + each.name;
    return text;
}

} // namespace

void host::impl::start_jobs() {
    const auto kept = stores_.of(facet::jobs);
    if (!kept && kinds_.empty()) return;
    detail::value_or_throw(kept); // kinds of jobs, and nothing to keep them in
    jobs_.emplace(*(*kept)->jobs(), ids_, config_.jobs.how.defaults, log_.get());
    if (kinds_.empty() || !config_.jobs.work) return;
    worker_options how = config_.jobs.how;
    if (!config_.jobs.queues_given) how.queues = queues_of(kinds_);
    worker_.emplace(worker_parts{.on = *runtime_,
                                 .store = *(*kept)->jobs(),
                                 .kinds = kinds_,
                                 .log = *log_,
                                 .policies = policies_.get(),
                                 .client = &*jobs_},
                    how);
    detail::value_or_throw(worker_->start());
    log_->info("working on jobs from " + in_words(how.queues) + " as " + worker_->name() + ", " +
               std::to_string(how.concurrency) + " at a time");
}

// After this nothing of the worker's runs, but handlers that ignored their tokens.
void host::impl::stop_jobs() noexcept {
    if (!worker_) return;
    sync_wait(*runtime_, worker_->stop());
    const worker_snapshot left = worker_->snapshot();
    if (left.running.empty()) return;
    exit_code_ = exit_code_ == 0 ? 1 : exit_code_;
    log_->error(std::to_string(left.running.size()) + (left.running.size() == 1 ? " job goes" : " jobs go") +
                " on although asked to stop, the first is " + to_text(left.running.front().id) + " \"" +
                left.running.front().type + "\"; another worker takes over when its lease has run out");
}

// While the host stops, a second signal cuts the grace of running jobs short.
void host::impl::stop_watching() noexcept {
    if (!worker_) return stop();
    const std::jthread impatience([this] {
        for (auto why = wake_.wait(); why != detail::wake_up::done; why = wake_.wait())
            if (why == detail::wake_up::hurry) worker_->stop_now();
    });
    stop();
    wake_.wake(detail::wake_up::done);
}

} // namespace holdfast
