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
          keep_(std::chrono::duration_cast<std::chrono::microseconds>(s.how().keep_succeeded).count()),
          forget_first_(keep_ <= 0) {}

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
        const std::size_t ended = end_as(some, token, forget_first_);
        if (ended == some.size()) return;
        std::erase_if(some, [&](const entry& e) { return done_[e.place]; });
        if (end_as(some, token, !forget_first_) > ended) forget_first_ = !forget_first_; // the next are likely alike
    }
    std::size_t end_as(const std::vector<entry>& some, std::uint64_t token, bool forget) {
        auto ended = s_.run(forget ? query::job_done_forget : query::job_done_keep, token, keep_, s_.now());
        for (std::size_t i = 0; i < ids_at_once; ++i) ended.bind(some[std::min(i, some.size() - 1)].id);
        std::size_t count = 0;
        for (; ended.step(); ++count) {
            const std::size_t place = std::ranges::lower_bound(some, ended.value<identifier>(), {}, &entry::id)->place;
            done_[place] = true;
            answers_[place] = {write_answer::done, job_state::succeeded};
        }
        return count;
    }

    session& s_;
    std::span<const settlement> which_;
    std::vector<settled>& answers_;
    std::vector<bool> done_;
    const std::int64_t keep_;
    bool forget_first_;
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
