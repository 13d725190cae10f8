// The queues of one worker: what is claimed and waits for a slot, whose turn it is, and how much may be claimed. Pure
// bookkeeping; the worker's lock guards it.
#pragma once

#include <algorithm>
#include <deque>
#include <string>
#include <vector>

#include <holdfast/duration.hpp>
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
        double average_run = -1; // seconds, where it has a limit; below 0: none has ended yet
        bool dry = false;        // the latest claim found nothing more

        bool limited() const noexcept { return how.concurrency > 0; }
        int held() const noexcept { return running + static_cast<int>(ready.size()); }
        // Of those that are ready, how many its own limit lets run.
        int startable() const noexcept {
            const int waiting = static_cast<int>(ready.size());
            return limited() ? std::clamp(how.concurrency - running, 0, waiting) : waiting;
        }
        bool may_run() const noexcept { return startable() > 0; }
    };
    // One call to the store: queues in order of preference, and how many jobs at most.
    struct claim_plan {
        std::vector<std::size_t> from;
        int limit = 0;
        int room = 0; // for so many there is room; `limit` is that, or a batch
    };

    // `slots`, and how many jobs may be held beyond those that run.
    ready_queues(const std::vector<worker_queue>& all, int slots, int most_ahead)
        : slots_(slots), most_ahead_(most_ahead) {
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
    int running() const noexcept { return running_; }
    bool startable() const noexcept {
        if (ready_ == 0) return false;
        return std::ranges::any_of(queues_, [](const queue& each) { return each.may_run(); });
    }
    void push(std::size_t in, job_run& r, int priority);
    // The one whose turn it is, by the weights; null: none may run now. Counts as running from here on.
    job_run* pop();
    // One that ran in there has ended.
    void ended(std::size_t in, duration took) noexcept;
    bool remove(std::size_t in, const job_run& r);
    // One has waited so long for a slot: those that have them take that long at least.
    void waited(std::size_t in, duration so_far) noexcept;
    std::vector<job_run*> take_all();

    void dry(bool is) noexcept {
        for (queue& each : queues_) each.dry = is;
    }
    bool any_dry() const noexcept {
        return std::ranges::any_of(queues_, [](const queue& each) { return each.dry; });
    }
    // Some queue may have more, and there is room for enough of it to be worth a call.
    bool wants_claim() const noexcept;
    // There is room for one that was not asked for.
    bool has_room(std::size_t in) const noexcept { return room_of(queues_[in], load()) > 0; }
    // What to ask the store for next, together no more than there is room for: the queues without a limit of their own
    // together, the others one by one, those that are not dry, in an order that follows the weights.
    std::vector<claim_plan> plan(int batch);

private:
    // What stands in the way of further claims.
    struct taken {
        int all = 0;       // whatever is held
        int unlimited = 0; // of that, in queues without a limit
        int slow =
            0; // slots of queues that nothing is held ahead for: those that run, and those that will when they can
    };
    taken load() const noexcept;
    void add_claim(taken& to, const queue& which, int count) const noexcept;
    double& average_run_of(queue& which) noexcept { return which.limited() ? which.average_run : average_run_; }
    int ahead_of(const queue& which) const noexcept;
    // Beyond the slots that it may have itself; below 0 it leaves some to others.
    int held_ahead(const queue& which, taken by) const noexcept;
    int room_of(const queue& which, taken by) const noexcept;
    bool is_worth_a_call(const queue& which, taken by) const noexcept;

    std::vector<queue> queues_;
    const int slots_;
    const int most_ahead_;
    double average_run_ = -1; // of the queues without a limit, together
    int ready_ = 0;
    int running_ = 0;
};

} // namespace holdfast
