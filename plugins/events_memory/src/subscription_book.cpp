#include "subscription_book.hpp"

#include <algorithm>

#include <holdfast/runtime_clock.hpp>

namespace holdfast::events_memory {

namespace {

// When it may be given out again, its lease and its due time considered.
store_time free_at(const entry& e) noexcept {
    return e.leased_until ? std::max(*e.leased_until, e.due) : e.due;
}

} // namespace

const entry* subscription_book::find(position at) const {
    const auto found = entries_.find(at);
    return found == entries_.end() ? nullptr : &found->second;
}

bool subscription_book::needs(position at) const {
    const entry* found = find(at);
    return found != nullptr && found->is != entry::state::settled;
}

bool subscription_book::is_first_of_key(position at, const entry& e) const {
    return e.key.empty() || *rows_.at(e.key).begin() == at;
}

// It has changed.
void subscription_book::wait_or_get_ready(position at, const entry& e, store_time now) {
    if (!is_free(e, now)) waiting_.emplace(free_at(e), at);
    else if (is_first_of_key(at, e)) ready_.insert(at);
}

// It is about to change.
void subscription_book::stop_waiting(position at, const entry& e) {
    ready_.erase(at);
    waiting_.erase({free_at(e), at});
}

void subscription_book::wake(store_time now) {
    while (!waiting_.empty() && waiting_.begin()->first <= now) {
        const position at = waiting_.begin()->second;
        waiting_.erase(waiting_.begin());
        wait_or_get_ready(at, entries_.at(at), now);
    }
}

void subscription_book::open(position at, const std::string& key, int generation, store_time now) {
    entry& e = entries_[at];
    if (e.is == entry::state::dead) --dead_;
    const entry before = std::exchange(e, entry{});
    e.key = key;
    e.due = now;
    e.token = before.token;
    e.settled_by = before.settled_by;
    e.generation = generation;
    ++open_;
    if (!key.empty()) {
        auto& row = rows_[key];
        if (!row.empty() && at < *row.begin()) ready_.erase(*row.begin());
        row.insert(at);
    }
    wait_or_get_ready(at, e, now);
}

std::vector<position> subscription_book::give(int limit, store_time until, std::uint64_t& last_token, store_time now) {
    wake(now);
    std::vector<position> given;
    std::set<position> next; // and those that follow them in their keys
    for (const position each : ready_) {
        if (next.size() == static_cast<std::size_t>(limit)) break;
        next.insert(next.end(), each);
    }
    while (!next.empty() && given.size() < static_cast<std::size_t>(limit)) {
        const position at = *next.begin();
        next.erase(next.begin());
        entry& e = entries_.at(at);
        if (!e.key.empty()) {
            const auto& row = rows_.at(e.key);
            const auto behind = row.upper_bound(at);
            if (behind != row.end() && is_free(entries_.at(*behind), now)) next.insert(*behind);
        }
        stop_waiting(at, e);
        if (e.leased_until) ++e.crashes;
        e.token = ++last_token;
        e.leased_until = until;
        waiting_.emplace(free_at(e), at);
        given.push_back(at);
    }
    return given;
}

write_answer subscription_book::renew(position at, std::uint64_t token, store_time until) {
    const auto found = entries_.find(at);
    if (found == entries_.end()) return write_answer::gone;
    entry& e = found->second;
    if (e.is != entry::state::open || !e.leased_until || e.token != token) return write_answer::stale;
    stop_waiting(at, e);
    e.leased_until = until;
    waiting_.emplace(free_at(e), at);
    return write_answer::done;
}

void subscription_book::close(position at, entry& e, entry::state to, store_time now) {
    stop_waiting(at, e);
    e.leased_until.reset();
    e.is = to;
    --open_;
    if (e.key.empty()) return;
    const auto row = rows_.find(e.key);
    row->second.erase(at);
    if (row->second.empty()) {
        rows_.erase(row);
        return;
    }
    const position first = *row->second.begin();
    if (is_free(entries_.at(first), now)) ready_.insert(first);
}

write_answer subscription_book::settle(position at, std::uint64_t token, const delivery_settlement& how,
                                       std::uint64_t death, store_time now) {
    using kind = delivery_settlement::kind;
    const auto found = entries_.find(at);
    if (found == entries_.end()) return write_answer::gone;
    entry& e = found->second;
    if (token != 0 && e.settled_by == token) return write_answer::done; // the same once more
    if (e.is != entry::state::open || !e.leased_until || e.token != token) return write_answer::stale;
    e.settled_by = token;
    if (how.how != kind::release) e.calls += how.calls;
    switch (how.how) {
    case kind::acknowledge:
        close(at, e, entry::state::settled, now);
        ++acknowledged_;
        break;
    case kind::discard:
        close(at, e, entry::state::settled, now);
        ++discarded_;
        break;
    case kind::dead_letter:
        close(at, e, entry::state::dead, now);
        e.died = now;
        e.death = death;
        e.error = how.error;
        ++dead_;
        break;
    case kind::redeliver:
    case kind::release:
        if (how.how == kind::redeliver) ++e.redeliveries;
        stop_waiting(at, e);
        e.leased_until.reset();
        e.due = now + in_store_time(std::max(how.after, duration::zero()));
        wait_or_get_ready(at, e, now);
        break;
    }
    return write_answer::done;
}

void subscription_book::bury(position at) {
    entries_.at(at).is = entry::state::settled;
    --dead_;
}

std::optional<duration> subscription_book::next_due(store_time now) const {
    if (open_ == 0) return std::nullopt;
    if (!ready_.empty() || waiting_.empty()) return duration::zero();
    return std::max<duration>(waiting_.begin()->first - now, duration::zero());
}

subscription_view subscription_book::view(const std::string& name, store_time now) const {
    subscription_view seen;
    seen.name = name;
    seen.topics.assign(topics.begin(), topics.end());
    for (const auto& [when, at] : waiting_)
        if (const auto& e = entries_.at(at); e.leased_until && *e.leased_until > now) ++seen.leased;
    seen.waiting = open_ - seen.leased;
    seen.dead = dead_;
    seen.acknowledged = acknowledged_;
    seen.discarded = discarded_;
    return seen;
}

} // namespace holdfast::events_memory
