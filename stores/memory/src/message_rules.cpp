#include "message_rules.hpp"

#include <set>

#include <holdfast/runtime_clock.hpp>

namespace holdfast::memory {

void message_rules::append(const std::vector<outgoing_message>& messages, store_time now) {
    for (const outgoing_message& each : messages) {
        if (positions_.contains(each.id)) continue;
        const std::uint64_t position = ++last_position_;
        positions_.emplace(each.id, position);
        waiting_.emplace(position, row{each, now, 0, std::nullopt, 0, {}});
        undo_.note([this, position, id = each.id] {
            positions_.erase(id);
            waiting_.erase(position);
        });
    }
}

std::vector<leased_message> message_rules::lease_batch(int limit, duration lease_for, store_time now) {
    std::vector<leased_message> batch;
    std::set<std::string_view> blocked; // keys whose oldest cannot be sent now
    for (auto& [position, each] : waiting_) {
        if (batch.size() == static_cast<std::size_t>(limit)) break;
        const std::string& key = each.message.key;
        if (!key.empty() && blocked.contains(key)) continue;
        if (each.due > now || (each.leased_until && *each.leased_until > now)) {
            if (!key.empty()) blocked.insert(key);
            continue;
        }
        each.token = tokens_.next();
        each.leased_until = now + in_store_time(lease_for);
        batch.push_back({message_lease(to_text(each.message.id), each.token), position, each.attempts, each.message});
    }
    return batch;
}

bool message_rules::is_aside(const identifier& id) const {
    const auto position = positions_.find(id);
    return position != positions_.end() && aside_.contains(position->second);
}

std::pair<message_rules::rows::iterator, write_answer> message_rules::held(const message_lease& lease) {
    const auto id = parse_identifier(lease.subject());
    const auto position = id ? positions_.find(*id) : positions_.end();
    if (position == positions_.end()) return {waiting_.end(), write_answer::gone};
    const auto found = waiting_.find(position->second);
    if (found == waiting_.end() || !found->second.leased_until || found->second.token != lease.token())
        return {waiting_.end(), write_answer::stale};
    return {found, write_answer::done};
}

std::vector<write_answer> message_rules::delivered(std::span<const message_lease* const> sent) {
    std::vector<write_answer> answers;
    for (const message_lease* each : sent) {
        const auto [found, answer] = held(*each);
        answers.push_back(answer);
        if (answer != write_answer::done) continue;
        positions_.erase(found->second.message.id);
        waiting_.erase(found);
    }
    return answers;
}

std::vector<write_answer> message_rules::failed(std::span<const message_failure> which, store_time now) {
    std::vector<write_answer> answers;
    for (const message_failure& each : which) {
        const auto [found, answer] = held(*each.held);
        answers.push_back(answer);
        if (answer != write_answer::done) continue;
        row& r = found->second;
        ++r.attempts;
        r.last_error = each.why;
        r.leased_until.reset();
        r.due = now + in_store_time(each.retry_after);
        if (each.set_aside) aside_.insert(waiting_.extract(found));
    }
    return answers;
}

std::vector<message_view> message_rules::set_aside(int limit, std::uint64_t after_position) const {
    std::vector<message_view> page;
    for (auto at = aside_.upper_bound(after_position);
         at != aside_.end() && page.size() < static_cast<std::size_t>(limit); ++at)
        page.push_back({at->second.message, at->first, at->second.attempts, at->second.last_error});
    return page;
}

int message_rules::send_again(const std::vector<identifier>& which, store_time now) {
    int found = 0;
    for (const identifier& id : which) {
        if (!is_aside(id)) continue;
        auto node = aside_.extract(positions_.at(id));
        node.mapped().attempts = 0;
        node.mapped().due = now;
        waiting_.insert(std::move(node));
        ++found;
    }
    return found;
}

int message_rules::discard(const std::vector<identifier>& which) {
    int found = 0;
    for (const identifier& id : which) {
        if (!is_aside(id)) continue;
        aside_.erase(positions_.at(id));
        positions_.erase(id);
        ++found;
    }
    return found;
}

bool message_rules::receive(const std::string& consumer, const identifier& message, duration ttl, store_time now) {
    const std::pair which(consumer, message);
    if (received_.find(which, now) != nullptr) return false;
    received_.put(which, true, now + in_store_time(ttl), now);
    return true;
}

std::vector<bool> message_rules::received(const std::string& consumer, const std::vector<identifier>& messages,
                                          store_time now) const {
    std::vector<bool> answers;
    for (const identifier& each : messages) answers.push_back(received_.find({consumer, each}, now) != nullptr);
    return answers;
}

void message_rules::clear() {
    waiting_.clear();
    aside_.clear();
    positions_.clear();
    received_.clear();
}

} // namespace holdfast::memory
