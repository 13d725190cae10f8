// The Lua that runs inside the server. Every call is one script: atomic, on the server's clock, one round trip. The
// rules for jobs are those of job_machine.hpp.
//
// All keys start with P = "{namespace}:", so that they share a slot of a cluster:
//   meta          hash: schema, marker, token, position, unsent
//   j, d, w       hash: id -> a job's record, as record.hpp packs it; what it is about; rare texts, if there are any
//   h:<id>        list: its attempts that have ended, packed; but for a success, of which the record tells
//   c:<id>        set: its children              u       hash: type NUL unique key -> id
//   p:<queue>     zset: due jobs, score 0; the member is priority, due time and id, so that it sorts in claim order
//   s:<queue>, r:<queue>  zset: the same members by due time, scheduled and waiting for a retry
//   l             zset: leased jobs by end of lease
//   o, f:<state>  zset: ids of jobs that are open, or ended so; score 0     e:<state>  the latter by time of end
//   ob            list: ids of jobs that came in and are not in o yet; some have ended since
//   ek, x         zset: succeeded jobs with a retention of their own, by time of end (not in e:4), and of its end
//   t             zset: ids of jobs that were, by the time that this is forgotten
//   n             hash: state digit, queue -> number (2 processing, 4 to 8 ended, 0 waiting for a parent)
//   qs, paused    set: queues
//   a:<queue>     hash: address of an idle worker's watch -> lease and worker; a new job is published for it, claimed, on
//                 the channel to:<address>
//   k:<resource>  hash: a lock                   i:<key>  hash: an idempotency record    d:<key>  text: a claimed key
//   m:<id>        hash: a message                ml:<key> zset: the line of a key, by position
//   mh            hash: key -> the message at the head of its line
//   mr, mf        zset: messages that may be sent, by position; those that may be later, by time
//   ma            zset: messages set aside, by position     in:<consumer><id>  text: a received message
//   none          never written: see command_for()            hints  channel: names of queues
#pragma once

#include <cstddef>
#include <string_view>

#include <holdfast/redis/scripted_server.hpp>

namespace holdfast::redis {

enum class script : unsigned char {
    enqueue,
    claim,
    started,
    heartbeat,
    settle,
    progress,
    recover_stale,
    next_due,
    cancel,
    requeue,
    purge,
    discard_jobs,
    pause,
    queues,
    get,
    list,
    counts,
    lock_acquire,
    lock_renew,
    lock_release,
    lock_promise,
    lock_confirm,
    key_claim,
    key_begin,
    key_complete,
    key_abandon,
    key_renew,
    append,
    lease_batch,
    delivered,
    message_failed,
    set_aside,
    send_again,
    discard,
    unsent,
    receive,
    received,
    unit,
};
inline constexpr std::size_t script_count = 38;

// Each whole, with what it needs in front.
const script_library& store_scripts();

// Parts, by topic.
namespace lua {
extern const std::string_view store_prelude;
extern const std::string_view job_form, open_book, job_books, line_rules, end_rules, owner_rules, view_rules;
extern const std::string_view enqueue_plain, enqueue, claim, started, heartbeat, settle_plain, settle, progress;
extern const std::string_view recover_stale, cancel, requeue, purge, discard_jobs;
extern const std::string_view next_due, pause, queues, get, list, counts;
extern const std::string_view lock_acquire, lock_renew, lock_release, lock_promise, lock_confirm;
extern const std::string_view key_claim, key_begin, key_complete, key_abandon, key_renew;
extern const std::string_view outbox_rules, append, lease_batch, delivered, message_failed, set_aside, send_again,
    discard, unsent, receive, received;
extern const std::string_view unit_rules, unit;
} // namespace lua

} // namespace holdfast::redis
