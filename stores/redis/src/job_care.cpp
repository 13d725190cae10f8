// Jobs: the calls of operators and of the recovery loop, and what is read.
#include <algorithm>

#include <holdfast/store_limits.hpp>

#include "call.hpp"
#include "facets.hpp"

namespace holdfast::redis {

namespace {

arguments of(const std::vector<identifier>& ids) {
    arguments with;
    for (const identifier& each : ids) with.add(each);
    return with;
}

struct sweep {
    recovery done;
    bool more = false; // to forget
};
sweep to_sweep(reply& from) {
    reader r(from);
    sweep s;
    s.done.requeued = r.integer();
    s.done.failed = r.integer();
    s.done.deleted = r.integer();
    s.done.dead_letter = r.integer();
    s.more = r.flag();
    return s;
}
std::optional<duration> to_wait(reply& from) {
    if (from.number < 0) return std::nullopt;
    return std::chrono::microseconds(from.number);
}
std::vector<cancel_answer> to_cancelled(reply& from) {
    std::vector<cancel_answer> answers;
    for (reader r(from); r.more();) answers.push_back(static_cast<cancel_answer>(r.integer()));
    return answers;
}
std::vector<queue_view> to_queues(reply& from) {
    std::vector<queue_view> queues;
    for (reader r(from); r.more();) {
        std::string name = r.text();
        queues.push_back({std::move(name), r.flag()});
    }
    std::ranges::sort(queues, {}, &queue_view::name);
    return queues;
}
job_lookup to_lookup(reply& from) {
    if (from.what == reply::kind::integer) return from.number == 0 ? job_absence::never_known : job_absence::expired;
    reader r(from);
    job_view job = decode_job(r);
    std::vector<attempt_entry> all;
    for (reader ended(r.next()); ended.more();) all.push_back(decode_attempt(ended.next()));
    std::ranges::move(job.history, std::back_inserter(all)); // the one that its record tells of is the last
    job.history = std::move(all);
    return job;
}
std::vector<job_count> to_counts(reply& from) {
    std::vector<job_count> counts;
    for (reader r(from); r.more();) {
        job_count& c = counts.emplace_back();
        c.queue = r.text();
        c.state = static_cast<job_state>(r.integer());
        c.count = r.token();
    }
    return counts;
}

// One look into the books: the jobs found and where it came to.
struct look {
    std::string came_to; // empty: there is nothing below; *: ask again
    std::vector<job_view> jobs;
};
look to_look(reply& from) {
    reader r(from);
    look found;
    found.came_to = r.text();
    while (r.more()) {
        found.jobs.push_back(decode_job(r));
        found.jobs.back().history.clear();
    }
    return found;
}
arguments to_arguments(const job_filter& filter, int limit, const std::string& below) {
    arguments with;
    with.add(filter.state ? std::to_string(static_cast<int>(*filter.state)) : std::string());
    with.add(filter.queue.has_value()).add(filter.queue.value_or(""));
    with.add(filter.type.has_value()).add(filter.type.value_or(""));
    with.add(limit).add(below);
    return with;
}

} // namespace

// A script forgets a thousand jobs at most, so that it does not hold up the others; it is called again for more.
task<result<recovery>> job_facet::recover_stale(int limit) {
    const auto once = [this](int most) {
        arguments with;
        with.add(most).add(core_.how.keep_tombstones).add(core_.how.keep_succeeded);
        return call<sweep>(core_, script::recover_stale, std::move(with), access::write, to_sweep);
    };
    auto first = once(std::max(0, limit));
    auto swept = co_await std::move(first);
    if (!swept) co_return std::unexpected(swept.error());
    bool more = swept->more;
    for (int i = 0; more && i < 100; ++i) {
        auto next = once(0);
        const auto again = co_await std::move(next);
        more = again && again->more; // what fails here is for the next time
    }
    co_return swept->done;
}

task<result<std::optional<duration>>> job_facet::next_due(std::vector<std::string> queues) {
    arguments with;
    with.values = std::move(queues);
    co_return co_await call<std::optional<duration>>(core_, script::next_due, std::move(with), access::read, to_wait);
}

task<result<std::vector<cancel_answer>>> job_facet::cancel(std::vector<identifier> which) {
    if (which.empty()) co_return std::vector<cancel_answer>();
    co_return co_await call<std::vector<cancel_answer>>(core_, script::cancel, of(which), access::write, to_cancelled);
}

task<result<int>> job_facet::requeue(std::vector<identifier> which) {
    if (which.empty()) co_return 0;
    co_return co_await call<int>(core_, script::requeue, of(which), access::write, to_count);
}

task<result<int>> job_facet::purge(job_state state, duration older_than, int limit) {
    if (!is_final(state))
        co_return fail(errc::invalid_argument,
                       "only jobs that have ended can be purged, not " + std::string(to_text(state)));
    arguments with;
    with.add(static_cast<int>(state)).add(older_than).add(std::max(0, limit)).add(core_.how.keep_tombstones);
    co_return co_await call<int>(core_, script::purge, std::move(with), access::write, to_count);
}

task<result<int>> job_facet::discard(std::vector<identifier> which) {
    if (which.empty()) co_return 0;
    arguments with;
    with.add(core_.how.keep_tombstones);
    for (const identifier& each : which) with.add(each);
    co_return co_await call<int>(core_, script::discard_jobs, std::move(with), access::write, to_count);
}

task<result<void>> job_facet::pause(std::string queue) {
    if (auto ok = store_limits::check_name("queue", queue); !ok) co_return ok;
    arguments with;
    with.add(std::move(queue)).add(true);
    co_return co_await call<void>(core_, script::pause, std::move(with), access::write, [](reply&) {});
}

task<result<void>> job_facet::resume(std::string queue) {
    arguments with;
    with.add(std::move(queue)).add(false);
    co_return co_await call<void>(core_, script::pause, std::move(with), access::write, [](reply&) {});
}

task<result<std::vector<queue_view>>> job_facet::queues() {
    co_return co_await call<std::vector<queue_view>>(core_, script::queues, {}, access::read, to_queues);
}

task<result<job_lookup>> job_facet::get(identifier id) {
    arguments with;
    with.add(id).add(core_.how.keep_succeeded);
    co_return co_await call<job_lookup>(core_, script::get, std::move(with), access::read, to_lookup);
}

// A look goes through a bounded number of jobs, so a rare filter takes several.
task<result<job_page>> job_facet::list(job_filter filter, int limit, std::string cursor) {
    if (limit < 1) co_return fail(errc::invalid_argument, "a page needs a limit of 1 or more");
    if (!cursor.empty() && !parse_identifier(cursor))
        co_return fail(errc::invalid_argument, "this is not a cursor of a page");
    const auto wanted = static_cast<std::size_t>(limit) + 1;
    job_page page;
    for (bool more = true; more;) {
        const int at_most = static_cast<int>(std::min<std::size_t>(wanted - page.jobs.size(), 1000));
        auto found =
            co_await call<look>(core_, script::list, to_arguments(filter, at_most, cursor), access::read, to_look);
        if (!found) co_return std::unexpected(found.error());
        if (found->came_to == "*") continue;
        std::ranges::move(found->jobs, std::back_inserter(page.jobs));
        cursor = std::move(found->came_to);
        more = !cursor.empty() && page.jobs.size() < wanted;
    }
    if (page.jobs.size() == wanted) {
        page.jobs.pop_back();
        page.next = to_text(page.jobs.back().id);
    }
    co_return page;
}

task<result<std::vector<job_count>>> job_facet::counts() {
    co_return co_await call<std::vector<job_count>>(core_, script::counts, {}, access::read, to_counts);
}

} // namespace holdfast::redis
