#include "store_jobs.hpp"

namespace holdfast::conformance {

namespace {

template <class T>
T only(std::vector<T> all, std::string_view what) {
    check_equal(all.size(), std::size_t{1}, std::string(what) + " of one: number of answers");
    return std::move(all.front());
}

} // namespace

new_job job_user::make(std::string queue) const {
    return {.id = in_.next_id(), .what = {.type = "test.job", .body = "{}"}, .queue = std::move(queue), .when = {}};
}

enqueued job_user::enqueue(new_job j) const {
    std::vector<new_job> one;
    one.push_back(std::move(j));
    return only(in_.ok(jobs_.enqueue(std::move(one)), "enqueue"), "enqueue");
}

identifier job_user::add(new_job j) const {
    const identifier id = j.id;
    const enqueued answer = enqueue(std::move(j));
    check(answer.created, "a new job is created");
    check_equal(answer.id, id, "id of a new job");
    return id;
}

std::vector<identifier> job_user::add(int count) const {
    std::vector<new_job> batch;
    for (int i = 0; i < count; ++i) batch.push_back(make());
    std::vector<identifier> ids;
    for (const auto& each : in_.ok(jobs_.enqueue(std::move(batch)), "enqueue")) ids.push_back(each.id);
    check_equal(ids.size(), static_cast<std::size_t>(count), "answers of a bulk enqueue");
    return ids;
}

std::vector<claimed_job> job_user::claim(int limit, duration lease_for, std::vector<std::string> queues,
                                         std::string worker) const {
    auto claimed = in_.ok(
        jobs_.claim({.queues = std::move(queues), .limit = limit, .lease_for = lease_for, .worker = std::move(worker)}),
        "claim");
    check(claimed.size() <= static_cast<std::size_t>(limit), "a claim gives no more than was asked for");
    for (const auto& each : claimed) check_equal(each.lease.subject(), to_text(each.id), "subject of a job's lease");
    return claimed;
}

claimed_job job_user::claim_one(duration lease_for, std::string queue) const {
    return only(claim(1, lease_for, {std::move(queue)}), "claim");
}

std::vector<identifier> job_user::claim_ids(int limit, std::vector<std::string> queues) const {
    std::vector<identifier> ids;
    for (const auto& each : claim(limit, long_lease, std::move(queues))) ids.push_back(each.id);
    return ids;
}

write_answer job_user::started(const job_lease& held) const {
    const job_lease* one[] = {&held};
    return only(in_.ok(jobs_.started(one), "started"), "started");
}

beat job_user::heartbeat(const job_lease& held, duration lease_for) const {
    const job_lease* one[] = {&held};
    return only(in_.ok(jobs_.heartbeat(one, lease_for), "heartbeat"), "heartbeat");
}

write_answer job_user::progress(const job_lease& held, int percent, std::string note) const {
    const progress_report one[] = {{&held, percent, std::move(note)}};
    return only(in_.ok(jobs_.progress(one), "progress"), "progress");
}

settled job_user::settle(settlement s) const {
    const settlement one[] = {std::move(s)};
    return only(in_.ok(jobs_.settle(one), "settle"), "settle");
}

identifier job_user::ended_as(settlement::kind how) const {
    const identifier id = add();
    const claimed_job mine = claim_one();
    check_equal(mine.id, id, "the job that was claimed");
    check_equal(settle(mine.lease, how).answer, write_answer::done, "settle");
    return id;
}

recovery job_user::recover(int limit) const {
    return in_.ok(jobs_.recover_stale(limit), "recover_stale");
}

cancel_answer job_user::cancel(identifier id) const {
    return only(in_.ok(jobs_.cancel({id}), "cancel"), "cancel");
}

int job_user::requeue(std::vector<identifier> which) const {
    return in_.ok(jobs_.requeue(std::move(which)), "requeue");
}

job_view job_user::view(identifier id) const {
    auto found = in_.ok(jobs_.get(id), "get");
    check(std::holds_alternative<job_view>(found), "the job " + to_text(id) + " is there");
    return std::get<job_view>(std::move(found));
}

std::optional<job_absence> job_user::absence(identifier id) const {
    const auto found = in_.ok(jobs_.get(id), "get");
    if (const auto* absent = std::get_if<job_absence>(&found)) return *absent;
    return std::nullopt;
}

std::vector<identifier> job_user::list(job_filter filter, int limit) const {
    std::vector<identifier> ids;
    for (const auto& each : in_.ok(jobs_.list(std::move(filter), limit), "list").jobs) ids.push_back(each.id);
    return ids;
}

std::uint64_t job_user::count(std::string_view queue, job_state state) const {
    std::uint64_t total = 0;
    for (const auto& each : in_.ok(jobs_.counts(), "counts"))
        if (each.queue == queue && each.state == state) total += each.count;
    return total;
}

} // namespace holdfast::conformance
