#include "ready_queues.hpp"

#include <limits>
#include <utility>

#include "job_run.hpp"
#include "loop_parts.hpp"

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
    ++running_;
    return r;
}

void ready_queues::ended(std::size_t in, duration took) noexcept {
    queue& q = queues_[in];
    --q.running;
    --running_;
    double& average = average_run_of(q);
    average = with_run(average, took);
}

void ready_queues::waited(std::size_t in, duration so_far) noexcept {
    double& average = average_run_of(queues_[in]);
    average = std::max(average, std::chrono::duration<double>(so_far).count());
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

ready_queues::taken ready_queues::load() const noexcept {
    taken by{.all = running_ + ready_};
    for (const queue& each : queues_) {
        if (!each.limited()) by.unlimited += each.held();
        if (ahead_of(each) == 0) by.slow += each.running + each.startable();
    }
    return by;
}

void ready_queues::add_claim(taken& to, const queue& which, int count) const noexcept {
    to.all += count;
    if (!which.limited()) to.unlimited += count;
    if (ahead_of(which) == 0) to.slow += count;
}

// A queue with a limit is as quick as its own jobs are: what has shown nothing yet is claimed for slots of its own alone.
int ready_queues::ahead_of(const queue& which) const noexcept {
    if (which.limited()) return ahead_of_slots(which.average_run, which.how.concurrency, most_ahead_);
    return ahead_of_slots(average_run_, slots_, most_ahead_);
}

int ready_queues::held_ahead(const queue& which, taken by) const noexcept {
    return which.limited() ? which.held() - which.how.concurrency : by.unlimited - slots_;
}

// What quick queues hold is in nobody's way for long, so only the slots of slow ones count.
int ready_queues::room_of(const queue& which, taken by) const noexcept {
    const int ahead = ahead_of(which);
    return std::min({ahead - held_ahead(which, by), slots_ + ahead - by.slow, slots_ + most_ahead_ - by.all});
}

// A slot is free for it, or half of what is held ahead has gone.
bool ready_queues::is_worth_a_call(const queue& which, taken by) const noexcept {
    return !which.dry && room_of(which, by) > 0 && held_ahead(which, by) <= ahead_of(which) / 2;
}

bool ready_queues::wants_claim() const noexcept {
    const taken by = load();
    return std::ranges::any_of(queues_, [&](const queue& each) { return is_worth_a_call(each, by); });
}

std::vector<ready_queues::claim_plan> ready_queues::plan(int batch) {
    taken by = load();
    std::vector<std::size_t> order;
    int earned = 0;
    for (std::size_t i = 0; i < queues_.size(); ++i) {
        if (!is_worth_a_call(queues_[i], by)) continue;
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
        if (!q.limited() && shared != none) {
            plans[shared].from.push_back(i);
            continue;
        }
        const int room = room_of(q, by);
        if (room <= 0) continue; // what those before it leave free is planned next
        if (!q.limited()) shared = plans.size();
        plans.push_back({{i}, std::min(room, batch), room});
        add_claim(by, q, plans.back().limit);
    }
    return plans;
}

} // namespace holdfast
