// What workers call: claims, heartbeats, settlements.
#include <algorithm>
#include <limits>

#include "job_calls.hpp"
#include "job_records.hpp"

namespace holdfast::sqlite {

namespace {

// Priority by priority: an index cannot be sorted by priority and be cut off by due time at once.
void claim_from(session& s, const std::string& queue, const claim_request& request, std::uint64_t& token,
                std::vector<claimed_job>& taken) {
    if (s.any(s.run(query::queue_paused, queue))) return;
    const auto limit = static_cast<std::size_t>(request.limit);
    for (std::int64_t below = std::numeric_limits<std::int64_t>::max(); taken.size() < limit;) {
        auto level = s.run(query::job_next_priority, queue, below);
        if (!level.step()) return;
        level.read(below);
        const std::size_t before = taken.size();
        auto due = s.run(query::job_due, queue, below, s.now(), static_cast<std::int64_t>(limit - taken.size()));
        while (due.step()) {
            if (token == 0) token = s.next_token();
            claimed_job job{job_lease("", token), {}, {}, queue, static_cast<int>(below), 1, 1, 0, 1, true, false, {}};
            std::string extra;
            due.read(job.id, job.attempt, job.max_attempts, job.crash_count, job.generation, job.may_restart,
                     job.cancel_requested, job.what.type, job.what.version, job.what.content_type, extra,
                     job.what.body);
            ++job.attempt;
            job.extra = decode_headers(extra);
            job.lease = job_lease(to_text(job.id), token);
            taken.push_back(std::move(job));
        }
        if (taken.size() == before) continue;
        s.exec(query::job_take, queue, below, s.now(), static_cast<std::int64_t>(taken.size() - before), token,
               request.worker, after(s.now(), request.lease_for));
    }
}

} // namespace

std::vector<claimed_job> claim(session& s, const claim_request& request) {
    std::vector<claimed_job> taken;
    std::uint64_t token = 0; // one for all of the batch: it has to grow per job, not to differ between jobs
    for (const std::string& queue : request.queues) claim_from(s, queue, request, token, taken);
    return taken;
}

namespace {

// Nothing: no id that this store can have given out.
std::optional<identifier> subject_of(const job_lease* held) {
    if (held == nullptr) throw failed({errc::invalid_argument, "sqlite: a lease is missing", {}});
    return parse_identifier(held->subject());
}

write_answer why_not(session& s, const identifier& id) {
    return s.any(s.run(query::job_id_known, id)) ? write_answer::stale : write_answer::gone;
}

} // namespace

std::vector<write_answer> note_started(session& s, std::span<const job_lease* const> which) {
    std::vector<write_answer> answers;
    for (const job_lease* held : which) {
        const auto id = subject_of(held);
        if (!id) answers.push_back(write_answer::gone);
        else if (s.exec(query::job_started, *id, held->token()) > 0) answers.push_back(write_answer::done);
        else answers.push_back(why_not(s, *id));
    }
    return answers;
}

std::vector<write_answer> note_progress(session& s, std::span<const progress_report> which) {
    std::vector<write_answer> answers;
    for (const progress_report& p : which) {
        const auto id = subject_of(p.held);
        if (!id) answers.push_back(write_answer::gone);
        else if (s.exec(query::job_progress, *id, p.held->token(), p.percent, p.note) > 0)
            answers.push_back(write_answer::done);
        else answers.push_back(why_not(s, *id));
    }
    return answers;
}

std::vector<beat> heartbeat(session& s, std::span<const job_lease* const> held, duration lease_for) {
    std::vector<beat> answers;
    const store_time until = after(s.now(), lease_for);
    for (const job_lease* each : held) {
        const auto id = subject_of(each);
        if (!id) {
            answers.push_back({write_answer::gone, false});
            continue;
        }
        auto row = s.run(query::job_heartbeat, *id, each->token(), until);
        if (!row.step()) {
            answers.push_back({why_not(s, *id), false});
            continue;
        }
        answers.push_back({write_answer::done, row.value<bool>()});
        row.finish();
    }
    return answers;
}

namespace {

bool is_plain_success(const settlement& s) {
    return s.how == settlement::kind::succeed && s.output.empty() && s.error.type.empty() && s.error.message.empty();
}

// Most settlements by far, many in one statement.
class plain_successes {
public:
    struct entry {
        identifier id;
        std::size_t place;
    };

