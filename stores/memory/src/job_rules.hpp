// The job facet as plain functions of a table and a time: job_machine.hpp, and what concerns several jobs at once.
#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include <holdfast/job_store.hpp>

#include "expiring_map.hpp"
#include "job_table.hpp"
#include "token_series.hpp"

namespace holdfast::memory {

struct job_retention {
    duration succeeded = std::chrono::hours{24};
    duration tombstones = std::chrono::hours{24 * 7};
};

// A settlement that owns its lease's content.
struct kept_settlement {
    std::string subject;
    std::uint64_t token = 0;
    settlement what; // without `held`
};

class job_rules {
public:
    job_rules(journal& undo, token_series& tokens, job_retention keep)
        : jobs_(undo, keep.succeeded), gone_(undo), tokens_(tokens), keep_(keep) {}

    std::vector<enqueued> enqueue(const std::vector<new_job>& batch, store_time now);
    std::vector<claimed_job> claim(const claim_request& request, store_time now);
    std::vector<write_answer> started(std::span<const job_lease* const> which);
    std::vector<beat> heartbeat(std::span<const job_lease* const> held, duration lease_for, store_time now);
    std::vector<settled> settle(const std::vector<kept_settlement>& which, store_time now);
    std::vector<write_answer> progress(std::span<const progress_report> which);
    recovery recover_stale(int limit, store_time now);
    std::optional<duration> next_due(const std::vector<std::string>& queues, store_time now);
    std::vector<cancel_answer> cancel(const std::vector<identifier>& which, store_time now);
    int requeue(const std::vector<identifier>& which, store_time now);
    int purge(job_state state, duration older_than, int limit, store_time now);
    int discard(const std::vector<identifier>& which, store_time now);
    void pause(const std::string& queue) { paused_.insert(queue); }
    void resume(const std::string& queue) {
        paused_.erase(queue);
        woken_.insert(queue);
    }
    std::vector<queue_view> queues() const;
    job_lookup get(const identifier& id, store_time now) const;
    job_page list(const job_filter& filter, int limit, std::optional<identifier> before, store_time now) const;
    std::vector<job_count> counts(store_time now) const;
    void clear();

    // The queues in which a job may have become claimable since the last call.
    std::vector<std::string> take_woken();

private:
    void note_claimable(const record& r, store_time now);
    enqueued enqueue_one(const new_job& n, store_time now);
    void ended(const identifier& parent, bool succeeded, store_time now);
    void armed_again(const identifier& parent, store_time now);
    bool key_is_free(const record& r) const;
    void forget(const identifier& id, store_time now);
    void forget_what_was_kept_long_enough(store_time now);

    job_table jobs_;
    expiring_map<identifier, bool> gone_; // that they existed
    std::set<std::string> paused_;
    std::set<std::string> woken_;
    token_series& tokens_;
    job_retention keep_;
};

} // namespace holdfast::memory
