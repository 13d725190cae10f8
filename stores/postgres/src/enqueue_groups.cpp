#include "enqueue_groups.hpp"

#include <algorithm>

namespace holdfast::postgres {

namespace {

constexpr std::size_t few = 20;
constexpr std::size_t small = 16 << 10;

} // namespace

bool enqueue_groups::may_join(const std::vector<new_job>& jobs) noexcept {
    return !jobs.empty() && jobs.size() <= few && std::ranges::all_of(jobs, [](const new_job& j) {
        return !j.parent && !j.unique_key && j.what.body.size() <= small;
    });
}

std::vector<new_job> enqueue_groups::jobs_of(const group& all) {
    std::vector<new_job> jobs;
    for (const member* each : all) jobs.insert(jobs.end(), each->jobs_.begin(), each->jobs_.end());
    return jobs;
}

bool enqueue_groups::enter(member& m, std::coroutine_handle<> waiting) {
    const std::lock_guard lock(mutex_);
    if (on_the_way_ < most_on_the_way) {
        ++on_the_way_;
        m.role_ = member::role::leads;
        return false;
    }
    m.waiting_ = waiting;
    waiting_.push_back(&m);
    return true;
}

enqueue_groups::group enqueue_groups::gather(member& leader) {
    group all{&leader};
    std::size_t jobs = leader.jobs_.size();
    const std::lock_guard lock(mutex_);
    auto next = waiting_.begin();
    for (; next != waiting_.end() && jobs < most_jobs; ++next) {
        all.push_back(*next);
        jobs += (*next)->jobs_.size();
    }
    waiting_.erase(waiting_.begin(), next);
    return all;
}

void enqueue_groups::share_out(const group& all, const result<std::vector<enqueued>>& answers) {
    const bool blame_unclear = !answers && all.size() > 1 && answers.error().code != errc::unavailable &&
                               answers.error().code != errc::unknown_outcome && answers.error().code != errc::stopped;
    auto next = answers ? answers->begin() : std::vector<enqueued>::const_iterator();
    for (member* each : all) {
        each->role_ = blame_unclear ? member::role::alone : member::role::answered;
        if (!answers) {
            each->answer_ = std::unexpected(answers.error());
        } else {
            const auto size = static_cast<std::ptrdiff_t>(each->jobs_.size());
            each->answer_ = std::vector<enqueued>(next, next + size);
            next += size;
        }
    }
    member* leader = nullptr;
    {
        const std::lock_guard lock(mutex_);
        if (waiting_.empty()) {
            --on_the_way_;
        } else {
            leader = waiting_.front();
            waiting_.erase(waiting_.begin());
            leader->role_ = member::role::leads;
        }
    }
    if (leader != nullptr) go_on(*leader);
    for (std::size_t i = 1; i < all.size(); ++i) go_on(*all[i]);
}

void enqueue_groups::go_on(member& m) noexcept {
    if (!on_.post(m)) m.waiting_.resume(); // a stopped runtime cannot take it; go on right here
}

} // namespace holdfast::postgres
