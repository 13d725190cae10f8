#include "decode.hpp"

#include <charconv>

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
store_time to_time(std::string_view text) {
    return store_time(std::chrono::microseconds(to_number(text)));
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

headers decode_headers(std::string_view text) {
    const auto take = [&] {
        const auto colon = text.find(':');
        if (colon == std::string_view::npos) surprised();
        const auto size = static_cast<std::size_t>(to_number(text.substr(0, colon)));
        if (size > text.size() - colon - 1) surprised();
        std::string value(text.substr(colon + 1, size));
        text.remove_prefix(colon + 1 + size);
        return value;
    };
    headers all;
    while (!text.empty()) {
        std::string name = take();
        all[std::move(name)] = take();
    }
    return all;
}

claimed_job decode_claimed(reply& from) {
    reader r(from);
    std::string subject = r.text();
    const identifier id = to_id(subject);
    job_lease held(std::move(subject), r.token());
    claimed_job job{.lease = std::move(held), .id = id, .what = r.what(), .queue = r.text(), .extra = {}};
    job.priority = r.integer();
    job.attempt = r.integer();
    job.max_attempts = r.integer();
    job.crash_count = r.integer();
    job.generation = r.integer();
    job.may_restart = r.flag();
    job.cancel_requested = r.flag();
    job.extra = decode_headers(r.text());
    return job;
}

job_view decode_job(int state, reply& fields) {
    job_view job;
    job.state = static_cast<job_state>(state);
    attempt_entry running;
    running.outcome = "running";
    reader r(fields);
    while (r.more()) {
        const std::string name = r.text();
        std::string value = r.text();
        if (name == "id") job.id = to_id(value);
        else if (name == "type") job.what.type = std::move(value);
        else if (name == "ver") job.what.version = to_int(value);
        else if (name == "ct") job.what.content_type = std::move(value);
        else if (name == "body") job.what.body = std::move(value);
        else if (name == "q") job.queue = std::move(value);
        else if (name == "pri") job.priority = to_int(value);
        else if (name == "cr") job.created = to_time(value);
        else if (name == "due") job.due_at = to_time(value);
        else if (name == "end") job.ended = to_time(value);
        else if (name == "att") job.attempts = running.number = to_int(value);
        else if (name == "max") job.max_attempts = to_int(value);
        else if (name == "crash") job.crash_count = to_int(value);
        else if (name == "gen") job.generation = running.generation = to_int(value);
        else if (name == "rs") job.may_restart = value == "1";
        else if (name == "cxl") job.cancel_requested = value == "1";
        else if (name == "wk") job.worker = running.worker = std::move(value);
        else if (name == "till" && !value.empty()) job.leased_until = to_time(value);
        else if (name == "at") running.started = to_time(value);
        else if (name == "tok") running.token = static_cast<std::uint64_t>(to_number(value));
        else if (name == "uk") job.unique_key = std::move(value);
        else if (name == "par") job.parent = to_id(value);
        else if (name == "ex") job.extra = decode_headers(value);
        else if (name == "pct") job.percent = to_int(value);
        else if (name == "note") job.note = std::move(value);
        else if (name == "let") job.last_error.type = std::move(value);
        else if (name == "lem") job.last_error.message = std::move(value);
        else if (name == "out") job.output = std::move(value);
    }
    if (job.state == job_state::processing) job.history.push_back(std::move(running));
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
    v.message.extra = decode_headers(r.text());
    v.last_error = r.text();
    const std::uint64_t token = r.token();
    v.message.id = r.id();
    return {std::move(v), token};
}

} // namespace holdfast::redis
