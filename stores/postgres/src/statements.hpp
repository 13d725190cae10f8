// Every statement that the store sends, by name, with its namespace in place. Pure.
#pragma once

#include <cstddef>
#include <string_view>

#include <holdfast/postgres/statement_table.hpp>

namespace holdfast::postgres {

enum class query : std::size_t {
    now,
    enqueue_plain_one,
    enqueue_plain_one_and_ring,
    enqueue_and_tell,
    enqueue,
    enqueue_alike,
    find_jobs,
    claim,
    wait_for_jobs,
    give_back,
    collect,
    leave,
    settle,
    settled_already,
    heartbeat,
    progress,
    recover,
    sweep,
    next_due,
    cancel,
    requeue,
    purge,
    discard,
    pause,
    queues,
    get,
    counts,
    lock_acquire,
    lock_renew,
    lock_release,
    try_claim,
    idempotency_begin,
    idempotency_complete,
    idempotency_abandon,
    idempotency_renew,
    outbox_append,
    outbox_lease,
    outbox_delivered,
    outbox_failed,
    outbox_aside,
    outbox_send_again,
    outbox_discard,
    outbox_unsent,
    inbox_receive,
    inbox_received,
    count
};

class statements : public statement_table<query> {
public:
    explicit statements(std::string_view name);
};

// The columns of a job as read_job() in rows.hpp wants them, from the alias j.
extern const std::string_view job_columns;

} // namespace holdfast::postgres
