#include <algorithm>

#include <holdfast/postgres/naming.hpp>
#include <holdfast/store_limits.hpp>

#include "facets.hpp"
#include "rows.hpp"

namespace holdfast::postgres {

namespace {

parameters only_ids(const std::vector<identifier>& which) {
    parameters p;
    p.many(column::uuid, which, [](const identifier& id) { return id; });
    return p;
}

} // namespace

// The server forgets a thousand of each kind at a time, so that no statement is long; it is asked again for more.
task<result<recovery>> jobs::recover_stale(int limit) {
    if (limit < 1) co_return fail(errc::invalid_argument, "recover_stale needs a limit of 1 or more");
    auto run = [&](session& here) {
        parameters p;
        p.one(column::int4, limit);
        add_sweep(p, core_.how());
        const pqxx::result rows = here.run(query::recover, p);
        reader cells(rows, 0);
        std::pair<recovery, bool> found;
        recovery& r = found.first;
        r.requeued = cells.small();
        r.failed = cells.small();
        r.deleted = cells.small();
        r.dead_letter = cells.small();
        found.second = cells.flag();
        return found;
    };
    auto recovering = core_.call<std::pair<recovery, bool>>(after_loss::unknown, run);
    const auto recovered = co_await std::move(recovering);
    if (!recovered) co_return std::unexpected(recovered.error());
    bool more = recovered->second;
    for (int i = 0; more && i < 100; ++i) {
        auto sweeping = core_.call<bool>(after_loss::unknown, [this](session& here) {
            parameters p;
            add_sweep(p, core_.how());
            return reader(here.run(query::sweep, p), 0).flag();
        });
        more = (co_await std::move(sweeping)).value_or(false); // what fails here is for the next time
    }
    co_return recovered->first;
}

task<result<std::optional<duration>>> jobs::next_due(std::vector<std::string> names) {
    auto run = [&](session& here) -> std::optional<duration> {
        parameters p;
        p.many(column::text, names, [](const std::string& q) { return std::string_view(q); });
        const pqxx::result rows = here.run(query::next_due, p);
        const auto after = reader(rows, 0).optional_integer();
        if (!after) return std::nullopt;
        constexpr std::int64_t most = forever.count() / 1000;
        return std::chrono::microseconds{std::clamp(*after, std::int64_t{0}, most)};
    };
    co_return co_await core_.call<std::optional<duration>>(after_loss::again, run);
}

task<result<std::vector<cancel_answer>>> jobs::cancel(std::vector<identifier> which) {
    std::vector<identifier> sorted = which;
    std::ranges::sort(sorted);
    sorted.erase(std::ranges::unique(sorted).begin(), sorted.end());
    auto run = [&](session& here) {
        std::vector<cancel_answer> answers(sorted.size(), cancel_answer::not_found);
        const pqxx::result rows = here.run(query::cancel, only_ids(sorted));
        for (std::size_t i = 0; i < compat::rows(rows); ++i) {
            reader cells(rows, i);
            const auto place = static_cast<std::size_t>(cells.integer()) - 1;
            answers.at(place) = static_cast<cancel_answer>(cells.integer());
        }
        return answers;
    };
    auto found = co_await core_.call<std::vector<cancel_answer>>(after_loss::unknown, run);
    if (!found) co_return std::unexpected(std::move(found.error()));
    std::vector<cancel_answer> answers;
    for (const identifier& id : which)
        answers.push_back((*found)[static_cast<std::size_t>(std::ranges::lower_bound(sorted, id) - sorted.begin())]);
    co_return answers;
}

task<result<int>> jobs::requeue(std::vector<identifier> which) {
    std::ranges::sort(which);
    auto run = [&](session& here) { return reader(here.run(query::requeue, only_ids(which)), 0).small(); };
    co_return co_await core_.call<int>(after_loss::unknown, run);
}

task<result<int>> jobs::purge(job_state state, duration older_than, int limit) {
    if (!is_final(state))
        co_return fail(errc::invalid_argument,
                       "only ended jobs can be purged, not those " + std::string(to_text(state)));
    auto run = [&](session& here) {
        parameters p;
        p.one(column::int2, static_cast<std::int64_t>(state)).one(column::int8, micros(older_than));
        p.one(column::int4, std::max(limit, 0));
        return reader(here.run(query::purge, p), 0).small();
    };
    co_return co_await core_.call<int>(after_loss::unknown, run);
}

task<result<int>> jobs::discard(std::vector<identifier> which) {
    auto run = [&](session& here) { return reader(here.run(query::discard, only_ids(which)), 0).small(); };
    co_return co_await core_.call<int>(after_loss::unknown, run);
}

task<result<void>> jobs::set_paused(std::string queue, bool paused) {
    if (auto ok = store_limits::check_name("queue", queue); !ok) co_return ok;
    auto run = [&](session& here) {
        parameters p;
        p.one(column::text, std::string_view(queue)).one(column::boolean, paused);
        here.run(query::pause, p);
    };
    co_return co_await core_.call<void>(after_loss::again, run);
}

task<result<void>> jobs::pause(std::string queue) {
    return set_paused(std::move(queue), true);
}
task<result<void>> jobs::resume(std::string queue) {
    return set_paused(std::move(queue), false);
}

task<result<std::vector<queue_view>>> jobs::queues() {
    auto run = [](session& here) {
        std::vector<queue_view> all;
        const pqxx::result rows = here.run(query::queues, {});
        for (std::size_t i = 0; i < compat::rows(rows); ++i) {
            reader cells(rows, i);
            std::string name = cells.text();
            all.push_back({std::move(name), cells.flag()});
        }
        return all;
    };
    co_return co_await core_.call<std::vector<queue_view>>(after_loss::again, run);
}

task<result<job_lookup>> jobs::get(identifier id) {
    auto run = [&](session& here) {
        parameters p;
        p.one(column::uuid, id);
        return read_lookup(here.run(query::get, p));
    };
    co_return co_await core_.call<job_lookup>(after_loss::again, run);
}

namespace {

// The state is written into the text, so that the planner sees which partial index fits.
std::string list_text(const job_filter& filter, bool after, std::string_view name) {
    std::string where = "true";
    int next = 2;
    if (filter.state) {
        constexpr std::string_view due = "(j.state IN (0, 1, 3) AND NOT j.waits AND j.due <= c.now)";
        const int state = static_cast<int>(*filter.state);
        if (*filter.state == job_state::pending) where = due;
        else where = "j.state = " + std::to_string(state);
        if (!is_final(*filter.state) && *filter.state != job_state::pending) where += " AND NOT " + std::string(due);
    }
    if (filter.queue) where += " AND j.queue = $" + std::to_string(next++) + "::text";
    if (filter.type) where += " AND j.type = $" + std::to_string(next++) + "::text";
    if (after) where += " AND j.id < $" + std::to_string(next++) + "::uuid";
    return in_namespace("SELECT " + std::string(job_columns) +
                            " FROM {ns}.jobs j, (SELECT {ns}.clock() AS now OFFSET 0) c"
                            " WHERE " +
                            where + " ORDER BY j.id DESC LIMIT $1::int4",
                        name);
}

} // namespace

task<result<job_page>> jobs::list(job_filter filter, int limit, std::string cursor) {
    if (limit < 1) co_return fail(errc::invalid_argument, "a page needs a limit of 1 or more");
    std::optional<identifier> after;
    if (!cursor.empty()) {
        after = parse_identifier(cursor);
        if (!after) co_return fail(errc::invalid_argument, "this cursor was not made by list()");
    }
    if (filter.state && static_cast<int>(*filter.state) >= job_state_count)
        co_return fail(errc::invalid_argument, "there is no such job state");
    for (const auto* name : {&filter.queue, &filter.type})
        if (*name && !store_limits::is_text(**name)) co_return job_page{};
    auto run = [&](session& here) {
        parameters p;
        p.one(column::int4, std::int64_t{std::min(limit, 1'000'000)} + 1);
        if (filter.queue) p.one(column::text, std::string_view(*filter.queue));
        if (filter.type) p.one(column::text, std::string_view(*filter.type));
        if (after) p.one(column::uuid, *after);
        const pqxx::result rows = here.run({{}, list_text(filter, after.has_value(), core_.how().name)}, p);
        job_page page;
        const bool more = compat::rows(rows) > static_cast<std::size_t>(limit);
        for (std::size_t i = 0; i < compat::rows(rows) - (more ? 1 : 0); ++i) {
            reader cells(rows, i);
            page.jobs.push_back(read_job(cells));
        }
        if (more) page.next = to_text(page.jobs.back().id);
        return page;
    };
    co_return co_await core_.call<job_page>(after_loss::again, run);
}

task<result<std::vector<job_count>>> jobs::counts() {
    auto run = [](session& here) {
        std::vector<job_count> all;
        const pqxx::result rows = here.run(query::counts, {});
        for (std::size_t i = 0; i < compat::rows(rows); ++i) {
            reader cells(rows, i);
            std::string queue = cells.text();
            const auto state = static_cast<job_state>(cells.integer());
            all.push_back({std::move(queue), state, static_cast<std::uint64_t>(cells.integer())});
        }
        return all;
    };
    co_return co_await core_.call<std::vector<job_count>>(after_loss::again, run);
}

} // namespace holdfast::postgres
