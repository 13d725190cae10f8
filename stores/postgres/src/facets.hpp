// The facets of the store, each over the same core.
#pragma once

#include <holdfast/store.hpp>

#include "claim_front.hpp"
#include "core.hpp"
#include "enqueue_groups.hpp"
#include "handover.hpp"

namespace holdfast::postgres {

class jobs final : public job_store {
public:
    explicit jobs(core& on) : core_(on) {}

    task<result<std::vector<enqueued>>> enqueue(std::vector<new_job> all, unit_of_work* in) override;
    task<result<std::vector<claimed_job>>> claim(claim_request request) override;
    task<result<std::vector<write_answer>>> started(std::span<const job_lease* const> which) override;
    task<result<std::vector<beat>>> heartbeat(std::span<const job_lease* const> held, duration lease_for) override;
    task<result<std::vector<settled>>> settle(std::span<const settlement> which, unit_of_work* in) override;
    task<result<std::vector<write_answer>>> progress(std::span<const progress_report> which) override;
    task<result<recovery>> recover_stale(int limit) override;
    task<result<std::optional<duration>>> next_due(std::vector<std::string> queues) override;
    std::unique_ptr<job_watch> watch(std::vector<std::string> queues, std::function<void()> hint) override {
        return core_.doorbell.watch(std::move(queues), std::move(hint));
    }
    std::unique_ptr<job_watch> attend(std::vector<std::string> queues, std::function<void()> hint,
                                      std::function<void(claimed_job)> handed) override {
        return handover_.attend(std::move(queues), std::move(hint), std::move(handed));
    }
    task<result<std::vector<cancel_answer>>> cancel(std::vector<identifier> which) override;
    task<result<int>> requeue(std::vector<identifier> which) override;
    task<result<int>> purge(job_state state, duration older_than, int limit) override;
    task<result<int>> discard(std::vector<identifier> which) override;
    task<result<void>> pause(std::string queue) override;
    task<result<void>> resume(std::string queue) override;
    task<result<std::vector<queue_view>>> queues() override;
    task<result<job_lookup>> get(identifier id) override;
    task<result<job_page>> list(job_filter filter, int limit, std::string cursor) override;
    task<result<std::vector<job_count>>> counts() override;

private:
    task<result<void>> set_paused(std::string queue, bool paused);
    task<result<std::vector<enqueued>>> enqueue_batch(std::vector<new_job> all, unit_of_work* in);
    core& core_;
    enqueue_groups groups_{core_.connections.on()};
    claim_front front_;
    handover handover_{core_};
};

class locks final : public lock_store {
public:
    explicit locks(core& on) noexcept : core_(on) {}

    task<result<std::optional<lock_lease>>> try_acquire(std::string resource, duration ttl) override;
    task<result<void>> renew(const lock_lease& held, duration ttl) override;
    task<result<void>> release(const lock_lease& held) override;

private:
    core& core_;
};

class idempotency final : public idempotency_store {
public:
    explicit idempotency(core& on) noexcept : core_(on) {}

    task<result<bool>> try_claim(std::string key, duration ttl, unit_of_work* in) override;
    task<result<begin_answer>> begin(begin_request request) override;
    task<result<void>> complete(const idempotency_lease& held, payload answer, duration ttl, unit_of_work* in) override;
    task<result<void>> abandon(const idempotency_lease& held) override;
    task<result<void>> renew(const idempotency_lease& held, duration lease_for) override;

private:
    core& core_;
};

class outbox final : public outbox_store {
public:
    explicit outbox(core& on) noexcept : core_(on) {}

    task<result<void>> append(std::vector<outgoing_message> messages, unit_of_work* in) override;
    task<result<std::vector<leased_message>>> lease_batch(int limit, duration lease_for, std::string relay) override;
    task<result<std::vector<write_answer>>> delivered(std::span<const message_lease* const> sent) override;
    task<result<std::vector<write_answer>>> failed(std::span<const message_failure> which) override;
    task<result<std::vector<message_view>>> set_aside(int limit, std::uint64_t after_position) override;
    task<result<int>> send_again(std::vector<identifier> which) override;
    task<result<int>> discard(std::vector<identifier> which) override;
    task<result<std::uint64_t>> unsent() override;
    task<result<bool>> receive(std::string consumer, identifier message, duration ttl, unit_of_work* in) override;
    task<result<std::vector<bool>>> received(std::string consumer, std::vector<identifier> messages) override;

private:
    core& core_;
};

} // namespace holdfast::postgres
