// Jobs: the calls that workers make.
#include <holdfast/redis/texts.hpp>
#include <holdfast/store_limits.hpp>

#include "call.hpp"
#include "facets.hpp"
#include "record.hpp"

namespace holdfast::redis {

namespace {

std::string packed_terms(const new_job& job) {
    record r;
    r.state = static_cast<int>(job.when.how);
    r.due = static_cast<double>(microseconds(job.when));
    r.flags = job.may_restart ? record::may_restart : 0u;
    r.max_attempts = job.max_attempts;
    r.max_crashes = job.max_crashes;
    r.priority = job.priority;
    r.queue = job.queue;
    if (job.unique_key) r.unique_key.append(job.what.type).append(1, '\0').append(*job.unique_key);
    if (job.parent) r.parent = to_text(*job.parent);
    if (job.keep_for) r.keep = static_cast<double>(std::max<std::int64_t>(0, microseconds(*job.keep_for)));
    return pack(r);
}

// The number of records and these, for jobs that are alike share one; then per job id, what, and which record, unless
// there is but one.
arguments packed_jobs(const std::vector<new_job>& jobs) {
    const auto alike = [](const new_job& a, const new_job& b) {
        return a.same_terms(b) && !a.unique_key && !b.unique_key && !a.parent && !b.parent;
    };
    std::vector<std::size_t> which(jobs.size(), 1);
    std::size_t records = 1;
    for (std::size_t i = 1; i < jobs.size(); ++i) which[i] = alike(jobs[i], jobs[i - 1]) ? records : ++records;
    arguments all;
    all.values.reserve(1 + records + jobs.size() * (records == 1 ? 2 : 3));
    all.add(records);
    for (std::size_t i = 0; i < jobs.size(); ++i)
        if (i == 0 || which[i] != which[i - 1]) all.add(packed_terms(jobs[i]));
    for (std::size_t i = 0; i < jobs.size(); ++i) {
        all.add(jobs[i].id).add(encode(jobs[i].what, jobs[i].extra));
        if (records > 1) all.add(which[i]);
    }
    return all;
}

result<void> check_leases(std::span<const job_lease* const> all) {
    for (const job_lease* each : all)
        if (each == nullptr) return fail(errc::invalid_argument, "redis: a lease is missing");
    return {};
}

// A job that was there already, and where in the call.
struct found_job {
    std::size_t place; // from 1
    identifier id;
};
std::vector<found_job> to_found(reply& from) {
    std::vector<found_job> found;
    for (reader r(from); r.more();) {
        const auto place = static_cast<std::size_t>(r.number());
        found.push_back({place, r.id()});
    }
    return found;
}
std::vector<claimed_job> to_claimed(reply& from) {
    std::vector<claimed_job> jobs;
    jobs.reserve(from.items.size() / 3);
    for (reader r(from); r.more();) {
        std::string id = r.text();
        const std::string record = r.text();
        jobs.push_back(decode_claimed(std::move(id), record, r.text()));
    }
    return jobs;
}
std::vector<beat> to_beats(reply& from) {
    std::vector<beat> beats;
    for (reader r(from); r.more();) {
        const auto answer = static_cast<write_answer>(r.integer());
        beats.push_back({answer, r.flag()});
    }
    return beats;
}
std::vector<settled> to_settled(reply& from) {
    std::vector<settled> answers;
    answers.reserve(from.text.size() / 2);
    for (std::size_t i = 1; i < from.text.size(); i += 2)
        answers.push_back(
            {static_cast<write_answer>(from.text[i - 1] - '0'), static_cast<job_state>(from.text[i] - '0')});
    return answers;
}

} // namespace

task<result<std::vector<enqueued>>> job_facet::enqueue(std::vector<new_job> jobs, unit_of_work* in) {
    if (auto ok = store_limits::check_all(jobs, core_.how.max_payload); !ok) co_return std::unexpected(ok.error());
    if (jobs.empty()) co_return std::vector<enqueued>();
    std::vector<enqueued> answers;
    answers.reserve(jobs.size());
    for (const new_job& each : jobs) answers.push_back({each.id, true});
    auto calling = call_in<std::vector<found_job>>(core_, in, "enqueue", script::enqueue, packed_jobs(jobs), to_found);
    const auto found = co_await std::move(calling);
    if (!found) co_return std::unexpected(found.error());
    for (const found_job& each : *found) answers.at(each.place - 1) = {each.id, false};
    co_return answers;
}

task<result<std::vector<claimed_job>>> job_facet::claim(claim_request request) {
    if (auto ok = store_limits::check(request); !ok) co_return std::unexpected(ok.error());
    arguments with;
    with.add(std::move(request.worker)).add(request.lease_for).add(request.limit);
    with.add(std::move(request.then_hand_to));
    for (std::string& each : request.queues) with.add(std::move(each));
    co_return co_await call<std::vector<claimed_job>>(core_, script::claim, std::move(with), access::write, to_claimed);
}

task<result<std::vector<write_answer>>> job_facet::started(std::span<const job_lease* const> which) {
    if (auto ok = check_leases(which); !ok) co_return std::unexpected(ok.error());
    if (which.empty()) co_return std::vector<write_answer>();
    arguments with;
    for (const job_lease* each : which) with.add(each);
    co_return co_await call<std::vector<write_answer>>(core_, script::started, std::move(with), access::write,
                                                       decode_answers);
}

task<result<std::vector<beat>>> job_facet::heartbeat(std::span<const job_lease* const> held, duration lease_for) {
    if (auto ok = check_leases(held); !ok) co_return std::unexpected(ok.error());
    if (auto ok = store_limits::check_time("a lease", lease_for); !ok) co_return std::unexpected(ok.error());
    if (held.empty()) co_return std::vector<beat>();
    arguments with;
    with.add(lease_for);
    for (const job_lease* each : held) with.add(each);
    co_return co_await call<std::vector<beat>>(core_, script::heartbeat, std::move(with), access::write, to_beats);
}

task<result<std::vector<settled>>> job_facet::settle(std::span<const settlement> which, unit_of_work* in) {
    for (const settlement& each : which) {
        if (auto ok = check_leases({&each.held, 1}); !ok) co_return std::unexpected(ok.error());
        if (auto ok = store_limits::check_body("output", each.output, core_.how.max_payload); !ok)
            co_return std::unexpected(ok.error());
    }
    if (which.empty()) co_return std::vector<settled>();
    arguments with;
    with.add(core_.how.keep_succeeded);
    for (const settlement& each : which) with.add(each.held).add(static_cast<int>(each.how)).add(pack_details(each));
    co_return co_await call_in<std::vector<settled>>(core_, in, "settle", script::settle, std::move(with), to_settled);
}

task<result<std::vector<write_answer>>> job_facet::progress(std::span<const progress_report> which) {
    for (const progress_report& each : which) {
        if (auto ok = check_leases({&each.held, 1}); !ok) co_return std::unexpected(ok.error());
        if (auto ok = store_limits::check_body("note", each.note, core_.how.max_payload); !ok)
            co_return std::unexpected(ok.error());
    }
    if (which.empty()) co_return std::vector<write_answer>();
    arguments with;
    for (const progress_report& each : which) with.add(each.held).add(each.percent).add(each.note);
    co_return co_await call<std::vector<write_answer>>(core_, script::progress, std::move(with), access::write,
                                                       decode_answers);
}

} // namespace holdfast::redis
