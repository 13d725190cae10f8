// The queues of one worker: what is claimed and waits for a slot, whose turn it is, and how much may be claimed. Pure
// bookkeeping; the worker's lock guards it.
#pragma once

#include <algorithm>
#include <deque>
#include <string>
#include <vector>

#include <holdfast/job_worker.hpp>

namespace holdfast {

struct job_run;

class ready_queues {
public:
    struct queue {
        worker_queue how;
        std::deque<job_run*> ready; // higher priorities first, then as claimed
        int running = 0;
        int credit_to_run = 0;
        int credit_to_claim = 0;
        bool dry = false; // the latest claim found nothing more

        int held() const noexcept { return running + static_cast<int>(ready.size()); }
        bool may_run() const noexcept { return !ready.empty() && (how.concurrency == 0 || running < how.concurrency); }
    };
    // One call to the store: queues in order of preference, and how many jobs at most.
    struct claim_plan {
        std::vector<std::size_t> from;
        int limit = 0;
    };

    explicit ready_queues(const std::vector<worker_queue>& all) {
        for (const worker_queue& each : all) queues_.push_back({.how = each, .ready = {}});
    }

    std::size_t size() const noexcept { return queues_.size(); }
    queue& operator[](std::size_t i) noexcept { return queues_[i]; }
    const queue& operator[](std::size_t i) const noexcept { return queues_[i]; }
    std::size_t find(const std::string& name) const noexcept {
        for (std::size_t i = 0; i < queues_.size(); ++i)
            if (queues_[i].how.name == name) return i;
        return 0; // cannot be: only these were asked for
    }
    std::vector<std::string> names() const {
        std::vector<std::string> all;
        for (const queue& each : queues_) all.push_back(each.how.name);
        return all;
    }

    int ready() const noexcept { return ready_; }
    bool startable() const noexcept {
        if (ready_ == 0) return false;
        return std::ranges::any_of(queues_, [](const queue& each) { return each.may_run(); });
    }
    void push(std::size_t in, job_run& r, int priority);
    // The one whose turn it is, by the weights; null: none may run now. Counts as running from here on.
    job_run* pop();
    bool remove(std::size_t in, const job_run& r);
    std::vector<job_run*> take_all();

    void dry(bool is) noexcept {
        for (queue& each : queues_) each.dry = is;
    }
    bool any_dry() const noexcept {
        return std::ranges::any_of(queues_, [](const queue& each) { return each.dry; });
    }
    // Some queue may have more, and has room for it.
    bool worth_asking(int ahead) const noexcept {
        return std::ranges::any_of(queues_, [&](const queue& each) {
            return !each.dry && (each.how.concurrency == 0 || each.held() < each.how.concurrency + ahead);
        });
    }
    // What to ask the store for next, within `room`: the queues without a limit of their own together, the others one
    // by one, those that are not dry, in an order that follows the weights. `ahead` is how many a queue with a limit
    // may hold beyond it.
    std::vector<claim_plan> plan(int room, int ahead, int batch);

private:
    std::vector<queue> queues_;
    int ready_ = 0;
};

} // namespace holdfast
