#include "ready_queues.hpp"

#include <limits>
#include <utility>

#include "job_run.hpp"

namespace holdfast {

void ready_queues::push(std::size_t in, job_run& r, int priority) {
    auto& line = queues_[in].ready;
    ++ready_;
    if (line.empty() || line.back()->job.priority >= priority) {
        line.push_back(&r);
        return;
    }
    const auto after = std::ranges::upper_bound(line, priority, std::greater<>(),
                                                [](const job_run* each) { return each->job.priority; });
    line.insert(after, &r);
}

// Smooth weighted round robin: everybody earns its weight, the richest pays for all.
job_run* ready_queues::pop() {
    if (ready_ == 0) return nullptr;
    queue* chosen = nullptr;
    int earned = 0;
    for (queue& each : queues_) {
        if (!each.may_run()) continue;
        each.credit_to_run += each.how.weight;
        earned += each.how.weight;
        if (chosen == nullptr || each.credit_to_run > chosen->credit_to_run) chosen = &each;
    }
    if (chosen == nullptr) return nullptr;
    chosen->credit_to_run -= earned;
    job_run* r = chosen->ready.front();
    chosen->ready.pop_front();
    --ready_;
    ++chosen->running;
    return r;
}

bool ready_queues::remove(std::size_t in, const job_run& r) {
    auto& line = queues_[in].ready;
    const auto found = std::ranges::find(line, &r);
    if (found == line.end()) return false;
    line.erase(found);
    --ready_;
    return true;
}

std::vector<job_run*> ready_queues::take_all() {
    std::vector<job_run*> all;
    for (queue& each : queues_) {
        all.insert(all.end(), each.ready.begin(), each.ready.end());
        each.ready.clear();
    }
    ready_ = 0;
    return all;
}

std::vector<ready_queues::claim_plan> ready_queues::plan(int room, int ahead, int batch) {
    std::vector<std::size_t> order;
    int earned = 0;
    for (std::size_t i = 0; i < queues_.size(); ++i) {
        if (queues_[i].dry) continue;
        queues_[i].credit_to_claim += queues_[i].how.weight;
        earned += queues_[i].how.weight;
        order.push_back(i);
    }
    if (order.empty()) return {};
    std::ranges::sort(order, {}, [&](std::size_t i) { return std::pair(-queues_[i].credit_to_claim, i); });
    queues_[order.front()].credit_to_claim -= earned;

    constexpr std::size_t none = std::numeric_limits<std::size_t>::max();
    std::vector<claim_plan> plans;
    std::size_t shared = none; // the plan of those without a limit
    for (const std::size_t i : order) {
        const queue& q = queues_[i];
        if (q.how.concurrency == 0 && shared != none) {
            plans[shared].from.push_back(i);
            continue;
        }
        const int own = q.how.concurrency > 0 ? q.how.concurrency + ahead - q.held() : room;
        const int limit = std::min({room, batch, own});
        if (limit <= 0) continue; // what those before it leave free is planned next
        if (q.how.concurrency == 0) shared = plans.size();
        plans.push_back({{i}, limit});
        room -= limit;
    }
    return plans;
}

} // namespace holdfast
