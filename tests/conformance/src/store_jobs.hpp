// A user of the job facet, with the calls that cases make most.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "store_lab.hpp"

namespace holdfast::conformance {

inline constexpr duration long_lease = std::chrono::minutes{5};

class job_user {
public:
    explicit job_user(store_lab& in) : job_user(in, in.jobs()) {}
    job_user(store_lab& in, job_store& through) : in_(in), jobs_(through) {}

    job_store& jobs() const noexcept { return jobs_; }

    // A plain job, not enqueued yet.
    new_job make(std::string queue = "default") const;
    // Enqueues it; it must be new.
    identifier add(new_job j) const;
    identifier add() const { return add(make()); }
    std::vector<identifier> add(int count) const;
    enqueued enqueue(new_job j) const;

    std::vector<claimed_job> claim(int limit, duration lease_for = long_lease,
                                   std::vector<std::string> queues = {"default"}, std::string worker = "w") const;
    // There must be one.
    claimed_job claim_one(duration lease_for = long_lease, std::string queue = "default") const;
    std::vector<identifier> claim_ids(int limit, std::vector<std::string> queues = {"default"}) const;

    write_answer started(const job_lease& held) const;
    beat heartbeat(const job_lease& held, duration lease_for = long_lease) const;
    write_answer progress(const job_lease& held, int percent, std::string note) const;
    settled settle(settlement s) const;
    settled settle(const job_lease& held, settlement::kind how) const {
        return settle({.held = &held, .how = how, .when = {}, .error = {}, .output = {}});
    }
    settled retry(const job_lease& held, duration after, job_error why = {"error", "why"}) const {
        return settle({.held = &held,
                       .how = settlement::kind::retry,
                       .when = due::after(after),
                       .error = std::move(why),
                       .output = {}});
    }
    // Adds one, claims it, settles it.
    identifier ended_as(settlement::kind how) const;

    recovery recover(int limit = 1000) const;
    cancel_answer cancel(identifier id) const;
    int requeue(std::vector<identifier> which) const;

    job_view view(identifier id) const;
    job_state state_of(identifier id) const { return view(id).state; }
    std::optional<job_absence> absence(identifier id) const;
    std::vector<identifier> list(job_filter filter, int limit = 1000) const;
    std::uint64_t count(std::string_view queue, job_state state) const;

private:
    store_lab& in_;
    job_store& jobs_;
};

} // namespace holdfast::conformance
