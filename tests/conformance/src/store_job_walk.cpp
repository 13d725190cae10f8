// Jobs: whatever happens to them, the store says what job_machine.hpp says.
#include <algorithm>
#include <map>

#include <holdfast/backoff.hpp>
#include <holdfast/job_machine.hpp>

#include "store_jobs.hpp"

namespace holdfast::conformance {

namespace {

using job_machine::record;

// The jobs as records that the machine alone changes, and what concerns several of them at once.
class model {
public:
    const std::map<identifier, record>& records() const noexcept { return records_; }
    const std::map<identifier, job_absence>& absent() const noexcept { return absent_; }
    // Null when it is not there any more, or never was.
    record* find(const identifier& id) {
        const auto found = records_.find(id);
        return found == records_.end() ? nullptr : &found->second;
    }

    enqueued enqueue(const new_job& n, store_time now) {
        if (find(n.id) != nullptr) return {n.id, false};
        if (const auto gone = absent_.find(n.id); gone != absent_.end() && gone->second == job_absence::expired)
            return {n.id, false};
        if (n.unique_key)
            if (const auto holder = holder_of(n.what.type, *n.unique_key)) return {*holder, false};
        auto parent = job_machine::parent_is::none;
        if (const record* known = n.parent ? find(*n.parent) : nullptr)
            parent = !is_final(known->job.state)                ? job_machine::parent_is::open
                     : known->job.state == job_state::succeeded ? job_machine::parent_is::succeeded
                                                                : job_machine::parent_is::dead;
        absent_.erase(n.id);
        records_.emplace(n.id, job_machine::make(n, now, parent));
        return {n.id, true};
    }
    settled settle(const identifier& id, std::uint64_t token, const settlement& how, store_time now) {
        record* r = find(id);
        if (r == nullptr) return {write_answer::gone, {}};
        const settled answer = job_machine::settle(*r, token, how, now);
        if (answer.answer != write_answer::done || !is_final(answer.now)) return answer;
        ended(id, answer.now == job_state::succeeded, now);
        if (answer.now == job_state::succeeded && r->keep_for == duration::zero()) {
            records_.erase(id);
            absent_.emplace(id, job_absence::never_known); // a store may also leave a note
        }
        return answer;
    }
    recovery recover(store_time now) {
        recovery total;
        for (auto& [id, r] : records_) {
            switch (job_machine::recover(r, now)) {
            case job_machine::recovered::not_stale: continue;
            case job_machine::recovered::requeued: ++total.requeued; break;
            case job_machine::recovered::failed: ++total.failed; break;
            case job_machine::recovered::deleted: ++total.deleted; break;
            case job_machine::recovered::dead_letter: ++total.dead_letter; break;
            }
            if (is_final(r.job.state)) ended(id, false, now);
        }
        return total;
    }
    cancel_answer cancel(const identifier& id, store_time now) {
        record* r = find(id);
        if (r == nullptr) return cancel_answer::not_found;
        const auto answer = job_machine::cancel(*r, now);
        if (answer == cancel_answer::cancelled) ended(id, false, now);
        return answer;
    }
    bool requeue(const identifier& id, store_time now) {
        record* r = find(id);
        if (r == nullptr || !is_final(r->job.state) || !key_is_free(*r) || !job_machine::requeue(*r, now)) return false;
        armed_again(id);
        return true;
    }
    int purge(job_state state) {
        std::vector<identifier> which;
        for (const auto& [id, r] : records_)
            if (r.job.state == state) which.push_back(id);
        for (const identifier& each : which) forget(each);
        return static_cast<int>(which.size());
    }
    bool discard(const identifier& id) {
        const record* r = find(id);
        if (r == nullptr || !is_final(r->job.state)) return false;
        forget(id);
        return true;
    }

