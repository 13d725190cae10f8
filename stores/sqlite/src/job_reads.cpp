#include <algorithm>
#include <limits>

#include "job_calls.hpp"
#include "rows.hpp"

namespace holdfast::sqlite {

namespace {

std::optional<store_time> first_due(session& s, const std::string& queue) {
    std::optional<store_time> first;
    for (std::int64_t below = std::numeric_limits<std::int64_t>::max();;) {
        auto level = s.run(query::job_next_priority, queue, below);
        if (!level.step()) return first;
        level.read(below);
        auto row = s.run(query::job_first_due, queue, below);
        if (!row.step()) continue;
        const auto due = row.value<store_time>();
        if (!first || due < *first) first = due;
    }
}

// The sweep has not come by yet.
bool is_expired(const session& s, const job_view& job, std::optional<store_time> expires) {
    if (expires) return *expires <= s.now();
    return job.state == job_state::succeeded && job.ended && after(*job.ended, s.how().keep_succeeded) <= s.now();
}

} // namespace

std::optional<duration> next_due(session& s, const std::vector<std::string>& queues) {
    std::optional<store_time> first;
    for (const std::string& queue : queues) {
        if (s.any(s.run(query::queue_paused, queue))) continue;
        const auto due = first_due(s, queue);
        if (due && (!first || *due < *first)) first = due;
    }
    if (!first) return std::nullopt;
    return std::max<duration>(*first - s.now(), duration::zero());
}

std::vector<queue_view> list_queues(session& s) {
    std::vector<queue_view> found;
    auto rows = s.run(query::queue_list);
    while (rows.step()) rows.read(found.emplace_back().name, found.back().paused);
    return found;
}

job_lookup find(session& s, const identifier& id) {
    auto row = s.run(query::job_view, id);
    if (!row.step())
        return s.any(s.run(query::job_tombstone, id, s.now())) ? job_absence::expired : job_absence::never_known;
    std::int64_t seq = 0;
    std::optional<store_time> expires;
    job_view job = read_view_row(row, s.now(), seq, expires);
    if (is_expired(s, job, expires)) return job_absence::expired;

    std::vector<attempt_entry> latest = std::move(job.history);
    job.history.clear();
    auto rows = s.run(query::job_history, seq);
    while (rows.step()) {
        attempt_entry& e = job.history.emplace_back();
        rows.read(e.generation, e.number, e.token, e.worker, e.started, e.ended, e.outcome, e.error.type,
                  e.error.message);
    }
    for (attempt_entry& each : latest) job.history.push_back(std::move(each));
    return job;
}

job_page list(session& s, const job_filter& filter, int limit, std::optional<identifier> below) {
    static constexpr std::string_view above_all("\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF",
                                                17);
    const statement text = compile(s.handle(), s.texts().list_jobs(filter), false);
    use rows(s.handle(), text.get());
    rows.bind(s.now());
    if (below) rows.bind(*below);
    else rows.bind(bytes{above_all});
    rows.bind(static_cast<std::int64_t>(limit) + 1);
    if (filter.queue) rows.bind(*filter.queue);
    if (filter.type) rows.bind(*filter.type);

    job_page page;
    std::int64_t seq = 0;
    std::optional<store_time> expires;
    while (rows.step()) {
        if (page.jobs.size() == static_cast<std::size_t>(limit)) {
            page.next = to_text(page.jobs.back().id);
            break;
        }
        page.jobs.push_back(read_view_row(rows, s.now(), seq, expires));
        page.jobs.back().history.clear();
    }
    return page;
}

std::vector<job_count> count_jobs(session& s) {
    std::vector<job_count> counts;
    auto rows = s.run(query::job_counts, s.now());
    while (rows.step()) {
        job_count& c = counts.emplace_back();
        int state = 0;
        rows.read(c.queue, state, c.count);
        c.state = static_cast<job_state>(state);
    }
    return counts;
}

} // namespace holdfast::sqlite
