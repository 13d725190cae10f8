// How jobs come in: plain ones many at once, the others one by one.
#include <algorithm>
#include <array>
#include <numeric>

#include "job_calls.hpp"
#include "job_records.hpp"

namespace holdfast::sqlite {

namespace {

job_machine::parent_is parent_of(session& s, const new_job& job) {
    using job_machine::parent_is;
    if (!job.parent) return parent_is::none;
    auto row = s.run(query::job_parent, *job.parent);
    if (!row.step()) return parent_is::none; // not known: it may have succeeded and been forgotten
    const auto state = static_cast<job_state>(row.value<int>());
    row.finish();
    if (!is_final(state)) return parent_is::open;
    return state == job_state::succeeded ? parent_is::succeeded : parent_is::dead;
}

std::optional<identifier> already_there(session& s, const new_job& job) {
    if (s.any(s.run(query::job_id_known, job.id))) return job.id;
    if (s.any(s.run(query::job_tombstone, job.id, s.now()))) return job.id;
    if (!job.unique_key) return std::nullopt;
    auto holder = s.run(query::job_by_key, job.what.type, bytes{*job.unique_key});
    if (!holder.step()) return std::nullopt;
    return holder.value<identifier>();
}

// False: it was there already.
bool insert(session& s, const new_job& job) {
    const job_machine::record r = job_machine::make(job, s.now(), parent_of(s, job));
    const payload& what = job.what;
    const bool large = what.body.size() > inline_body;
    const std::string extra = encode(job.extra);
    std::optional<std::int64_t> keep;
    if (job.keep_for) keep = std::chrono::duration_cast<std::chrono::microseconds>(*job.keep_for).count();
    std::optional<bytes> key;
    if (job.unique_key) key = bytes{*job.unique_key};
    const int made =
        s.exec(query::job_insert, job.id, job.queue, job.priority, static_cast<int>(r.job.state), r.job.due_at,
               job.max_attempts, job.max_crashes, job.may_restart, r.waits_for_parent, r.cancelled_by_parent, large,
               keep, r.job.created, r.job.ended, key, job.parent, what.type, what.version, what.content_type,
               bytes{extra}, bytes{large ? std::string_view() : what.body});
    if (made == 0) return false;
    if (large) s.exec(query::job_body_insert, bytes{what.body});
    if (job_machine::claimable(r, s.now())) s.woken.note(job.queue);
    return true;
}

// `graves`: there are jobs that were forgotten not long ago.
enqueued enqueue_one(session& s, const new_job& job, bool graves) {
    // What the insert cannot tell: of those forgotten, and before a parent is told that it has a child.
    if (graves || job.parent)
        if (const auto there = already_there(s, job)) return {*there, false};
    if (insert(s, job)) return {job.id, true};
    return {already_there(s, job).value_or(job.id), false};
}

bool is_plain(const new_job& job) {
    return !job.parent && !job.unique_key && job.what.body.size() <= inline_body;
}

// Many in one statement, in the order of their ids, so that every index grows at its end.
class plain_jobs {
public:
    plain_jobs(session& s, const std::vector<new_job>& jobs, std::vector<enqueued>& answers, bool graves)
        : s_(s), jobs_(jobs), answers_(answers), graves_(graves), order_(jobs.size()) {
        std::iota(order_.begin(), order_.end(), std::size_t{0});
        std::ranges::sort(order_, {}, [&](std::size_t i) { return std::pair(jobs_[i].id, i); });
    }

    void enqueue() {
        std::span<const std::size_t> left = order_;
        for (; left.size() >= jobs_at_once; left = left.subspan(jobs_at_once)) {
            const auto some = left.first(jobs_at_once);
            if (any_grave(some)) one_by_one(some);
            else if (const int made = insert(some); made < static_cast<int>(jobs_at_once)) tell_apart(some, made);
        }
        one_by_one(left);
    }

private:
    void one_by_one(std::span<const std::size_t> some) {
        for (const std::size_t i : some) answers_[i] = enqueue_one(s_, jobs_[i], graves_);
    }
    bool any_grave(std::span<const std::size_t> some) {
        const auto is_grave = [&](std::size_t i) {
            return s_.any(s_.run(query::job_tombstone, jobs_[i].id, s_.now()));
        };
        return graves_ && std::ranges::any_of(some, is_grave);
    }
    // How many were made.
    int insert(std::span<const std::size_t> some) {
        std::array<std::string, jobs_at_once> extras;
        auto rows = s_.run(query::job_insert_many);
        for (std::size_t k = 0; k < some.size(); ++k) {
            const new_job& job = jobs_[some[k]];
            const store_time due = job.when.on(s_.now());
            const bool ready = due <= s_.now();
            std::optional<std::int64_t> keep;
            if (job.keep_for) keep = std::chrono::duration_cast<std::chrono::microseconds>(*job.keep_for).count();
            extras[k] = encode(job.extra);
            rows.bind(job.id, job.queue, job.priority,
                      static_cast<int>(ready ? job_state::pending : job_state::scheduled), due, job.max_attempts,
                      job.max_crashes, job.may_restart, keep, s_.now(), job.what.type, job.what.version,
                      job.what.content_type, bytes{extras[k]}, bytes{job.what.body});
            if (ready) s_.woken.note(job.queue);
            answers_[some[k]] = {job.id, true};
        }
        rows.finish();
        return s_.changes();
    }
    // Some were there already. Those that were made have the latest numbers in the table; of two with one id, the first.
    void tell_apart(std::span<const std::size_t> some, int made) {
        const std::int64_t before = s_.last_row() - made;
        const identifier* earlier = nullptr;
        for (const std::size_t i : some) {
            auto row = s_.run(query::job_number, jobs_[i].id);
            const bool again = earlier != nullptr && *earlier == jobs_[i].id;
            answers_[i].created = made > 0 && !again && row.step() && row.value<std::int64_t>() > before;
            earlier = &jobs_[i].id;
        }
    }

    session& s_;
    const std::vector<new_job>& jobs_;
    std::vector<enqueued>& answers_;
    const bool graves_;
    std::vector<std::size_t> order_;
};

void note_queues(session& s, const std::vector<new_job>& jobs, const std::vector<enqueued>& answers) {
    const std::string* noted = nullptr;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
        if (!answers[i].created || (noted != nullptr && *noted == jobs[i].queue)) continue;
        s.exec(query::queue_note, jobs[i].queue);
        noted = &jobs[i].queue;
    }
}

} // namespace

std::vector<enqueued> enqueue(session& s, const std::vector<new_job>& jobs) {
    std::vector<enqueued> answers(jobs.size());
    const bool graves = s.any(s.run(query::job_any_tombstone));
    if (std::ranges::all_of(jobs, is_plain)) plain_jobs(s, jobs, answers, graves).enqueue();
    else std::ranges::transform(jobs, answers.begin(), [&](const new_job& job) { return enqueue_one(s, job, graves); });
    note_queues(s, jobs, answers);
    return answers;
}

} // namespace holdfast::sqlite
