// A job store that passes every call on to another: for those that want to do
// something about a few of them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <holdfast/job_store.hpp>

namespace holdfast::test {

class forwarded_jobs : public job_store {
public:
    explicit forwarded_jobs(job_store& inner) : inner_(inner) {}

    task<result<std::vector<enqueued>>> enqueue(std::vector<new_job> jobs, unit_of_work* in = nullptr) override {
        return inner_.enqueue(std::move(jobs), in);
    }
    task<result<std::vector<claimed_job>>> claim(claim_request request) override {
        return inner_.claim(std::move(request));
    }
    task<result<std::vector<write_answer>>> started(std::span<const job_lease* const> which) override {
        return inner_.started(which);
    }
    task<result<std::vector<beat>>> heartbeat(std::span<const job_lease* const> held, duration lease_for) override {
        return inner_.heartbeat(held, lease_for);
    }
    task<result<std::vector<settled>>> settle(std::span<const settlement> which, unit_of_work* in = nullptr) override {
        return inner_.settle(which, in);
    }
    task<result<std::vector<write_answer>>> progress(std::span<const progress_report> which) override {
        return inner_.progress(which);
    }
    task<result<recovery>> recover_stale(int limit) override { return inner_.recover_stale(limit); }
    task<result<std::optional<duration>>> next_due(std::vector<std::string> queues) override {
        return inner_.next_due(std::move(queues));
    }
    std::unique_ptr<job_watch> watch(std::vector<std::string> queues, std::function<void()> hint) override {
        return inner_.watch(std::move(queues), std::move(hint));
    }
    std::unique_ptr<job_watch> attend(std::vector<std::string> queues, std::function<void()> hint,
                                      std::function<void(claimed_job)> handed) override {
        return inner_.attend(std::move(queues), std::move(hint), std::move(handed));
    }
    task<result<std::vector<cancel_answer>>> cancel(std::vector<identifier> which) override {
        return inner_.cancel(std::move(which));
    }
    task<result<int>> requeue(std::vector<identifier> which) override { return inner_.requeue(std::move(which)); }
    task<result<int>> purge(job_state state, duration older_than, int limit) override {
        return inner_.purge(state, older_than, limit);
    }
    task<result<int>> discard(std::vector<identifier> which) override { return inner_.discard(std::move(which)); }
    task<result<void>> pause(std::string queue) override { return inner_.pause(std::move(queue)); }
    task<result<void>> resume(std::string queue) override { return inner_.resume(std::move(queue)); }
    task<result<std::vector<queue_view>>> queues() override { return inner_.queues(); }
    task<result<job_lookup>> get(identifier id) override { return inner_.get(id); }
    task<result<job_page>> list(job_filter filter, int limit, std::string cursor = {}) override {
        return inner_.list(std::move(filter), limit, std::move(cursor));
    }
    task<result<std::vector<job_count>>> counts() override { return inner_.counts(); }

protected:
    ~forwarded_jobs() = default;

    job_store& inner_;
};

} // namespace holdfast::test
