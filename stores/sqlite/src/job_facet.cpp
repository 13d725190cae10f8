#include "facets.hpp"
#include "job_calls.hpp"

namespace holdfast::sqlite {

namespace {

result<void> check_limit(int limit) {
    if (limit > 0) return {};
    return fail(errc::invalid_argument, "the limit is " + std::to_string(limit) + ", it must be 1 or more");
}

} // namespace

task<result<std::vector<enqueued>>> job_facet::enqueue(std::vector<new_job> jobs, unit_of_work* in) {
    if (auto ok = store_limits::check_all(jobs, core_.how.max_payload); !ok) co_return std::unexpected(ok.error());
    co_return co_await write(core_, in, [&](session& s) { return sqlite::enqueue(s, jobs); });
}

task<result<std::vector<claimed_job>>> job_facet::claim(claim_request request) {
    if (auto ok = store_limits::check(request); !ok) co_return std::unexpected(ok.error());
    co_return co_await write(core_, nullptr, [&](session& s) { return sqlite::claim(s, request); });
}

task<result<std::vector<write_answer>>> job_facet::started(std::span<const job_lease* const> which) {
    co_return co_await write(core_, nullptr, [=](session& s) { return note_started(s, which); });
}

task<result<std::vector<beat>>> job_facet::heartbeat(std::span<const job_lease* const> held, duration lease_for) {
    if (auto ok = store_limits::check_time("a lease", lease_for); !ok) co_return std::unexpected(ok.error());
    co_return co_await write(core_, nullptr, [=](session& s) { return sqlite::heartbeat(s, held, lease_for); });
}

task<result<std::vector<settled>>> job_facet::settle(std::span<const settlement> which, unit_of_work* in) {
    for (const settlement& each : which)
        if (auto ok = store_limits::check_body("job's output", each.output, core_.how.max_payload); !ok)
            co_return std::unexpected(ok.error());
    co_return co_await write(core_, in, [=](session& s) { return sqlite::settle(s, which); });
}

task<result<std::vector<write_answer>>> job_facet::progress(std::span<const progress_report> which) {
    co_return co_await write(core_, nullptr, [=](session& s) { return note_progress(s, which); });
}

task<result<recovery>> job_facet::recover_stale(int limit) {
    if (auto ok = check_limit(limit); !ok) co_return std::unexpected(ok.error());
    co_return co_await write(core_, nullptr, [=](session& s) { return sqlite::recover_stale(s, limit); });
}

task<result<std::optional<duration>>> job_facet::next_due(std::vector<std::string> queues) {
    co_return co_await read(core_, [&](session& s) { return sqlite::next_due(s, queues); });
}

std::unique_ptr<job_watch> job_facet::watch(std::vector<std::string> queues, std::function<void()> hint) {
    auto added = core_.watchers.add(std::move(queues), std::move(hint));
    core_.others.start();
    return added;
}

task<result<std::vector<cancel_answer>>> job_facet::cancel(std::vector<identifier> which) {
    co_return co_await write(core_, nullptr, [&](session& s) { return sqlite::cancel(s, which); });
}

task<result<int>> job_facet::requeue(std::vector<identifier> which) {
    co_return co_await write(core_, nullptr, [&](session& s) { return sqlite::requeue(s, which); });
}

task<result<int>> job_facet::purge(job_state state, duration older_than, int limit) {
    if (auto ok = check_limit(limit); !ok) co_return std::unexpected(ok.error());
    if (!is_final(state))
        co_return fail(errc::invalid_argument,
                       "only jobs that have ended are purged, not " + std::string(to_text(state)));
    co_return co_await write(core_, nullptr, [=](session& s) { return sqlite::purge(s, state, older_than, limit); });
}

task<result<int>> job_facet::discard(std::vector<identifier> which) {
    co_return co_await write(core_, nullptr, [&](session& s) { return sqlite::discard_jobs(s, which); });
}

task<result<void>> job_facet::pause(std::string queue) {
    return set_paused(std::move(queue), true);
}

task<result<void>> job_facet::resume(std::string queue) {
    return set_paused(std::move(queue), false);
}

task<result<void>> job_facet::set_paused(std::string queue, bool paused) {
    if (auto ok = store_limits::check_name("queue", queue); !ok) co_return ok;
    co_return co_await write(core_, nullptr, [&](session& s) { sqlite::set_paused(s, queue, paused); });
}

task<result<std::vector<queue_view>>> job_facet::queues() {
    co_return co_await read(core_, [](session& s) { return list_queues(s); });
}

task<result<job_lookup>> job_facet::get(identifier id) {
    co_return co_await read(core_, [&](session& s) { return find(s, id); });
}

task<result<job_page>> job_facet::list(job_filter filter, int limit, std::string cursor) {
    if (auto ok = check_limit(limit); !ok) co_return std::unexpected(ok.error());
    const auto below = parse_identifier(cursor);
    if (!cursor.empty() && !below) co_return fail(errc::invalid_argument, "the cursor is not one that list() gave out");
    co_return co_await read(core_, [&](session& s) { return sqlite::list(s, filter, limit, below); });
}

task<result<std::vector<job_count>>> job_facet::counts() {
    co_return co_await read(core_, [](session& s) { return count_jobs(s); });
}

} // namespace holdfast::sqlite
