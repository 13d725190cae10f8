#include <algorithm>
#include <compare>

#include <holdfast/job_machine.hpp>
#include <holdfast/store_limits.hpp>

#include "batch.hpp"
#include "facets.hpp"
#include "rows.hpp"

namespace holdfast::postgres {

namespace {

parameters ids_and_tokens(const std::vector<lease_batch::entry>& sent) {
    parameters p;
    p.many(column::uuid, sent, [](const lease_batch::entry& e) { return e.id; });
    p.many(column::int8, sent, [](const lease_batch::entry& e) { return static_cast<std::int64_t>(e.token); });
    return p;
}

// Rows (place, answer, …): which argument, and what became of it. Places count from 1.
template <class Answer, class Fill>
void fill(std::vector<Answer>& answers, const lease_batch& batch, const pqxx::result& rows, Fill fill_in) {
    for (std::size_t i = 0; i < compat::rows(rows); ++i) {
        reader cells(rows, i);
        const auto place = static_cast<std::size_t>(cells.integer()) - 1;
        Answer& answer = answers.at(batch.sent.at(place).from);
        answer.answer = static_cast<write_answer>(cells.integer());
        fill_in(answer, cells);
    }
}

struct plain_answer {
    write_answer answer = write_answer::done;
};

std::vector<write_answer> plain(const std::vector<plain_answer>& answers) {
    std::vector<write_answer> all;
    for (const plain_answer& each : answers) all.push_back(each.answer);
    return all;
}

const job_lease& itself(const job_lease* held) noexcept {
    return *held;
}

// What the re-reading after a lost connection says of those that had been settled by then: they are left out of `open`.
std::vector<settled> read_back(session& here, std::span<const settlement> which, const lease_batch& batch,
                               std::vector<lease_batch::entry>& open) {
    std::vector<settled> answers(which.size());
    std::vector<bool> applied(batch.sent.size());
    const pqxx::result rows = here.run(query::settled_already, ids_and_tokens(batch.sent));
    for (std::size_t i = 0; i < compat::rows(rows); ++i) {
        reader cells(rows, i);
        const auto place = static_cast<std::size_t>(cells.integer()) - 1;
        const std::string outcome = cells.text();
        const settlement& asked = which[batch.sent.at(place).from];
        if (outcome != job_machine::outcome_text(asked.how)) continue; // ended by somebody else: stale
        applied[place] = true;
        answers[batch.sent[place].from].now = static_cast<job_state>(cells.integer());
    }
    for (std::size_t i = 0; i < batch.sent.size(); ++i)
        if (!applied[i]) open.push_back(batch.sent[i]);
    return answers;
}

// A job that succeeds may be forgotten at once, and leaves nothing to read back: after a lost connection nobody can tell
// whether the first try did that, or somebody who had taken the job over.
void check_not_forgotten(std::span<const settlement> which, const std::vector<lease_batch::entry>& sent,
                         const std::vector<settled>& answers) {
    const auto in_doubt = [&](const lease_batch::entry& e) {
        return which[e.from].how == settlement::kind::succeed && answers[e.from].answer == write_answer::gone;
    };
    if (std::ranges::any_of(sent, in_doubt))
        throw failed(
            {errc::unknown_outcome,
             "the connection was lost while settling; a job of the batch is not there any more, and may have been "
             "ended and forgotten by this call or by somebody else",
             {}});
}

parameters settlements(std::span<const settlement> which, const std::vector<lease_batch::entry>& sent, duration keep) {
    using entry = lease_batch::entry;
    using bytes = std::optional<std::string_view>;
    const auto of = [&](const entry& e) -> const settlement& { return which[e.from]; };
    const auto has_error = [&](const entry& e) { return !of(e).error.type.empty() || !of(e).error.message.empty(); };
    parameters p = ids_and_tokens(sent);
    p.many(column::int2, sent, [&](const entry& e) { return static_cast<std::int64_t>(of(e).how); });
    p.many(column::boolean, sent, [&](const entry& e) { return std::int64_t{of(e).when.how == due::kind::at}; });
    p.many(column::int8, sent, [&](const entry& e) {
        const due& when = of(e).when;
        return when.how == due::kind::at ? std::int64_t{when.time.time_since_epoch().count()} : micros(when.delay);
    });
    p.many(column::bytes, sent, [&](const entry& e) { return has_error(e) ? bytes(of(e).error.type) : std::nullopt; });
    p.many(column::bytes, sent,
           [&](const entry& e) { return has_error(e) ? bytes(of(e).error.message) : std::nullopt; });
    p.many(column::bytes, sent,
           [&](const entry& e) { return of(e).output.empty() ? std::nullopt : bytes(of(e).output); });
    p.one(column::int8, micros(keep));
    return p;
}

struct claims {
    std::vector<claimed_job> jobs;
    std::optional<claim_front::place> last; // of as many as were asked for
};

// The server answers in the order of its pages, which is often the right one.
claims in_order(const pqxx::result& rows, const claim_request& request) {
    struct place {
        std::ptrdiff_t queue;
        int priority; // negated
        std::int64_t due;
        identifier id;
        std::size_t found;
        auto operator<=>(const place&) const = default;
    };
    std::vector<claimed_job> found;
    std::vector<place> order;
    found.reserve(compat::rows(rows));
    order.reserve(compat::rows(rows));
    for (std::size_t i = 0; i < compat::rows(rows); ++i) {
        std::int64_t due = 0;
        const claimed_job& job = found.emplace_back(read_claimed(rows, i, due));
        order.push_back(
            {std::ranges::find(request.queues, job.queue) - request.queues.begin(), -job.priority, due, job.id, i});
    }
    const bool sorted = std::ranges::is_sorted(order);
    if (!sorted) std::ranges::sort(order);
    claims all;
    if (order.size() >= static_cast<std::size_t>(request.limit)) {
        const place& last = order.back();
        all.last = {found[last.found].queue, -last.priority, last.due, last.id};
    }
    if (sorted) {
        all.jobs = std::move(found);
        return all;
    }
    all.jobs.reserve(found.size());
    for (const place& each : order) all.jobs.push_back(std::move(found[each.found]));
    return all;
}

} // namespace

task<result<std::vector<claimed_job>>> jobs::claim(claim_request request) {
    if (auto ok = store_limits::check(request); !ok) co_return std::unexpected(std::move(ok.error()));
    auto run = [&](session& here) {
        const time_point began = std::chrono::steady_clock::now();
        const auto front = front_.before(request, began);
        const claim_front::place from = front.value_or(claim_front::place());
        parameters p;
        p.many(column::text, request.queues, [](const std::string& q) { return std::string_view(q); });
        p.one(column::int4, request.limit).one(column::int8, micros(request.lease_for));
        p.one(column::bytes, std::string_view(request.worker));
        p.one(column::text, std::string_view(from.queue)).one(column::int4, from.priority);
        p.one(column::int8, from.due).one(column::uuid, from.id);
        claims made = in_order(here.run(query::claim, p), request);
        front_.after(std::move(made.last), front, began);
        if (!request.then_hand_to.empty()) handover_.after_claim(here, request, made.jobs);
        return std::move(made.jobs);
    };
    co_return co_await core_.call<std::vector<claimed_job>>(after_loss::unknown, run);
}

task<result<std::vector<write_answer>>> jobs::started(std::span<const job_lease* const> which) {
    const lease_batch batch = make_batch(which, itself);
    auto run = [&](session& here) {
        std::vector<plain_answer> answers(which.size());
        for (const std::size_t i : batch.never) answers[i].answer = write_answer::gone;
        if (!batch.sent.empty()) {
            parameters p = ids_and_tokens(batch.sent);
            p.many(column::int4, std::vector<int>{}, [](int) { return std::int64_t{}; });
            p.many(column::bytes, std::vector<int>{}, [](int) { return std::string_view(); });
            fill(answers, batch, here.run(query::progress, p), [](plain_answer&, reader&) {});
        }
        for (const auto& [argument, first] : batch.twice) answers[argument] = answers[batch.sent[first].from];
        return plain(answers);
    };
    co_return co_await core_.call<std::vector<write_answer>>(after_loss::again, run);
}

task<result<std::vector<write_answer>>> jobs::progress(std::span<const progress_report> which) {
    const lease_batch batch = make_batch(which, [](const progress_report& r) -> const job_lease& { return *r.held; });
    auto run = [&](session& here) {
        std::vector<plain_answer> answers(which.size());
        for (const std::size_t i : batch.never) answers[i].answer = write_answer::gone;
        if (!batch.sent.empty()) {
            using entry = lease_batch::entry;
            std::vector<std::size_t> last; // of several reports on one job
            for (const entry& each : batch.sent) last.push_back(each.from);
            for (const auto& [argument, first] : batch.twice) last[first] = std::max(last[first], argument);
            parameters p = ids_and_tokens(batch.sent);
            p.many(column::int4, last, [&](std::size_t i) { return std::int64_t{which[i].percent}; });
            p.many(column::bytes, last, [&](std::size_t i) { return std::string_view(which[i].note); });
            fill(answers, batch, here.run(query::progress, p), [](plain_answer&, reader&) {});
        }
        for (const auto& [argument, first] : batch.twice) answers[argument] = answers[batch.sent[first].from];
        return plain(answers);
    };
    co_return co_await core_.call<std::vector<write_answer>>(after_loss::again, run);
}

task<result<std::vector<beat>>> jobs::heartbeat(std::span<const job_lease* const> held, duration lease_for) {
    if (auto ok = store_limits::check_time("a lease", lease_for); !ok) co_return std::unexpected(ok.error());
    const lease_batch batch = make_batch(held, itself);
    auto run = [&](session& here) {
        std::vector<beat> answers(held.size());
        for (const std::size_t i : batch.never) answers[i].answer = write_answer::gone;
        if (!batch.sent.empty()) {
            parameters p = ids_and_tokens(batch.sent);
            p.one(column::int8, micros(lease_for));
            fill(answers, batch, here.run(query::heartbeat, p),
                 [](beat& answer, reader& cells) { answer.cancel_requested = cells.flag(); });
        }
        for (const auto& [argument, first] : batch.twice) answers[argument] = answers[batch.sent[first].from];
        return answers;
    };
    co_return co_await core_.call<std::vector<beat>>(after_loss::again, run);
}

task<result<std::vector<settled>>> jobs::settle(std::span<const settlement> which, unit_of_work* in) {
    for (const settlement& each : which)
        if (auto ok = store_limits::check_body("job's output", each.output, core_.how().max_payload); !ok)
            co_return std::unexpected(std::move(ok.error()));
    const lease_batch batch = make_batch(which, [](const settlement& s) -> const job_lease& { return *s.held; });
    auto run = [&](session& here) {
        std::vector<settled> answers(which.size());
        lease_batch open;
        if (here.retried()) answers = read_back(here, which, batch, open.sent);
        else open.sent = batch.sent;
        for (const std::size_t i : batch.never) answers[i].answer = write_answer::gone;
        if (!open.sent.empty()) {
            const parameters p = settlements(which, open.sent, core_.how().keep_succeeded);
            fill(answers, open, here.run(query::settle, p),
                 [](settled& answer, reader& cells) { answer.now = static_cast<job_state>(cells.integer()); });
            if (here.retried()) check_not_forgotten(which, open.sent, answers);
        }
        for (const auto& [argument, first] : batch.twice) {
            const settled& earlier = answers[batch.sent[first].from];
            answers[argument] = {earlier.answer == write_answer::gone ? write_answer::gone : write_answer::stale,
                                 earlier.now};
        }
        return answers;
    };
    co_return co_await core_.call<std::vector<settled>>(after_loss::again, run, in);
}

} // namespace holdfast::postgres
