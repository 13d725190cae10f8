// The calls of outbox_store, each inside a transaction that somebody else began. They throw holdfast::failed.
//
// Of each key, the oldest message that is neither sent nor set aside is its head; a message without a key is one by
// itself. Only heads are looked for, so a long line behind one that cannot be sent costs nothing. `due` is when it may
// next be leased, which is also where a lease ends.
#pragma once

#include <span>
#include <vector>

#include <holdfast/outbox_store.hpp>

#include "session.hpp"

namespace holdfast::sqlite {

void append(session& s, const std::vector<outgoing_message>& messages);
std::vector<leased_message> lease_batch(session& s, int limit, duration lease_for, const std::string& relay);
std::vector<write_answer> note_delivered(session& s, std::span<const message_lease* const> sent);
std::vector<write_answer> note_failed(session& s, std::span<const message_failure> which);
std::vector<message_view> list_set_aside(session& s, int limit, std::uint64_t after_position);
int send_again(session& s, const std::vector<identifier>& which);
int discard(session& s, const std::vector<identifier>& which);
std::uint64_t count_unsent(session& s);

} // namespace holdfast::sqlite