    // What a requeue of this one may set going again: the whole family that its end has cancelled.
    std::vector<const record*> family(const identifier& id) {
        std::vector<const record*> all = {find(id)};
        for (std::size_t i = 0; i < all.size(); ++i)
            for (record* child : children(all[i]->job.id))
                if (child->cancelled_by_parent) all.push_back(child);
        return all;
    }

private:
    std::vector<record*> children(const identifier& parent) {
        std::vector<record*> all;
        for (auto& [id, r] : records_)
            if (r.job.parent == parent) all.push_back(&r);
        return all;
    }
    std::optional<identifier> holder_of(const std::string& type, const std::string& key) const {
        for (const auto& [id, r] : records_)
            if (r.job.what.type == type && r.job.unique_key == key && !is_final(r.job.state)) return id;
        return std::nullopt;
    }
    bool key_is_free(const record& r) const {
        return !r.job.unique_key || !holder_of(r.job.what.type, *r.job.unique_key);
    }
    void ended(const identifier& parent, bool succeeded, store_time now) {
        for (record* child : children(parent))
            if (job_machine::parent_ended(*child, succeeded, now) && !succeeded) ended(child->job.id, false, now);
    }
    void armed_again(const identifier& parent) {
        for (record* child : children(parent))
            if (key_is_free(*child) && job_machine::parent_requeued(*child)) armed_again(child->job.id);
    }
    void forget(const identifier& id) {
        records_.erase(id);
        absent_.emplace(id, job_absence::expired);
    }

    std::map<identifier, record> records_;
    std::map<identifier, job_absence> absent_; // those that were there
};

// Times are compared roughly: what is later is an hour later.
std::string when(std::optional<store_time> time, store_time now) {
    return !time ? "never" : *time <= now ? "past" : *time <= now + 30min ? "soon" : "later";
}

std::string story(const job_view& job, job_state state, store_time now) {
    std::string text =
        std::string(to_text(state)) + " attempts " + std::to_string(job.attempts) + "/" +
        std::to_string(job.max_attempts) + " crashes " + std::to_string(job.crash_count) + " generation " +
        std::to_string(job.generation) + " priority " + std::to_string(job.priority) + " type " + job.what.type +
        " key " + job.unique_key.value_or("-") + " parent " + (job.parent ? to_text(*job.parent) : "-") + " due " +
        when(job.due_at, now) + " ended " + when(job.ended, now) + " leased until " + when(job.leased_until, now) +
        " by '" + job.worker + "'" + (job.cancel_requested ? " to be cancelled" : "") +
        (job.may_restart ? "" : " not restarted") + " at " + std::to_string(job.percent) + "% " + job.note + " error " +
        job.last_error.type + "/" + job.last_error.message + " output " + job.output + ":";
    for (const auto& each : job.history)
        text += " " + std::to_string(each.generation) + "." + std::to_string(each.number) + " " + each.outcome + " " +
                each.worker + " " + each.error.type + "/" + each.error.message + (each.ended ? "" : "...");
    return text;
}

// The jobs twice: in the store, and in the model.
class twins {
public:
    twins(store_lab& in, std::uint64_t seed) : in_(in), user_(in), random_(seed) {}

    void step() {
        switch (below(16)) {
        case 0:
        case 1:
        case 2: add(); break;
        case 3:
        case 4:
        case 5: claim(); break;
        case 6:
        case 7:
        case 8: settle(); break;
        case 9: write(); break;
        case 10: heartbeat(); break;
        case 11: recover(); break;
        case 12: cancel(); break;
        case 13:
        case 14: requeue(); break;
        default: forget(); break;
        }
    }
    void compare() {
        for (const auto& [id, expected] : model_.records()) {
            const job_view found = user_.view(id);
            const store_time now = in_.now();
            check_equal(story(found, found.state, now),
                        story(expected.job, job_machine::seen_state(expected, now), now), "a job");
        }
        for (const auto& [id, expected] : model_.absent()) {
            const auto found = user_.absence(id);
            check(found.has_value(), "the job " + to_text(id) + " is not there any more");
            check(expected != job_absence::expired || *found == expected, "a note stays that it was there");
        }
    }

private:
    struct given {
        job_lease lease;
        identifier id;
        std::uint64_t token; // the machine's, from a count of the walk
    };

    std::uint64_t below(std::uint64_t n) { return random_.next() % n; }
    bool one_in(std::uint64_t n) { return below(n) == 0; }
    due some_time() {
        switch (below(6)) {
        case 0: return due::after(1h);
        case 1: return due::at(in_.now() + 1h);
        case 2: return due::at(in_.now() - 1h);
        default: return due::now();
        }
    }
    // Of those that were ever enqueued; nothing before the first.
    std::optional<identifier> some_job() {
        if (ids_.empty()) return std::nullopt;
        return ids_[below(ids_.size())];
    }
    // Any lease that was ever given out, more likely a new one, so many are stale.
    given* some_lease() {
        if (leases_.empty()) return nullptr;
        const std::size_t among = one_in(4) ? leases_.size() : std::min<std::size_t>(leases_.size(), 4);
        return &leases_[leases_.size() - 1 - below(among)];
    }
    write_answer expected_of(const given& held) {
        const record* r = model_.find(held.id);
        return r == nullptr ? write_answer::gone : job_machine::may_write(*r, held.token);
    }

