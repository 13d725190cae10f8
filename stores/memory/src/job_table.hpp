// The job records and the indexes that find them. No rules: those are in job_rules.hpp.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <holdfast/job_machine.hpp>

#include "journal.hpp"

namespace holdfast::memory {

using job_machine::record;

class job_table {
public:
    // Jobs that succeeded and say nothing else are to be kept for `keep`.
    job_table(journal& undo, duration keep) : undo_(undo), keep_(keep) {}

    const record* find(const identifier& id) const {
        const auto found = records_.find(id);
        return found == records_.end() ? nullptr : &found->second;
    }
    // All of them, by id.
    const std::map<identifier, record>& all() const noexcept { return records_; }

    void insert(record r) {
        const identifier id = r.job.id;
        put(id, std::move(r));
    }
    void erase(const identifier& id) { put(id, std::nullopt); }
    // Calls change(record&); there must be such a record.
    template <class Change>
    auto edit(const identifier& id, Change change) {
        const auto found = records_.find(id);
        if (undo_.recording()) undo_.note([this, id, before = found->second] { put(id, before); });
        drop_from_indexes(found->second);
        struct at_end {
            job_table& table;
            record& r;
            ~at_end() { add_to_indexes(table, r); }
        } const again{*this, found->second};
        return change(found->second);
    }
    void clear();

    // The first of the queue that can be claimed.
    std::optional<identifier> first_due(const std::string& queue, store_time now);
    // When the next of the queue is due; the past when one is.
    std::optional<store_time> next_due(const std::string& queue, store_time now);
    // The lease that ends first.
    std::optional<identifier> first_to_expire(store_time now) const;
    // The unfinished job that has the key.
    std::optional<identifier> holder(const std::string& type, const std::string& unique_key) const;
    std::vector<identifier> children(const identifier& parent) const;
    // The one of that state that ended first.
    std::optional<identifier> first_ended(job_state state, store_time no_later_than) const;
    // One that succeeded and was kept for as long as it was to be.
    std::optional<identifier> first_to_forget(store_time now) const;
    // Names of the queues that have jobs.
    std::vector<std::string> queues() const;

private:
    struct queue_index {
        std::set<std::tuple<int, store_time, identifier>> ready; // higher priorities first
        std::set<std::pair<store_time, identifier>> waiting;     // those not yet known to be due
    };

    void put(const identifier& id, std::optional<record> to);
    void drop_from_indexes(const record& r);
    static void add_to_indexes(job_table& table, const record& r);
    void promote(queue_index& in, store_time now);

    std::optional<store_time> kept_until(const record& r) const;

    journal& undo_;
    duration keep_;
    std::map<identifier, record> records_;
    std::map<std::string, queue_index> open_;
    std::map<std::string, std::size_t> queues_;
    std::set<std::pair<store_time, identifier>> leases_;
    std::map<std::pair<std::string, std::string>, identifier> unique_;
    std::set<std::pair<identifier, identifier>> children_;
    std::set<std::tuple<job_state, store_time, identifier>> ended_;
    std::set<std::pair<store_time, identifier>> kept_;
};

} // namespace holdfast::memory
