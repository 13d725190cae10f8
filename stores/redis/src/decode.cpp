#include "decode.hpp"

#include <charconv>

#include "record.hpp"

namespace holdfast::redis {

namespace {

[[noreturn]] void surprised() {
    throw failed({errc::internal, "redis: a script answered in a form that this plugin does not know", {}});
}

std::int64_t to_number(std::string_view text) {
    std::int64_t value = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (problem != std::errc{} || end != text.data() + text.size()) surprised();
    return value;
}
int to_int(std::string_view text) {
    return static_cast<int>(to_number(text));
}
identifier to_id(std::string_view text) {
    const auto id = parse_identifier(text);
    if (!id) surprised();
    return *id;
}

} // namespace

reader::reader(reply& list) : list_(list) {
    if (list.what != reply::kind::list) surprised();
}
reply& reader::next() {
    if (!more()) surprised();
    return list_.items[at_++];
}
std::int64_t reader::number() {
    const reply& r = next();
    return r.what == reply::kind::integer ? r.number : to_number(r.text);
}
identifier reader::id() {
    return to_id(next().text);
}
payload reader::what() {
    payload p;
    p.type = text();
    p.version = integer();
    p.content_type = text();
    p.body = text();
    return p;
}

namespace {

headers to_headers(std::vector<std::string> texts) {
    headers all;
    if (texts.size() % 2 != 0) surprised();
    for (std::size_t i = 0; i < texts.size(); i += 2) all[std::move(texts[i])] = std::move(texts[i + 1]);
    return all;
}
// As encode(payload, headers) wrote it.
void take_what(std::string_view packed, payload& what, headers& extra) {
    auto texts = split_texts(packed);
    if (texts.size() != 5) surprised();
    what.type = std::move(texts[0]);
    what.version = to_int(texts[1]);
    what.content_type = std::move(texts[2]);
    what.body = std::move(texts[3]);
    extra = to_headers(split_texts(texts[4]));
}
store_time at(double microseconds) {
    return store_time(std::chrono::microseconds(static_cast<std::int64_t>(microseconds)));
}

} // namespace

claimed_job decode_claimed(reader& from) {
    std::string subject = from.text();
    const identifier id = to_id(subject);
    record r = unpack_record(from.text());
    job_lease held(std::move(subject), static_cast<std::uint64_t>(r.token));
    claimed_job job{.lease = std::move(held), .id = id, .what = {}, .queue = std::move(r.queue), .extra = {}};
    take_what(from.text(), job.what, job.extra);
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

std::vector<write_answer> decode_answers(reply& from) {
    std::vector<write_answer> answers;
    for (reader r(from); r.more();) answers.push_back(static_cast<write_answer>(r.integer()));
    return answers;
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
