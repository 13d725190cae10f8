#include "decode.hpp"

#include <holdfast/redis/texts.hpp>

#include "record.hpp"

namespace holdfast::redis {

namespace {

[[noreturn]] void surprised() {
    throw failed({errc::internal, "redis: a script answered in a form that this plugin does not know", {}});
}

identifier to_id(std::string_view text) {
    const auto id = parse_identifier(text);
    if (!id) surprised();
    return *id;
}

store_time at(double microseconds) {
    return store_time(std::chrono::microseconds(static_cast<std::int64_t>(microseconds)));
}

} // namespace

claimed_job decode_claimed(std::string id, std::string_view packed, std::string_view what) {
    const identifier parsed = to_id(id);
    record r = unpack_record(packed);
    job_lease held(std::move(id), static_cast<std::uint64_t>(r.token));
    claimed_job job{.lease = std::move(held), .id = parsed, .what = {}, .queue = std::move(r.queue), .extra = {}};
    take_what(what, job.what, job.extra);
    job.priority = r.priority;
    job.attempt = r.attempts;
    job.max_attempts = r.max_attempts;
    job.crash_count = r.crash_count;
    job.generation = r.generation;
    job.may_restart = r.has(record::may_restart);
    job.cancel_requested = r.has(record::cancel_requested);
    return job;
}

job_view decode_job(reader& from) {
    job_view job;
    job.state = static_cast<job_state>(from.integer());
    job.id = from.id();
    record r = unpack_record(from.text());
    take_what(from.text(), job.what, job.extra);
    reader words(from.next());
    job.percent = words.integer();
    job.note = words.text();
    job.last_error.type = words.text();
    job.last_error.message = words.text();
    job.output = words.text();
    const std::int64_t leased_until = from.number();
    job.priority = r.priority;
    job.created = at(r.created);
    job.due_at = at(r.due);
    if (r.ended != 0) job.ended = at(r.ended);
    job.attempts = r.attempts;
    job.max_attempts = r.max_attempts;
    job.crash_count = r.crash_count;
    job.max_crashes = r.max_crashes;
    job.generation = r.generation;
    job.may_restart = r.has(record::may_restart);
    job.cancel_requested = r.has(record::cancel_requested);
    job.queue = std::move(r.queue);
    if (!r.unique_key.empty()) job.unique_key = r.unique_key.substr(job.what.type.size() + 1);
    if (!r.parent.empty()) job.parent = to_id(r.parent);
    const bool running = job.state == job_state::processing;
    if (running || r.has(record::tells_of_success)) {
        attempt_entry& last = job.history.emplace_back();
        last.generation = r.generation;
        last.number = r.attempts;
        last.token = static_cast<std::uint64_t>(r.token);
        last.worker = r.worker;
        last.started = at(r.started);
        if (!running) last.ended = job.ended;
        last.outcome = running ? "running" : "succeeded";
    }
    if (!running) return job;
    job.worker = std::move(r.worker);
    job.leased_until = store_time(std::chrono::microseconds(leased_until));
    return job;
}

attempt_entry decode_attempt(reply& from) {
    reader r(from);
    attempt_entry e;
    e.generation = r.integer();
    e.number = r.integer();
    e.token = r.token();
    e.worker = r.text();
    e.started = store_time(std::chrono::microseconds(r.number()));
    e.ended = store_time(std::chrono::microseconds(r.number()));
    e.outcome = r.text();
    e.error.type = r.text();
    e.error.message = r.text();
    return e;
}

std::pair<message_view, std::uint64_t> decode_message(reply& from) {
    reader r(from);
    message_view v;
    v.position = r.token();
    v.attempts = r.integer();
    v.message.topic = r.text();
    v.message.key = r.text();
    v.message.what = r.what();
    v.message.extra = to_headers(split_texts(r.text()));
    v.last_error = r.text();
    const std::uint64_t token = r.token();
    v.message.id = r.id();
    return {std::move(v), token};
}

} // namespace holdfast::redis
