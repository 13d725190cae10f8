#include "rows.hpp"

#include <charconv>
#include <utility>

namespace holdfast::sqlite {

std::string encode(const headers& extra) {
    std::string out;
    const auto add = [&](const std::string& text) {
        out += std::to_string(text.size());
        out += ':';
        out += text;
    };
    for (const auto& [name, value] : extra) {
        add(name);
        add(value);
    }
    return out;
}

headers decode_headers(std::string_view text) {
    const auto take = [&] {
        std::size_t size = 0;
        const auto [colon, problem] = std::from_chars(text.data(), text.data() + text.size(), size);
        const auto digits = static_cast<std::size_t>(colon - text.data());
        if (problem != std::errc{} || digits >= text.size() || text[digits] != ':' || text.size() - digits - 1 < size)
            throw failed({errc::internal, "sqlite: headers in the file are damaged", {}});
        const std::string taken(text.substr(digits + 1, size));
        text.remove_prefix(digits + 1 + size);
        return taken;
    };
    headers extra;
    while (!text.empty()) {
        std::string name = take();
        extra.insert_or_assign(std::move(name), take());
    }
    return extra;
}

namespace {

job_state state_of(int number) {
    if (number < 0 || number >= job_state_count)
        throw failed(
            {errc::internal, "sqlite: a job in the file is in the unknown state " + std::to_string(number), {}});
    return static_cast<job_state>(number);
}

} // namespace

stored_job read_machine_row(use& row) {
    stored_job s;
    job_view& job = s.r.job;
    int state = 0;
    std::optional<std::int64_t> keep;
    store_time claimed{};
    row.read(s.seq, job.id, state, s.r.token, job.attempts, job.max_attempts, job.crash_count, job.max_crashes,
             job.generation, job.may_restart, s.r.started, job.cancel_requested, s.r.waits_for_parent,
             s.r.cancelled_by_parent, s.has_children, s.runs, s.large, keep, job.due_at, job.ended, s.expires,
             job.leased_until, claimed, job.worker, job.last_error.type, job.last_error.message);
    job.state = state_of(state);
    if (keep) s.r.keep_for = std::chrono::microseconds{*keep};
    if (job.state == job_state::processing)
        job.history.push_back({job.generation, job.attempts, s.r.token, job.worker, claimed, {}, "running", {}});
    if (job.state != job_state::succeeded || !job.leased_until) return s;
    job.history.push_back(
        {job.generation, job.attempts, s.r.token, std::exchange(job.worker, {}), claimed, job.ended, "succeeded", {}});
    job.leased_until.reset();
    return s;
}

job_view read_view_row(use& row, store_time now, std::int64_t& seq, std::optional<store_time>& expires) {
    stored_job s = read_machine_row(row);
    s.r.job.state = job_machine::seen_state(s.r, now);
    job_view job = std::move(s.r.job);
    std::string extra;
    row.read(job.queue, job.priority, job.created, job.unique_key, job.parent, job.what.type, job.what.version,
             job.what.content_type, extra, job.percent, job.note, job.what.body, job.output);
    job.extra = decode_headers(extra);
    seq = s.seq;
    expires = s.expires;
    return job;
}

} // namespace holdfast::sqlite
