#include "frames.hpp"

#include <cstring>
#include <utility>

namespace holdfast::detail {

namespace {

// Both ends are the same program on the same machine, so numbers go as they are.
class writer {
public:
    writer& put(std::int64_t number) {
        bytes_.append(reinterpret_cast<const char*>(&number), sizeof number);
        return *this;
    }
    writer& put(std::string_view text) {
        put(static_cast<std::int64_t>(text.size()));
        bytes_.append(text);
        return *this;
    }
    writer& put(const std::optional<duration>& d) {
        put(std::int64_t{d.has_value()});
        return put(d.value_or(duration::zero()).count());
    }
    std::string take() { return std::move(bytes_); }

private:
    std::string bytes_;
};

class reader {
public:
    explicit reader(std::string_view bytes) : left_(bytes) {}

    std::int64_t number() {
        std::int64_t read = 0;
        if (left_.size() < sizeof read) {
            good_ = false;
            return 0;
        }
        std::memcpy(&read, left_.data(), sizeof read);
        left_.remove_prefix(sizeof read);
        return read;
    }
    int integer() { return static_cast<int>(number()); }
    std::string text() {
        const auto size = static_cast<std::uint64_t>(number());
        if (size > left_.size()) {
            good_ = false;
            return {};
        }
        std::string read(left_.substr(0, size));
        left_.remove_prefix(size);
        return read;
    }
    std::optional<duration> maybe_time() {
        const bool there = number() != 0;
        const duration d(number());
        return there ? std::optional(d) : std::nullopt;
    }
    bool good() const { return good_; }

