#include "job_table.hpp"

#include <holdfast/runtime_clock.hpp>

namespace holdfast::memory {

namespace {

bool is_open(const record& r) {
    return !is_final(r.job.state) && r.job.state != job_state::processing && !r.waits_for_parent;
}

std::tuple<int, store_time, identifier> ready_key(const record& r) {
    return {-r.job.priority, r.job.due_at, r.job.id};
}

} // namespace

void job_table::put(const identifier& id, std::optional<record> to) {
    const auto found = records_.find(id);
    std::optional<record> before;
    if (found != records_.end()) {
        drop_from_indexes(found->second);
        before = std::move(found->second);
        records_.erase(found);
    }
    if (to) add_to_indexes(*this, records_.emplace(id, std::move(*to)).first->second);
    if (undo_.recording()) undo_.note([this, id, before = std::move(before)] { put(id, before); });
}

void job_table::clear() {
    records_.clear();
    open_.clear();
    queues_.clear();
    leases_.clear();
    unique_.clear();
    children_.clear();
    ended_.clear();
    kept_.clear();
}

std::optional<store_time> job_table::kept_until(const record& r) const {
    if (r.job.state != job_state::succeeded || !r.job.ended) return std::nullopt;
    return *r.job.ended + in_store_time(r.keep_for.value_or(keep_));
}

void job_table::drop_from_indexes(const record& r) {
    const identifier& id = r.job.id;
    if (const auto in = open_.find(r.job.queue); in != open_.end()) {
        in->second.ready.erase(ready_key(r));
        in->second.waiting.erase({r.job.due_at, id});
        if (in->second.ready.empty() && in->second.waiting.empty()) open_.erase(in);
    }
    if (const auto count = queues_.find(r.job.queue); --count->second == 0) queues_.erase(count);
    if (r.job.leased_until) leases_.erase({*r.job.leased_until, id});
    if (r.job.unique_key && !is_final(r.job.state)) unique_.erase({r.job.what.type, *r.job.unique_key});
    if (r.job.parent) children_.erase({*r.job.parent, id});
    if (r.job.ended) ended_.erase({r.job.state, *r.job.ended, id});
    if (const auto until = kept_until(r)) kept_.erase({*until, id});
}

void job_table::add_to_indexes(job_table& table, const record& r) {
    const identifier& id = r.job.id;
    if (is_open(r)) table.open_[r.job.queue].waiting.emplace(r.job.due_at, id);
    ++table.queues_[r.job.queue];
    if (r.job.leased_until) table.leases_.emplace(*r.job.leased_until, id);
    if (r.job.unique_key && !is_final(r.job.state))
        table.unique_.insert_or_assign({r.job.what.type, *r.job.unique_key}, id);
    if (r.job.parent) table.children_.emplace(*r.job.parent, id);
    if (r.job.ended) table.ended_.emplace(r.job.state, *r.job.ended, id);
    if (const auto until = table.kept_until(r)) table.kept_.emplace(*until, id);
}

// The clock does not go back, so what was due stays due.
void job_table::promote(queue_index& in, store_time now) {
    while (!in.waiting.empty() && in.waiting.begin()->first <= now) {
        in.ready.insert(ready_key(records_.at(in.waiting.begin()->second)));
        in.waiting.erase(in.waiting.begin());
    }
}

std::optional<identifier> job_table::first_due(const std::string& queue, store_time now) {
    const auto found = open_.find(queue);
    if (found == open_.end()) return std::nullopt;
    promote(found->second, now);
    if (found->second.ready.empty()) return std::nullopt;
    return std::get<identifier>(*found->second.ready.begin());
}

std::optional<store_time> job_table::next_due(const std::string& queue, store_time now) {
    const auto found = open_.find(queue);
    if (found == open_.end()) return std::nullopt;
    promote(found->second, now);
    if (!found->second.ready.empty()) return now;
    return found->second.waiting.begin()->first;
}

std::optional<identifier> job_table::first_to_expire(store_time now) const {
    if (leases_.empty() || leases_.begin()->first > now) return std::nullopt;
    return leases_.begin()->second;
}

std::optional<identifier> job_table::holder(const std::string& type, const std::string& unique_key) const {
    const auto found = unique_.find({type, unique_key});
    return found == unique_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<identifier> job_table::children(const identifier& parent) const {
    std::vector<identifier> found;
    for (auto at = children_.lower_bound({parent, {}}); at != children_.end() && at->first == parent; ++at)
        found.push_back(at->second);
    return found;
}

std::optional<identifier> job_table::first_ended(job_state state, store_time no_later_than) const {
    const auto at = ended_.lower_bound({state, store_time::min(), {}});
    if (at == ended_.end() || std::get<job_state>(*at) != state || std::get<store_time>(*at) > no_later_than)
        return std::nullopt;
    return std::get<identifier>(*at);
}

std::optional<identifier> job_table::first_to_forget(store_time now) const {
    if (kept_.empty() || kept_.begin()->first > now) return std::nullopt;
    return kept_.begin()->second;
}

std::vector<std::string> job_table::queues() const {
    std::vector<std::string> names;
    for (const auto& [name, count] : queues_) names.push_back(name);
    return names;
}

} // namespace holdfast::memory
