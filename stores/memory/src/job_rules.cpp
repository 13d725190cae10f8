#include "job_rules.hpp"

#include <map>

#include <holdfast/runtime_clock.hpp>

namespace holdfast::memory {

namespace {

job_machine::parent_is state_of_parent(const record* parent) {
    // One that is not known has nothing to wait for: it may have succeeded and been forgotten.
    if (parent == nullptr) return job_machine::parent_is::none;
    if (!is_final(parent->job.state)) return job_machine::parent_is::open;
    return parent->job.state == job_state::succeeded ? job_machine::parent_is::succeeded : job_machine::parent_is::dead;
}

claimed_job to_claimed(const record& r) {
    return {.lease = job_lease(to_text(r.job.id), r.token),
            .id = r.job.id,
            .what = r.job.what,
            .queue = r.job.queue,
            .priority = r.job.priority,
            .attempt = r.job.attempts,
            .max_attempts = r.job.max_attempts,
            .crash_count = r.job.crash_count,
            .generation = r.job.generation,
            .may_restart = r.job.may_restart,
            .cancel_requested = r.job.cancel_requested,
            .extra = r.job.extra};
}

} // namespace

void job_rules::note_claimable(const record& r, store_time now) {
    if (job_machine::claimable(r, now)) woken_.insert(r.job.queue);
}

std::vector<std::string> job_rules::take_woken() {
    std::vector<std::string> all(woken_.begin(), woken_.end());
    woken_.clear();
    return all;
}

enqueued job_rules::enqueue_one(const new_job& n, store_time now) {
    if (jobs_.find(n.id) != nullptr || gone_.find(n.id, now) != nullptr) return {n.id, false};
    if (n.unique_key)
        if (const auto holder = jobs_.holder(n.what.type, *n.unique_key)) return {*holder, false};
    const auto parent = n.parent ? state_of_parent(jobs_.find(*n.parent)) : job_machine::parent_is::none;
    jobs_.insert(job_machine::make(n, now, parent));
    note_claimable(*jobs_.find(n.id), now);
    return {n.id, true};
}

std::vector<enqueued> job_rules::enqueue(const std::vector<new_job>& batch, store_time now) {
    std::vector<enqueued> answers;
    answers.reserve(batch.size());
    for (const new_job& each : batch) answers.push_back(enqueue_one(each, now));
    return answers;
}

std::vector<claimed_job> job_rules::claim(const claim_request& request, store_time now) {
    std::vector<claimed_job> claimed;
    for (const std::string& queue : request.queues) {
        if (paused_.contains(queue)) continue;
        while (claimed.size() < static_cast<std::size_t>(request.limit)) {
            const auto id = jobs_.first_due(queue, now);
            if (!id) break;
            jobs_.edit(*id, [&, token = tokens_.next()](record& r) {
                job_machine::claim(r, token, request.worker, request.lease_for, now);
            });
            claimed.push_back(to_claimed(*jobs_.find(*id)));
        }
    }
    return claimed;
}

std::vector<write_answer> job_rules::started(std::span<const job_lease* const> which) {
    std::vector<write_answer> answers;
    for (const job_lease* each : which) {
        const auto id = parse_identifier(each->subject());
        const record* found = id ? jobs_.find(*id) : nullptr;
        answers.push_back(found == nullptr ? write_answer::gone : job_machine::may_write(*found, each->token()));
        if (answers.back() == write_answer::done) jobs_.edit(*id, [](record& r) { r.started = true; });
    }
    return answers;
}

std::vector<beat> job_rules::heartbeat(std::span<const job_lease* const> held, duration lease_for, store_time now) {
    std::vector<beat> answers;
    for (const job_lease* each : held) {
        const auto id = parse_identifier(each->subject());
        if (!id || jobs_.find(*id) == nullptr) answers.push_back({write_answer::gone, false});
        else
            answers.push_back(
                jobs_.edit(*id, [&](record& r) { return job_machine::heartbeat(r, each->token(), lease_for, now); }));
    }
    return answers;
}

std::vector<settled> job_rules::settle(const std::vector<kept_settlement>& which, store_time now) {
    std::vector<settled> answers;
    for (const kept_settlement& each : which) {
        const auto id = parse_identifier(each.subject);
        if (!id || jobs_.find(*id) == nullptr) {
            answers.push_back({write_answer::gone, {}});
            continue;
        }
        const settled answer =
            jobs_.edit(*id, [&](record& r) { return job_machine::settle(r, each.token, each.what, now); });
        answers.push_back(answer);
        note_claimable(*jobs_.find(*id), now);
        if (answer.answer != write_answer::done || !is_final(answer.now)) continue;
        ended(*id, answer.now == job_state::succeeded, now);
        if (answer.now == job_state::succeeded && jobs_.find(*id)->keep_for == duration::zero()) jobs_.erase(*id);
    }
    return answers;
}

std::vector<write_answer> job_rules::progress(std::span<const progress_report> which) {
    std::vector<write_answer> answers;
    for (const progress_report& each : which) {
        const auto id = parse_identifier(each.held->subject());
        const record* found = id ? jobs_.find(*id) : nullptr;
        answers.push_back(found == nullptr ? write_answer::gone : job_machine::may_write(*found, each.held->token()));
        if (answers.back() != write_answer::done) continue;
        jobs_.edit(*id, [&](record& r) {
            r.job.percent = each.percent;
            r.job.note = each.note;
        });
    }
    return answers;
}

recovery job_rules::recover_stale(int limit, store_time now) {
    recovery total;
    while (total.total() < limit) {
        const auto id = jobs_.first_to_expire(now);
        if (!id) break;
        switch (jobs_.edit(*id, [&](record& r) { return job_machine::recover(r, now); })) {
        case job_machine::recovered::requeued: ++total.requeued; break;
        case job_machine::recovered::failed: ++total.failed; break;
        case job_machine::recovered::deleted: ++total.deleted; break;
        case job_machine::recovered::dead_letter: ++total.dead_letter; break;
        case job_machine::recovered::not_stale: return total; // cannot be: the index says otherwise
        }
        note_claimable(*jobs_.find(*id), now);
        if (is_final(jobs_.find(*id)->job.state)) ended(*id, false, now);
    }
    forget_what_was_kept_long_enough(now);
    return total;
}

std::optional<duration> job_rules::next_due(const std::vector<std::string>& queues, store_time now) {
    std::optional<duration> next;
    for (const std::string& queue : queues) {
        if (paused_.contains(queue)) continue;
        const auto due = jobs_.next_due(queue, now);
        if (!due) continue;
        const duration left = std::max<duration>(*due - now, duration::zero());
        if (!next || left < *next) next = left;
    }
    return next;
}

std::vector<cancel_answer> job_rules::cancel(const std::vector<identifier>& which, store_time now) {
    std::vector<cancel_answer> answers;
    for (const identifier& id : which) {
        if (jobs_.find(id) == nullptr) {
            answers.push_back(cancel_answer::not_found);
            continue;
        }
        answers.push_back(jobs_.edit(id, [&](record& r) { return job_machine::cancel(r, now); }));
        if (answers.back() == cancel_answer::cancelled) ended(id, false, now);
    }
    return answers;
}

bool job_rules::key_is_free(const record& r) const {
    return !r.job.unique_key || !jobs_.holder(r.job.what.type, *r.job.unique_key);
}

int job_rules::requeue(const std::vector<identifier>& which, store_time now) {
    int requeued = 0;
    for (const identifier& id : which) {
        const record* found = jobs_.find(id);
        if (found == nullptr || !is_final(found->job.state) || !key_is_free(*found)) continue;
        if (!jobs_.edit(id, [&](record& r) { return job_machine::requeue(r, now); })) continue;
        ++requeued;
        note_claimable(*jobs_.find(id), now);
        armed_again(id, now);
    }
    return requeued;
}

// A parent's end reaches its children, and through those that it cancels theirs.
void job_rules::ended(const identifier& parent, bool succeeded, store_time now) {
    for (const identifier& child : jobs_.children(parent)) {
        const bool changed = jobs_.edit(child, [&](record& r) { return job_machine::parent_ended(r, succeeded, now); });
        if (changed) note_claimable(*jobs_.find(child), now);
        if (changed && !succeeded) ended(child, false, now);
    }
}

void job_rules::armed_again(const identifier& parent, store_time now) {
    for (const identifier& child : jobs_.children(parent)) {
        if (!key_is_free(*jobs_.find(child))) continue;
        if (jobs_.edit(child, [](record& r) { return job_machine::parent_requeued(r); })) armed_again(child, now);
    }
}

void job_rules::forget(const identifier& id, store_time now) {
    jobs_.erase(id);
    gone_.put(id, true, now + in_store_time(keep_.tombstones), now);
}

int job_rules::purge(job_state state, duration older_than, int limit, store_time now) {
    int purged = 0;
    for (; purged < limit; ++purged) {
        const auto id = jobs_.first_ended(state, now - in_store_time(older_than));
        if (!id) break;
        forget(*id, now);
    }
    forget_what_was_kept_long_enough(now);
    return purged;
}

int job_rules::discard(const std::vector<identifier>& which, store_time now) {
    int discarded = 0;
    for (const identifier& id : which) {
        const record* found = jobs_.find(id);
        if (found == nullptr || !is_final(found->job.state)) continue;
        forget(id, now);
        ++discarded;
    }
    return discarded;
}

// Not as many as there are jobs to recover: those are few, and these may be all that there were.
void job_rules::forget_what_was_kept_long_enough(store_time now) {
    for (int i = 0; i < 100'000; ++i) {
        const auto id = jobs_.first_to_forget(now);
        if (!id) return;
        forget(*id, now);
    }
}

std::vector<queue_view> job_rules::queues() const {
    std::map<std::string, bool> all;
    for (std::string& each : jobs_.queues()) all.emplace(std::move(each), false);
    for (const std::string& each : paused_) all[each] = true;
    std::vector<queue_view> views;
    for (const auto& [name, paused] : all) views.push_back({name, paused});
    return views;
}

job_lookup job_rules::get(const identifier& id, store_time now) const {
    const record* found = jobs_.find(id);
    if (found == nullptr) return gone_.find(id, now) != nullptr ? job_absence::expired : job_absence::never_known;
    job_view view = found->job;
    view.state = job_machine::seen_state(*found, now);
    return view;
}

job_page job_rules::list(const job_filter& filter, int limit, std::optional<identifier> before, store_time now) const {
    job_page page;
    auto at = before ? jobs_.all().lower_bound(*before) : jobs_.all().end();
    while (at != jobs_.all().begin()) {
        --at;
        const record& r = at->second;
        const job_state state = job_machine::seen_state(r, now);
        if (filter.state && *filter.state != state) continue;
        if (filter.queue && *filter.queue != r.job.queue) continue;
        if (filter.type && *filter.type != r.job.what.type) continue;
        if (page.jobs.size() == static_cast<std::size_t>(limit)) { // there is one more
            page.next = to_text(page.jobs.back().id);
            break;
        }
        page.jobs.push_back(r.job);
        page.jobs.back().state = state;
        page.jobs.back().history.clear();
    }
    return page;
}

std::vector<job_count> job_rules::counts(store_time now) const {
    std::map<std::pair<std::string, job_state>, std::uint64_t> all;
    for (const auto& [id, r] : jobs_.all()) ++all[{r.job.queue, job_machine::seen_state(r, now)}];
    std::vector<job_count> counts;
    for (const auto& [which, count] : all) counts.push_back({which.first, which.second, count});
    return counts;
}

void job_rules::clear() {
    jobs_.clear();
    gone_.clear();
    paused_.clear();
}

} // namespace holdfast::memory
