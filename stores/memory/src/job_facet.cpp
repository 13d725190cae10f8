#include "facets.hpp"

namespace holdfast::memory {

namespace {

std::unexpected<error> wrong(const char* why) {
    return fail(errc::invalid_argument, why);
}

} // namespace

task<result<std::vector<enqueued>>> job_facet::enqueue(std::vector<new_job> jobs, unit_of_work* in) {
    if (auto fine = store_limits::check_all(jobs, in_.max_payload()); !fine) co_return std::unexpected(fine.error());
    co_return in_.run(
        in, [jobs = std::move(jobs)](data& on, store_time now) { return on.jobs.enqueue(jobs, now); }, errc::duplicate);
}

task<result<std::vector<claimed_job>>> job_facet::claim(claim_request request) {
    if (auto fine = store_limits::check(request); !fine) co_return std::unexpected(fine.error());
    co_return in_.run([&](data& on, store_time now) { return on.jobs.claim(request, now); });
}

task<result<std::vector<write_answer>>> job_facet::started(std::span<const job_lease* const> which) {
    co_return in_.run([&](data& on, store_time) { return on.jobs.started(which); });
}

task<result<std::vector<beat>>> job_facet::heartbeat(std::span<const job_lease* const> held, duration lease_for) {
    if (auto fine = store_limits::check_time("a lease", lease_for); !fine) co_return std::unexpected(fine.error());
    co_return in_.run([&](data& on, store_time now) { return on.jobs.heartbeat(held, lease_for, now); });
}

task<result<std::vector<settled>>> job_facet::settle(std::span<const settlement> which, unit_of_work* in) {
    std::vector<kept_settlement> kept;
    for (const settlement& each : which) {
        if (auto fine = store_limits::check_body("job's output", each.output, in_.max_payload()); !fine)
            co_return std::unexpected(fine.error());
        kept.push_back({each.held->subject(), each.held->token(), each});
        kept.back().what.held = nullptr; // need not outlive the call
    }
    co_return in_.run(
        in, [kept = std::move(kept)](data& on, store_time now) { return on.jobs.settle(kept, now); },
        errc::stale_lease);
}

task<result<std::vector<write_answer>>> job_facet::progress(std::span<const progress_report> which) {
    co_return in_.run([&](data& on, store_time) { return on.jobs.progress(which); });
}

task<result<recovery>> job_facet::recover_stale(int limit) {
    co_return in_.run([&](data& on, store_time now) { return on.jobs.recover_stale(limit, now); });
}

task<result<std::optional<duration>>> job_facet::next_due(std::vector<std::string> queues) {
    co_return in_.run([&](data& on, store_time now) { return on.jobs.next_due(queues, now); });
}

task<result<std::vector<cancel_answer>>> job_facet::cancel(std::vector<identifier> which) {
    co_return in_.run([&](data& on, store_time now) { return on.jobs.cancel(which, now); });
}

task<result<int>> job_facet::requeue(std::vector<identifier> which) {
    co_return in_.run([&](data& on, store_time now) { return on.jobs.requeue(which, now); });
}

task<result<int>> job_facet::purge(job_state state, duration older_than, int limit) {
    if (!is_final(state)) co_return wrong("only jobs that have ended can be purged");
    co_return in_.run([&](data& on, store_time now) { return on.jobs.purge(state, older_than, limit, now); });
}

task<result<int>> job_facet::discard(std::vector<identifier> which) {
    co_return in_.run([&](data& on, store_time now) { return on.jobs.discard(which, now); });
}

task<result<void>> job_facet::pause(std::string queue) {
    if (auto fine = store_limits::check_name("queue", queue); !fine) co_return fine;
    co_return in_.run([&](data& on, store_time) {
        on.jobs.pause(queue);
        return result<void>();
    });
}

task<result<void>> job_facet::resume(std::string queue) {
    co_return in_.run([&](data& on, store_time) {
        on.jobs.resume(queue);
        return result<void>();
    });
}

task<result<std::vector<queue_view>>> job_facet::queues() {
    co_return in_.run([](data& on, store_time) { return on.jobs.queues(); });
}

task<result<job_lookup>> job_facet::get(identifier id) {
    co_return in_.run([&](data& on, store_time now) { return on.jobs.get(id, now); });
}

task<result<job_page>> job_facet::list(job_filter filter, int limit, std::string cursor) {
    if (limit < 1) co_return wrong("a page needs a limit of 1 or more");
    std::optional<identifier> before;
    if (!cursor.empty()) {
        before = parse_identifier(cursor);
        if (!before) co_return wrong("this is no cursor of this list");
    }
    co_return in_.run([&](data& on, store_time now) { return on.jobs.list(filter, limit, before, now); });
}

task<result<std::vector<job_count>>> job_facet::counts() {
    co_return in_.run([](data& on, store_time now) { return on.jobs.counts(now); });
}

} // namespace holdfast::memory
