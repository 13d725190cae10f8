#include <algorithm>
#include <unordered_map>

#include <holdfast/store_limits.hpp>

#include "facets.hpp"
#include "rows.hpp"

namespace holdfast::postgres {

namespace {

struct hash_id {
    std::size_t operator()(const identifier& id) const noexcept {
        return std::hash<std::string_view>{}({reinterpret_cast<const char*>(id.bytes.data()), id.bytes.size()});
    }
};
using ids = std::unordered_map<identifier, std::size_t, hash_id>;

// Of several with one id the first counts. Of several with one unique key the server says which: the first may be there
// already by its id, and then it does not hold the key.
struct batch {
    std::vector<new_job> all;
    std::vector<std::size_t> first; // for each the index of the one that counts
    std::vector<const new_job*> sent;
    std::vector<std::string> queues; // of those
    std::vector<std::string> woken;  // of those that may be due
    bool parents = false;
    bool unique = false;
    bool alike = true;            // they differ in id, headers and body alone
    bool leaves_no_trace = false; // one may be done and forgotten at any time

    batch(std::vector<new_job> jobs, duration keep) : all(std::move(jobs)), first(all.size()) {
        ids by_id;
        by_id.reserve(all.size());
        sent.reserve(all.size());
        for (std::size_t i = 0; i < all.size(); ++i) {
            const new_job& job = all[i];
            first[i] = by_id.try_emplace(job.id, i).first->second;
            if (first[i] != i) continue;
            sent.push_back(&job);
            parents |= job.parent.has_value();
            unique |= job.unique_key.has_value();
            alike = alike && are_alike(job, *sent.front());
            leaves_no_trace |= job.keep_for.value_or(keep) <= duration::zero();
            add(queues, job.queue);
            if (may_be_due(job.when)) add(woken, job.queue);
        }
        alike = alike && !parents && !unique;
        make_set(queues);
        make_set(woken);
        // In one order by everybody, so that two batches with the same ids do not wait for each other in a circle.
        if (!parents && !unique) std::ranges::sort(sent, {}, &new_job::id);
    }

private:
    static void add(std::vector<std::string>& names, const std::string& name) {
        if (names.empty() || names.back() != name) names.push_back(name);
    }
    static void make_set(std::vector<std::string>& names) {
        std::ranges::sort(names);
        names.erase(std::ranges::unique(names).begin(), names.end());
    }
    static bool are_alike(const new_job& a, const new_job& b) {
        return a.same_terms(b) && a.what.type == b.what.type && a.what.version == b.what.version &&
               a.what.content_type == b.what.content_type;
    }
    // The server's clock decides, this one may be wrong: a hint for nothing costs a claim, one that is missing a worker's
    // whole wait.
    static bool may_be_due(const due& when) {
        constexpr auto wrong_at_most = std::chrono::hours{24};
        return when.how == due::kind::at ? when.time <= std::chrono::system_clock::now() + wrong_at_most
                                         : when.delay <= duration::zero();
    }
};

std::int64_t due_value(const due& when) noexcept {
    return when.how == due::kind::at ? when.time.time_since_epoch().count() : micros(when.delay);
}

// Everything but id, headers and body.
void put_kind(parameters& p, const new_job& job) {
    p.one(column::text, std::string_view(job.queue));
    p.one(column::text, std::string_view(job.what.type)).one(column::int4, job.what.version);
    p.one(column::bytes, std::string_view(job.what.content_type)).one(column::int4, job.priority);
    p.one(column::boolean, job.when.how == due::kind::at).one(column::int8, due_value(job.when));
    p.one(column::int4, job.max_attempts).one(column::int4, job.max_crashes).one(column::boolean, job.may_restart);
    p.one(column::int8, job.keep_for ? std::max(micros(*job.keep_for), std::int64_t{0}) : std::int64_t{-1});
}

std::optional<std::string> headers_of(const new_job* job) {
    return job->extra.empty() ? std::nullopt : std::optional(encode_headers(job->extra));
}

std::string_view body_of(const new_job* job) {
    return job->what.body;
}

parameters one_job(const new_job& job) {
    parameters p;
    p.one(column::uuid, job.id);
    put_kind(p, job);
    p.one(column::bytes, std::string_view(encode_headers(job.extra)));
    p.one(column::bytes, std::string_view(job.what.body));
    return p;
}

parameters jobs_alike(const batch& all, const std::vector<std::string>& new_queues, bool ring) {
    const std::vector<const new_job*>& jobs = all.sent;
    parameters p;
    p.many(column::uuid, jobs, [](const new_job* j) { return j->id; });
    p.many(column::bytes, jobs, headers_of).many(column::bytes, jobs, body_of);
    put_kind(p, *jobs.front());
    p.many(column::text, new_queues, [](const std::string& q) { return std::string_view(q); });
    p.one(column::boolean, ring);
    return p;
}

parameters many_jobs(const batch& all, const std::vector<std::string>& new_queues, bool ring) {
    const std::vector<const new_job*>& jobs = all.sent;
    using view = std::string_view;
    using number = std::optional<std::int64_t>;
    parameters p;
    p.many(column::uuid, jobs, [](const new_job* j) { return j->id; });
    p.many(column::text, jobs, [](const new_job* j) { return view(j->queue); });
    p.many(column::text, jobs, [](const new_job* j) { return view(j->what.type); });
    p.many(column::int4, jobs, [](const new_job* j) { return std::int64_t{j->what.version}; });
    p.many(column::bytes, jobs, [](const new_job* j) { return view(j->what.content_type); });
    p.many(column::int4, jobs, [](const new_job* j) { return std::int64_t{j->priority}; });
    p.many(column::boolean, jobs, [](const new_job* j) { return std::int64_t{j->when.how == due::kind::at}; });
    p.many(column::int8, jobs, [](const new_job* j) { return due_value(j->when); });
    p.many(column::int4, jobs, [](const new_job* j) { return std::int64_t{j->max_attempts}; });
    p.many(column::int4, jobs, [](const new_job* j) { return std::int64_t{j->max_crashes}; });
    p.many(column::boolean, jobs, [](const new_job* j) { return std::int64_t{j->may_restart}; });
    p.many(column::int8, jobs, [](const new_job* j) {
        return j->keep_for ? number(std::max(micros(*j->keep_for), std::int64_t{0})) : std::nullopt;
    });
    p.many(column::bytes, jobs, headers_of);
    p.many(column::bytes, jobs, [](const new_job* j) { return j->unique_key; });
    p.many(column::bytes, jobs, body_of);
    p.many(column::uuid, all.parents ? jobs : std::vector<const new_job*>{},
           [](const new_job* j) { return j->parent; });
    p.many(column::text, new_queues, [](const std::string& q) { return view(q); });
    p.one(column::boolean, ring);
    return p;
}

using others = std::unordered_map<identifier, identifier, hash_id>; // not created: what is there instead

// The answer of enqueue_and_tell().
bool is_made(const pqxx::result& answer, bool& handed) {
    const int what = reader(answer, 0).small();
    handed = what == 2;
    return what > 0;
}

// `ring`: the server tells those who listen when this is committed. With `handed` it may hand a lone job to one of them who is
// idle, and tell nobody else.
others send(session& here, const batch& jobs, const std::vector<std::string>& new_queues, bool ring,
            bool* handed = nullptr) {
    others found;
    if (jobs.sent.size() == 1 && !jobs.unique && !jobs.parents && new_queues.empty()) {
        // An id that is there is rare enough to be an error of the server: ON CONFLICT costs every insert something.
        const new_job& job = *jobs.sent.front();
        bool made = false;
        const bool tell = ring && !jobs.woken.empty();
        try {
            if (tell && handed != nullptr) {
                made = is_made(here.run(query::enqueue_and_tell, one_job(job)), *handed);
            } else {
                const auto how = tell ? query::enqueue_plain_one_and_ring : query::enqueue_plain_one;
                made = compat::rows(here.run(how, one_job(job))) > 0;
            }
        } catch (const pqxx::unique_violation&) { // not made
        }
        if (!made) found.emplace(job.id, job.id);
        return found;
    }
    const pqxx::result answer = jobs.alike ? here.run(query::enqueue_alike, jobs_alike(jobs, new_queues, ring))
                                           : here.run(query::enqueue, many_jobs(jobs, new_queues, ring));
    for (std::size_t i = 0; i < compat::rows(answer); ++i) {
        reader cells(answer, i);
        const identifier wanted = cells.id();
        found.emplace(wanted, cells.id());
    }
    return found;
}

// After a connection was lost, and what was under way has ended. Those that are there now count as created by us.
others send_again(session& here, const batch& jobs, const std::vector<std::string>& new_queues, bool ring) {
    parameters p;
    p.many(column::uuid, jobs.sent, [](const new_job* j) { return j->id; });
    const pqxx::result there = here.run(query::find_jobs, p);
    if (jobs.leaves_no_trace && compat::rows(there) < jobs.sent.size())
        throw failed(
            {errc::unknown_outcome,
             "the connection was lost while enqueueing; a job of the batch is not there, but may have been done "
             "and forgotten already",
             {}});
    others found = send(here, jobs, new_queues, ring);
    for (std::size_t i = 0; i < compat::rows(there); ++i) found.erase(reader(there, i).id());
    return found;
}

} // namespace

task<result<std::vector<enqueued>>> jobs::enqueue(std::vector<new_job> all, unit_of_work* in) {
    if (auto ok = store_limits::check_all(all, core_.how().max_payload); !ok)
        co_return std::unexpected(std::move(ok.error()));
    if (in != nullptr || !enqueue_groups::may_join(all)) co_return co_await enqueue_batch(std::move(all), in);

    enqueue_groups::member mine(groups_, all);
    auto joining = mine.join();
    co_await joining;
    if (mine.leads()) {
        auto group = groups_.gather(mine);
        result<std::vector<enqueued>> answers;
        try {
            std::vector<new_job> together = enqueue_groups::jobs_of(group);
            answers = co_await enqueue_batch(std::move(together), nullptr);
        } catch (const std::exception& e) {
            answers = fail(errc::internal, e.what());
        }
        groups_.share_out(group, answers);
    }
    if (mine.alone()) co_return co_await enqueue_batch(std::move(all), nullptr);
    co_return mine.take_answer();
}

task<result<std::vector<enqueued>>> jobs::enqueue_batch(std::vector<new_job> all, unit_of_work* in) {
    const batch jobs(std::move(all), core_.how().keep_succeeded);
    std::vector<std::string> new_queues;
    for (const std::string& queue : jobs.queues)
        if (in != nullptr || !core_.knows_queue(queue)) new_queues.push_back(queue);
    auto run = [&](session& here) {
        if (jobs.sent.empty()) return others{};
        if (in != nullptr) return send(here, jobs, new_queues, true);
        bell::turn turn = core_.doorbell.take_turn(jobs.woken);
        bool handed = false;
        others instead = here.retried() ? send_again(here, jobs, new_queues, turn.in_commit())
                                        : send(here, jobs, new_queues, turn.in_commit(), &handed);
        if (!handed) turn.committed(); // and somebody may be idle
        return instead;
    };
    // Without parents, unique keys and new queues it waits for nobody's unit of work.
    const bool waits_for_none = in == nullptr && !jobs.parents && !jobs.unique && new_queues.empty();
    auto sending = waits_for_none ? core_.call_here<others>(after_loss::again, run)
                                  : core_.call<others>(after_loss::again, run, in);
    auto found = co_await std::move(sending);
    if (!found) co_return std::unexpected(std::move(found.error()));
    if (in == nullptr) core_.learn_queues(new_queues);

    std::vector<enqueued> answers(jobs.all.size());
    for (std::size_t i = 0; i < answers.size(); ++i) {
        const identifier& id = jobs.all[jobs.first[i]].id;
        const auto other = found->find(id);
        answers[i] = {other == found->end() ? id : other->second, jobs.first[i] == i && other == found->end()};
    }
    co_return answers;
}

} // namespace holdfast::postgres