    // Nothing unless all of it was read, and nothing more was asked for.
    template <class T>
    std::optional<T> whole(T read) const {
        return good_ && left_.empty() ? std::optional<T>(std::move(read)) : std::nullopt;
    }

private:
    std::string_view left_;
    bool good_ = true;
};

void put(writer& to, const error& e) {
    to.put(static_cast<std::int64_t>(e.code)).put(e.message).put(e.retry_after);
}
error read_error(reader& from) {
    error e;
    e.code = static_cast<errc>(from.number());
    e.message = from.text();
    e.retry_after = from.maybe_time();
    return e;
}

void put(writer& to, const settlement& s) {
    to.put(static_cast<std::int64_t>(s.how)).put(static_cast<std::int64_t>(s.when.how)).put(s.when.delay.count());
    to.put(s.when.time.time_since_epoch().count()).put(s.error.type).put(s.error.message);
}
settlement read_settlement(reader& from) {
    settlement s;
    s.how = static_cast<settlement::kind>(from.number());
    s.when.how = static_cast<due::kind>(from.number());
    s.when.delay = duration(from.number());
    s.when.time = store_time(store_time::duration(from.number()));
    s.error.type = from.text();
    s.error.message = from.text();
    return s;
}

void put(writer& to, const exception_decision& d) {
    to.put(static_cast<std::int64_t>(d.what)).put(static_cast<std::int64_t>(d.why)).put(d.after.count());
    to.put(d.rule ? static_cast<std::int64_t>(*d.rule) : -1).put(d.problem);
}
exception_decision read_decision(reader& from) {
    exception_decision d;
    d.what = static_cast<exception_decision::action>(from.number());
    d.why = static_cast<exception_decision::reason>(from.number());
    d.after = duration(from.number());
    if (const auto rule = from.number(); rule >= 0) d.rule = static_cast<std::size_t>(rule);
    d.problem = from.text();
    return d;
}

} // namespace

std::string to_bytes(frame_kind kind, std::string_view body) {
    const auto size = static_cast<std::uint64_t>(body.size());
    std::string bytes(reinterpret_cast<const char*>(&size), sizeof size);
    bytes += static_cast<char>(kind);
    bytes += body;
    return bytes;
}

std::optional<frame> frame_buffer::next() {
    const std::string_view left = std::string_view(bytes_).substr(read_);
    std::uint64_t size = 0;
    if (left.size() <= sizeof size) return std::nullopt;
    std::memcpy(&size, left.data(), sizeof size);
    if (left.size() - sizeof size - 1 < size) return std::nullopt;
    frame made{static_cast<frame_kind>(left[sizeof size]), std::string(left.substr(sizeof size + 1, size))};
    read_ += sizeof size + 1 + size;
    if (read_ == bytes_.size()) {
        bytes_.clear();
        read_ = 0;
    }
    return made;
}

std::string encode(const isolated_job& job) {
    writer to;
    to.put(job.what.type).put(job.what.version).put(job.what.content_type).put(job.what.body);
    to.put(to_text(job.id)).put(static_cast<std::int64_t>(job.token)).put(job.queue);
    to.put(job.attempt).put(job.max_attempts).put(job.crash_count).put(job.generation);
    to.put(job.so_far.redeliveries).put(job.so_far.calls).put(static_cast<std::int64_t>(job.so_far.retries.size()));
    for (const int each : job.so_far.retries) to.put(each);
    to.put(static_cast<std::int64_t>(job.extra.size()));
    for (const auto& [name, value] : job.extra) to.put(name).put(value);
    return to.take();
}

std::optional<isolated_job> decode_job(std::string_view body) {
    reader from(body);
    isolated_job job;
    job.what.type = from.text();
    job.what.version = from.integer();
    job.what.content_type = from.text();
    job.what.body = from.text();
    const auto id = parse_identifier(from.text());
    if (!id) return std::nullopt;
    job.id = *id;
    job.token = static_cast<std::uint64_t>(from.number());
    job.queue = from.text();
    job.attempt = from.integer();
    job.max_attempts = from.integer();
    job.crash_count = from.integer();
    job.generation = from.integer();
    job.so_far.redeliveries = from.integer();
    job.so_far.calls = from.integer();
    for (std::int64_t left = from.number(); left > 0 && from.good(); --left)
        job.so_far.retries.push_back(from.integer());
    for (std::int64_t left = from.number(); left > 0 && from.good(); --left) {
        std::string name = from.text();
        job.extra[std::move(name)] = from.text();
    }
    return from.whole(std::move(job));
}

std::string encode(const isolated_ending& ended) {
    writer to;
    to.put(static_cast<std::int64_t>(ended.how));
    put(to, ended.failure);
    put(to, ended.verdict.ending);
    to.put(std::int64_t{ended.verdict.again.has_value()});
    put(to, ended.verdict.again.value_or(exception_decision{}));
    to.put(std::int64_t{ended.verdict.discarded});
    to.put(ended.output).put(ended.snooze).put(ended.retry_after);
    return to.take();
}

std::optional<isolated_ending> decode_ending(std::string_view body) {
    reader from(body);
    isolated_ending ended;
    ended.how = static_cast<isolated_ending::kind>(from.number());
    ended.failure = read_error(from);
    ended.verdict.ending = read_settlement(from);
    const bool again = from.number() != 0;
    if (auto decision = read_decision(from); again) ended.verdict.again = std::move(decision);
    ended.verdict.discarded = from.number() != 0;
    ended.output = from.text();
    ended.snooze = from.maybe_time();
    ended.retry_after = from.maybe_time();
    return from.whole(std::move(ended));
}

std::string encode(const job_progress& said) {
    return writer().put(said.percent).put(said.note).take();
}

std::optional<job_progress> decode_progress(std::string_view body) {
    reader from(body);
    job_progress said;
    said.percent = from.integer();
    said.note = from.text();
    return from.whole(std::move(said));
}

std::string encode(log_level level, std::string_view message) {
    return writer().put(static_cast<std::int64_t>(level)).put(message).take();
}

std::optional<std::pair<log_level, std::string>> decode_log(std::string_view body) {
    reader from(body);
    const auto level = static_cast<log_level>(from.number());
    std::string message = from.text();
    return from.whole(std::pair(level, std::move(message)));
}

} // namespace holdfast::detail