    plain_successes(session& s, std::span<const settlement> which, std::vector<settled>& answers)
        : s_(s), which_(which), answers_(answers), done_(which.size()),
          keep_(std::chrono::duration_cast<std::chrono::microseconds>(s.how().keep_succeeded).count()) {}

    // True for those that were settled; the others are of another kind, or their leases are not good.
    std::vector<bool> settle() {
        std::vector<entry> some;
        std::uint64_t token = 0;
        const auto flush = [&] {
            if (!some.empty()) end(some, token);
            some.clear();
        };
        for (std::size_t i = 0; i < which_.size(); ++i) {
            const auto id = is_plain_success(which_[i]) ? subject_of(which_[i].held) : std::nullopt;
            if (!id) continue;
            if (some.size() == ids_at_once || which_[i].held->token() != token) flush();
            token = which_[i].held->token();
            some.push_back({*id, i});
        }
        flush();
        return std::move(done_);
    }

private:
    void end(std::vector<entry>& some, std::uint64_t token) {
        // The first of two with one id comes first.
        std::ranges::sort(some, {}, [](const entry& e) { return std::pair(e.id, e.place); });
        if (some.size() > 1 && surprises_ < 2 && all_end_alike(some, token)) return;
        ++surprises_;
        const bool forget = s_.successes_go;
        const std::size_t ended = end_as(some, token, forget);
        if (ended == some.size()) return;
        std::erase_if(some, [&](const entry& e) { return done_[e.place]; });
        if (end_as(some, token, !forget) > ended) s_.successes_go = !forget; // the next are likely alike
    }
    // False: not all of them did, and nothing has been written.
    bool all_end_alike(const std::vector<entry>& some, std::uint64_t token) {
        s_.exec(query::savepoint_some);
        bound(s_.successes_go ? query::job_done_forget : query::job_done_keep, some, token).finish();
        const bool all = s_.changes() == static_cast<int>(some.size());
        if (!all) s_.exec(query::rollback_some);
        s_.exec(query::release_some);
        if (!all) return false;
        for (const entry& each : some) mark(each.place);
        return true;
    }
    std::size_t end_as(const std::vector<entry>& some, std::uint64_t token, bool forget) {
        auto ended = bound(forget ? query::job_done_forget_told : query::job_done_keep_told, some, token);
        std::size_t count = 0;
        for (; ended.step(); ++count)
            mark(std::ranges::lower_bound(some, ended.value<identifier>(), {}, &entry::id)->place);
        return count;
    }
    use bound(query which, const std::vector<entry>& some, std::uint64_t token) {
        auto made = s_.run(which, token, keep_, s_.now());
        for (std::size_t i = 0; i < ids_at_once; ++i) made.bind(some[std::min(i, some.size() - 1)].id);
        return made;
    }
    void mark(std::size_t place) {
        done_[place] = true;
        answers_[place] = {write_answer::done, job_state::succeeded};
    }

    session& s_;
    std::span<const settlement> which_;
    std::vector<settled>& answers_;
    std::vector<bool> done_;
    const std::int64_t keep_;
    int surprises_ = 0; // groups that did not end alike
};

} // namespace

std::vector<settled> settle(session& s, std::span<const settlement> which) {
    std::vector<settled> answers(which.size());
    const std::vector<bool> done = plain_successes(s, which, answers).settle();
    for (std::size_t i = 0; i < which.size(); ++i) {
        if (done[i]) continue;
        const settlement& each = which[i];
        const auto id = subject_of(each.held);
        auto job = id ? find_job(s, *id) : std::nullopt;
        if (!job) {
            answers[i] = {write_answer::gone, job_state::succeeded};
            continue;
        }
        answers[i] = job_machine::settle(job->r, each.held->token(), each, s.now());
        if (answers[i].answer == write_answer::done) store_transition(s, *job, each.output);
    }
    return answers;
}

} // namespace holdfast::sqlite