    void add() {
        std::vector<new_job> batch(1 + (one_in(4) ? below(4) : 0));
        for (new_job& j : batch) {
            j = user_.make();
            if (one_in(8) && &j == &batch.front()) j.id = some_job().value_or(j.id); // once more
            j.what.type = one_in(2) ? "a" : "b";
            j.priority = static_cast<int>(below(3)) - 1;
            j.when = some_time();
            j.max_attempts = 1 + static_cast<int>(below(3));
            j.max_crashes = static_cast<int>(below(3));
            j.may_restart = !one_in(3);
            if (one_in(3)) j.unique_key = std::string(1, static_cast<char>('k' + below(3)));
            if (one_in(3)) j.parent = one_in(8) ? in_.next_id() : some_job();
            if (one_in(4)) j.keep_for = duration::zero();
        }
        const auto found = in_.ok(user_.jobs().enqueue(batch), "enqueue");
        check_equal(found.size(), batch.size(), "answers");
        const store_time now = in_.now();
        for (std::size_t i = 0; i < batch.size(); ++i) {
            // What left no note may still have left one.
            if (model_.absent().contains(batch[i].id) && !found[i].created) continue;
            const enqueued expected = model_.enqueue(batch[i], now);
            check_equal(found[i].created, expected.created,
                        "created, of a job of type " + batch[i].what.type + " with the key " +
                            batch[i].unique_key.value_or("-") + ", where the machine has " + to_text(expected.id));
            check_equal(found[i].id, expected.id, "the job that there is");
            if (expected.created) ids_.push_back(batch[i].id);
        }
    }
    void claim() {
        const duration lease = one_in(2) ? duration(1us) : duration(1h);
        const int limit = 1 + static_cast<int>(below(3));
        auto claimed = user_.claim(limit, lease);
        const store_time now = in_.now();
        std::vector<int> due; // priorities of those that could be claimed
        for (const auto& [id, r] : model_.records())
            if (job_machine::claimable(r, now)) due.push_back(r.job.priority);
        std::ranges::sort(due, std::greater{});
        due.resize(std::min(due.size(), static_cast<std::size_t>(limit)));
        std::vector<int> found;
        for (auto& each : claimed) {
            record* r = model_.find(each.id);
            check(r != nullptr && job_machine::claimable(*r, now), "what is claimed could be claimed");
            found.push_back(each.priority);
            job_machine::claim(*r, ++claims_, "w", lease, now);
            check_equal(each.attempt, r->job.attempts, "attempt");
            check_equal(each.generation, r->job.generation, "generation");
            check_equal(each.crash_count, r->job.crash_count, "crash_count");
            if (one_in(2)) {
                check_equal(user_.started(each.lease), write_answer::done, "started");
                r->started = true;
            }
            leases_.push_back({std::move(each.lease), each.id, r->token});
        }
        check_equal(found, due, "priorities of what was claimed");
    }
    void settle() {
        std::vector<const given*> held;
        for (std::uint64_t i = 0; i <= below(3); ++i) {
            const given* one = some_lease();
            if (one != nullptr && std::ranges::find(held, one) == held.end()) held.push_back(one);
        }
        std::vector<settlement> batch;
        for (const given* each : held) {
            settlement& how = batch.emplace_back();
            how.held = &each->lease;
            how.how = static_cast<settlement::kind>(below(8));
            if (how.how == settlement::kind::retry || how.how == settlement::kind::snooze) how.when = some_time();
            if (one_in(2)) how.error = {one_in(4) ? "" : "type", "message " + std::to_string(below(100))};
            if (one_in(2)) how.output = "output " + std::to_string(below(100));
        }
        const auto found = in_.ok(user_.jobs().settle(batch), "settle");
        check_equal(found.size(), batch.size(), "answers");
        const store_time now = in_.now();
        for (std::size_t i = 0; i < held.size(); ++i) {
            const settled expected = model_.settle(held[i]->id, held[i]->token, batch[i], now);
            check_equal(found[i].answer, expected.answer, "answer to a settlement");
            if (expected.answer == write_answer::done) check_equal(found[i].now, expected.now, "state when settled");
        }
    }
    void write() {
        const given* held = some_lease();
        if (held == nullptr) return;
        const write_answer expected = expected_of(*held);
        record* r = expected == write_answer::done ? model_.find(held->id) : nullptr;
        if (one_in(3)) {
            check_equal(user_.started(held->lease), expected, "answer to started");
            if (r != nullptr) r->started = true;
            return;
        }
        const int percent = static_cast<int>(below(101));
        const std::string note = one_in(2) ? "" : "note " + std::to_string(below(100));
        check_equal(user_.progress(held->lease, percent, note), expected, "answer to progress");
        if (r == nullptr) return;
        r->job.percent = percent;
        r->job.note = note;
    }
    void heartbeat() {
        const given* held = some_lease();
        if (held == nullptr) return;
        const duration lease = one_in(2) ? duration(1us) : duration(1h);
        const beat found = user_.heartbeat(held->lease, lease);
        record* r = model_.find(held->id);
        const beat expected =
            r == nullptr ? beat{write_answer::gone, false} : job_machine::heartbeat(*r, held->token, lease, in_.now());
        check_equal(found.answer, expected.answer, "answer to a heartbeat");
        check_equal(found.cancel_requested, expected.cancel_requested, "cancel_requested");
    }
    void recover() {
        in_.pass(2us); // so that the shortest leases have run out
        const recovery found = user_.recover();
        const recovery expected = model_.recover(in_.now());
        check_equal(found.requeued, expected.requeued, "requeued");
        check_equal(found.failed, expected.failed, "failed");
        check_equal(found.deleted, expected.deleted, "deleted");
        check_equal(found.dead_letter, expected.dead_letter, "dead_letter");
    }
    void cancel() {
        const auto id = some_job();
        if (!id) return;
        check_equal(user_.cancel(*id), model_.cancel(*id, in_.now()), "answer to cancel");
    }
    void requeue() {
        const auto id = some_job();
        if (!id || is_ambiguous(*id)) return;
        check_equal(user_.requeue({*id}), model_.requeue(*id, in_.now()) ? 1 : 0, "requeued");
    }
    // Two of one family want the same key: which of them gets it is nobody's promise.
    bool is_ambiguous(const identifier& id) {
        if (model_.find(id) == nullptr) return false;
        std::vector<std::pair<std::string, std::string>> keys;
        for (const record* each : model_.family(id))
            if (each->job.unique_key) keys.emplace_back(each->job.what.type, *each->job.unique_key);
        std::ranges::sort(keys);
        return std::ranges::adjacent_find(keys) != keys.end();
    }
    void forget() {
        in_.pass(2us); // so that what has ended did so longer ago than now
        if (one_in(4)) {
            const auto state =
                static_cast<job_state>(static_cast<std::uint64_t>(job_state::succeeded) + below(job_state_count - 4));
            check_equal(in_.ok(user_.jobs().purge(state, duration::zero(), 1000), "purge"), model_.purge(state),
                        "purged");
            return;
        }
        const auto id = some_job();
        if (!id) return;
        const auto found = in_.await(user_.jobs().discard({*id}));
        if (!found && found.error().code == errc::unsupported) return;
        check_equal(in_.value_of(found, "discard"), model_.discard(*id) ? 1 : 0, "discarded");
    }

    store_lab& in_;
    job_user user_;
    random_series random_;
    model model_;
    std::vector<identifier> ids_;
    std::vector<given> leases_;
    std::uint64_t claims_ = 0;
};

void walks_beside_the_machine(store_lab& in) {
    constexpr int steps = 600;
    for (std::uint64_t seed = in.seed(); seed < in.seed() + 3; ++seed) {
        int at = 0;
        try {
            twins both(in, seed);
            for (; at < steps; ++at) {
                both.step();
                if (at % 10 == 9) both.compare();
            }
        } catch (const check_failed& e) {
            throw check_failed("seed " + std::to_string(seed) + ", call " + std::to_string(at + 1) + ": " + e.what());
        }
        in.ok(in.store().destroy(), "destroy()");
        in.ok(in.store().prepare(), "prepare()");
    }
}

} // namespace

store_case_list job_walk_cases() {
    return {{"random calls leave every job as the state machine would", &walks_beside_the_machine}};
}

} // namespace holdfast::conformance
