#include "outbox_calls.hpp"

#include <algorithm>
#include <set>

#include "rows.hpp"

namespace holdfast::sqlite {

namespace {

// Keys whose head may have changed.
using touched_keys = std::set<std::string, std::less<>>;

void choose_heads(session& s, const touched_keys& keys) {
    for (const std::string& key : keys) {
        s.exec(query::message_unhead, bytes{key});
        s.exec(query::message_head, bytes{key});
    }
}

message_view read_message(use& row) {
    message_view v;
    outgoing_message& m = v.message;
    std::string extra;
    row.read(v.position, m.id, m.topic, m.key, v.attempts, m.what.type, m.what.version, m.what.content_type, extra,
             v.last_error, m.what.body);
    m.extra = decode_headers(extra);
    return v;
}

std::vector<std::int64_t> sendable(session& s, int limit) {
    struct head {
        std::int64_t position;
        std::string key;
    };
    std::vector<head> heads;
    auto rows = s.run(query::message_heads, s.now(), limit);
    while (rows.step()) {
        head& h = heads.emplace_back();
        rows.read(h.position, h.key);
    }
    std::vector<std::int64_t> chosen;
    for (const head& h : heads) chosen.push_back(h.position);
    for (const head& h : heads) {
        const int room = limit - static_cast<int>(chosen.size());
        if (room == 0) break;
        if (h.key.empty()) continue;
        auto line = s.run(query::message_followers, bytes{h.key}, h.position, room);
        while (line.step()) {
            std::int64_t position = 0;
            store_time due{};
            line.read(position, due);
            if (due > s.now()) break;
            chosen.push_back(position);
        }
    }
    std::ranges::sort(chosen);
    return chosen;
}

std::optional<identifier> subject_of(const message_lease* held) {
    if (held == nullptr) throw failed({errc::invalid_argument, "sqlite: a lease is missing", {}});
    return parse_identifier(held->subject());
}

write_answer why_not(session& s, const identifier& id) {
    return s.any(s.run(query::message_known, id)) ? write_answer::stale : write_answer::gone;
}

} // namespace

void append(session& s, const std::vector<outgoing_message>& messages) {
    for (const outgoing_message& m : messages) {
        const bool large = m.what.body.size() > inline_body;
        const std::string extra = encode(m.extra);
        const int added =
            s.exec(query::message_insert, m.id, bytes{m.key}, s.now(), m.topic, m.what.type, m.what.version,
                   m.what.content_type, bytes{extra}, large, bytes{large ? std::string_view() : m.what.body});
        if (added > 0 && large) s.exec(query::message_body_insert, bytes{m.what.body});
    }
}

std::vector<leased_message> lease_batch(session& s, int limit, duration lease_for, const std::string& relay) {
    std::vector<leased_message> leased;
    const auto positions = sendable(s, limit);
    if (positions.empty()) return leased;
    const std::uint64_t token = s.next_token();
    const store_time until = after(s.now(), lease_for);
    for (const std::int64_t position : positions) {
        auto row = s.run(query::message_load, position);
        if (!row.step()) continue;
        message_view v = read_message(row);
        message_lease lease(to_text(v.message.id), token);
        leased.push_back({std::move(lease), v.position, v.attempts, std::move(v.message)});
    }
    for (const std::int64_t position : positions) s.exec(query::message_take, position, token, until, relay);
    return leased;
}

std::vector<write_answer> note_delivered(session& s, std::span<const message_lease* const> sent) {
    std::vector<write_answer> answers;
    touched_keys touched;
    for (const message_lease* held : sent) {
        const auto id = subject_of(held);
        if (!id) {
            answers.push_back(write_answer::gone);
            continue;
        }
        auto row = s.run(query::message_delivered, *id, held->token());
        if (!row.step()) {
            answers.push_back(why_not(s, *id));
            continue;
        }
        std::int64_t position = 0;
        std::string key;
        bool large = false;
        row.read(position, key, large).finish();
        if (large) s.exec(query::message_body_delete, position);
        if (!key.empty()) touched.insert(std::move(key));
        answers.push_back(write_answer::done);
    }
    choose_heads(s, touched);
    return answers;
}

std::vector<write_answer> note_failed(session& s, std::span<const message_failure> which) {
    std::vector<write_answer> answers;
    touched_keys touched;
    for (const message_failure& each : which) {
        const auto id = subject_of(each.held);
        if (!id) {
            answers.push_back(write_answer::gone);
            continue;
        }
        bool changed = false;
        if (each.set_aside) {
            auto row = s.run(query::message_set_aside, *id, each.held->token(), each.why);
            changed = row.step();
            if (changed) touched.insert(row.value<std::string>());
            row.finish();
        } else {
            changed =
                s.exec(query::message_failed, *id, each.held->token(), each.why, after(s.now(), each.retry_after)) > 0;
        }
        answers.push_back(changed ? write_answer::done : why_not(s, *id));
    }
    touched.erase("");
    choose_heads(s, touched);
    return answers;
}

std::vector<message_view> list_set_aside(session& s, int limit, std::uint64_t after_position) {
    std::vector<message_view> found;
    auto rows = s.run(query::message_aside_list, after_position, limit);
    while (rows.step()) found.push_back(read_message(rows));
    return found;
}

int send_again(session& s, const std::vector<identifier>& which) {
    int count = 0;
    touched_keys touched;
    for (const identifier& id : which) {
        auto row = s.run(query::message_send_again, id, s.now());
        if (!row.step()) continue;
        touched.insert(row.value<std::string>());
        row.finish();
        ++count;
    }
    touched.erase("");
    choose_heads(s, touched);
    return count;
}

int discard(session& s, const std::vector<identifier>& which) {
    int count = 0;
    for (const identifier& id : which) {
        auto row = s.run(query::message_discard, id);
        if (!row.step()) continue;
        std::int64_t position = 0;
        bool large = false;
        row.read(position, large).finish();
        if (large) s.exec(query::message_body_delete, position);
        ++count;
    }
    return count;
}

std::uint64_t count_unsent(session& s) {
    auto row = s.run(query::message_count);
    return row.step() ? row.value<std::uint64_t>() : 0;
}

} // namespace holdfast::sqlite
