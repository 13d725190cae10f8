#include "rows.hpp"

namespace holdfast::postgres {

claimed_job read_claimed(const pqxx::result& from, std::size_t row, std::int64_t& due) {
    reader cells(from, row);
    const identifier id = cells.id();
    claimed_job job{.lease = job_lease(to_text(id), static_cast<std::uint64_t>(cells.integer())),
                    .id = id,
                    .what = {},
                    .queue = {},
                    .extra = {}};
    due = cells.integer();
    job.queue = cells.text();
    job.priority = cells.small();
    job.attempt = cells.small();
    job.max_attempts = cells.small();
    job.crash_count = cells.small();
    job.generation = cells.small();
    job.may_restart = cells.flag();
    job.cancel_requested = cells.flag();
    job.what.type = cells.text();
    job.what.version = cells.small();
    job.what.content_type = cells.bytes();
    job.extra = decode_headers(cells.bytes());
    job.what.body = cells.bytes();
    return job;
}

job_view read_job(reader& cells) {
    job_view job;
    job.id = cells.id();
    job.state = static_cast<job_state>(cells.integer());
    job.queue = cells.text();
    job.priority = cells.small();
    job.created = cells.time();
    job.due_at = cells.time();
    job.ended = cells.optional_time();
    job.attempts = cells.small();
    job.max_attempts = cells.small();
    job.crash_count = cells.small();
    job.max_crashes = cells.small();
    job.generation = cells.small();
    job.may_restart = cells.flag();
    job.cancel_requested = cells.flag();
    job.worker = cells.bytes();
    job.leased_until = cells.optional_time();
    job.unique_key = cells.optional_bytes();
    job.parent = cells.optional_id();
    job.extra = decode_headers(cells.bytes());
    job.percent = cells.small();
    job.note = cells.bytes();
    job.last_error.type = cells.bytes();
    job.last_error.message = cells.bytes();
    job.output = cells.bytes();
    job.what.type = cells.text();
    job.what.version = cells.small();
    job.what.content_type = cells.bytes();
    job.what.body = cells.bytes();
    return job;
}

namespace {

std::string_view cut(std::string_view& text, char at) {
    const std::size_t end = text.find(at);
    const std::string_view piece = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    return piece;
}

std::string cut_hex(std::string_view& text) {
    std::string digits = "\\x" + std::string(cut(text, ','));
    digits.pop_back(); // the dot that tells an empty one from none
    return decode_bytes(digits).value_or(std::string());
}

// "generation,number,token,started,ended,outcome,worker.,error type.,error message.;…", bytes in hex.
std::vector<attempt_entry> read_history(std::string_view text) {
    std::vector<attempt_entry> all;
    while (!text.empty()) {
        std::string_view one = cut(text, ';');
        const auto number = [&] { return decode_integer(cut(one, ',')).value_or(0); };
        attempt_entry entry;
        entry.generation = static_cast<int>(number());
        entry.number = static_cast<int>(number());
        entry.token = static_cast<std::uint64_t>(number());
        entry.started = to_store_time(number());
        entry.ended = to_store_time(number());
        entry.outcome = cut(one, ',');
        entry.worker = cut_hex(one);
        entry.error.type = cut_hex(one);
        entry.error.message = cut_hex(one);
        all.push_back(std::move(entry));
    }
    return all;
}

} // namespace

job_lookup read_lookup(const pqxx::result& from) {
    reader cells(from, 0);
    const bool was_there = cells.flag();
    const std::string history = cells.text();
    const auto token = cells.optional_integer();
    if (!token) return was_there ? job_absence::expired : job_absence::never_known;
    const auto claimed_at = cells.optional_integer();
    std::string worker = cells.bytes();
    const auto state = static_cast<job_state>(cells.integer());
    job_view job = read_job(cells);
    job.history = read_history(history);
    // These two have the latest attempt in the job's own row.
    const auto latest = static_cast<std::uint64_t>(*token);
    const bool written = !job.history.empty() && job.history.back().token == latest;
    if (state == job_state::processing || (state == job_state::succeeded && !written))
        job.history.push_back({job.generation,
                               job.attempts,
                               latest,
                               std::move(worker),
                               to_store_time(claimed_at.value_or(0)),
                               job.ended,
                               state == job_state::processing ? "running" : "succeeded",
                               {}});
    return job;
}

leased_message read_leased(const pqxx::result& from, std::size_t row) {
    reader cells(from, row);
    const auto position = static_cast<std::uint64_t>(cells.integer());
    const identifier id = cells.id();
    message_lease lease(to_text(id), static_cast<std::uint64_t>(cells.integer()));
    const int attempts = cells.small();
    return {std::move(lease), position, attempts, read_message(cells, id)};
}

message_view read_set_aside(const pqxx::result& from, std::size_t row) {
    reader cells(from, row);
    message_view view;
    view.position = static_cast<std::uint64_t>(cells.integer());
    const identifier id = cells.id();
    cells.skip();
    view.attempts = cells.small();
    view.message = read_message(cells, id);
    view.last_error = cells.bytes();
    return view;
}

} // namespace holdfast::postgres
