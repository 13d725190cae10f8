#pragma once

#include <map>
#include <optional>
#include <set>
#include <utility>

#include <holdfast/lease.hpp>

#include "journal.hpp"

namespace holdfast::memory {

// Values that are forgotten at a time of their own. Each put drops a few that are past theirs.
template <class Key, class Value>
class expiring_map {
public:
    explicit expiring_map(journal& undo) : undo_(undo) {}

    // Null when absent or past its time. Change it through put() only.
    const Value* find(const Key& key, store_time now) const {
        const auto found = entries_.find(key);
        return found == entries_.end() || found->second.until <= now ? nullptr : &found->second.value;
    }
    void put(const Key& key, Value value, store_time until, store_time now) {
        for (int i = 0; i < 2 && !times_.empty() && times_.begin()->first <= now; ++i)
            set(Key(times_.begin()->second), {});
        set(key, entry{std::move(value), until});
    }
    void erase(const Key& key) { set(key, {}); }
    void clear() {
        entries_.clear();
        times_.clear();
    }
    std::size_t size() const noexcept { return entries_.size(); }

private:
    struct entry {
        Value value;
        store_time until;
    };

    void set(const Key& key, std::optional<entry> to) {
        const auto found = entries_.find(key);
        std::optional<entry> before;
        if (found != entries_.end()) {
            times_.erase({found->second.until, key});
            before = std::move(found->second);
            entries_.erase(found);
        }
        if (to) {
            times_.emplace(to->until, key);
            entries_.emplace(key, std::move(*to));
        }
        if (undo_.recording()) undo_.note([this, key, before = std::move(before)] { set(key, before); });
    }

    journal& undo_;
    std::map<Key, entry> entries_;
    std::set<std::pair<store_time, Key>> times_;
};

} // namespace holdfast::memory
