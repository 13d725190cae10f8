#include <holdfast/job_lab.hpp>

#include <algorithm>
#include <iterator>
#include <set>

#include <holdfast/engine.hpp>
#include <holdfast/job_registry.hpp>
#include <holdfast/job_worker.hpp>

#include "lab_parts.hpp"
#include "memory_store.hpp"

namespace holdfast {

namespace {

constexpr duration longest_handler = std::chrono::hours{24 * 7};
constexpr duration moment = std::chrono::milliseconds{1};
constexpr int most_moments = 20; // that a worker may take to notice a job which is due; a paused one stays

drained operator-(const worker_snapshot& after, const worker_snapshot& before) {
    const auto since = [](std::uint64_t now, std::uint64_t then) { return static_cast<int>(now - then); };
    return {.succeeded = since(after.succeeded, before.succeeded),
            .retried = since(after.retried, before.retried),
            .dead_lettered = since(after.dead_lettered, before.dead_lettered),
            .failed = since(after.failed, before.failed),
            .cancelled = since(after.cancelled, before.cancelled),
            .snoozed = since(after.snoozed, before.snoozed),
            .indeterminate = since(after.indeterminate, before.indeterminate)};
}

drained& operator+=(drained& sum, const drained& more) {
    sum.succeeded += more.succeeded;
    sum.retried += more.retried;
    sum.dead_lettered += more.dead_lettered;
    sum.failed += more.failed;
    sum.cancelled += more.cancelled;
    sum.snoozed += more.snoozed;
    sum.indeterminate += more.indeterminate;
    return sum;
}

template <class T>
T value_of(result<T> answer) {
    if (!answer) throw failed(std::move(answer.error()));
    if constexpr (!std::is_void_v<T>) return std::move(*answer);
}

} // namespace

struct job_lab::parts {
    struct shift {
        std::unique_ptr<job_worker> worker;
        worker_snapshot told; // as of the latest news()
    };
    // Of all workers.
    struct standing {
        std::vector<running_job> running;
        std::uint64_t claimed = 0;
        int waiting = 0; // to begin, or to be written
    };

    parts(job_defaults defaults, std::uint64_t with_seed, std::uint64_t order)
        : seed(with_seed), time(order), made(time, with_seed), kept(memory::make_store({}, &time)), ids(with_seed),
          client(*kept->jobs(), ids, defaults, &lines) {}
    ~parts() {
        for (const shift& each : shifts) sync_wait(time, each.worker->stop());
    }

    job_store& store() { return *kept->jobs(); }
    template <class T>
    T get(task<result<T>> what) {
        return value_of(sync_wait(time, std::move(what)));
    }

    // Every queue that a kind names or a job is in.
    std::set<std::string> queues() {
        std::set<std::string> names = {"default"};
        kinds.for_each([&](job_type& each) { names.emplace(each.options().queue); });
        for (queue_view& each : get(store().queues())) names.insert(std::move(each.name));
        return names;
    }

    // A worker for the queues that have none; those that run may be in the middle of a handler. False: all have one.
    bool start_worker() {
        auto unserved = queues();
        std::erase_if(unserved, [&](const std::string& each) { return served.contains(each); });
        if (unserved.empty()) return false;
        worker_options how;
        how.queues.clear();
        for (const std::string& each : unserved) how.queues.push_back({.name = each});
        how.name = "lab-" + std::to_string(shifts.size() + 1);
        how.settle_wait = duration::zero();
        how.sweep = std::chrono::hours{1}; // nobody else is here to die
        how.progress_every = std::chrono::minutes{1};
        how.defaults = client.defaults();
        const worker_parts with{.on = time,
                                .store = store(),
                                .kinds = kinds,
                                .log = lines,
                                .policies = &made.policies(),
                                .client = &client,
                                .rules = rules ? &*rules : nullptr};
        auto worker = std::make_unique<job_worker>(with, how, seed + shifts.size());
        value_of(worker->start());
        shifts.push_back({std::move(worker), {}});
        served.merge(unserved);
        return true;
    }

    // What can run now, also in queues that come up meanwhile.
    void run_ready() {
        do time.run_ready();
        while (start_worker());
    }
    // All look at once, and not at their next polls.
    void look_for_work() {
        for (const shift& each : shifts) each.worker->resume();
    }
    // What has ended since this was asked last.
    drained news() {
        drained sum;
        for (shift& each : shifts) {
            worker_snapshot now = each.worker->snapshot();
            sum += now - each.told;
            each.told = std::move(now);
        }
        return sum;
    }
    standing look() const {
        standing all;
        for (const shift& each : shifts) {
            worker_snapshot now = each.worker->snapshot();
            all.claimed += now.claimed;
            all.waiting += now.prefetched + now.unsettled;
            std::ranges::move(now.running, std::back_inserter(all.running));
        }
        return all;
    }

    std::vector<std::string> served_names() const { return {served.begin(), served.end()}; }
    std::optional<duration> next_due() { return get(store().next_due(served_names())); }

    void drain_all() {
        for (int moments = 0; moments < most_moments;) {
            run_ready();
            const standing now = look();
            if (!now.running.empty()) { // in a handler, or between two tries of its policy
                if (!handlers.wait(time, longest_handler)) complain();
                moments = 0;
                continue;
            }
            if (now.waiting == 0) {
                const auto due = next_due();
                if (!due || *due > duration::zero()) return;
                look_for_work();
                time.run_ready();
                if (look().claimed != now.claimed) continue;
            }
            ++moments;
            time.advance(moment);
        }
    }
    [[noreturn]] void complain() {
        std::string names;
        for (const running_job& each : look().running) names += (names.empty() ? "" : ", ") + each.type;
        throw failed({errc::timed_out,
                      "jobs are still running after " + to_text(longest_handler) + " of virtual time: " + names,
                      std::nullopt});
    }

    std::uint64_t seed;
    simulated_runtime time;
    engine made;
    std::unique_ptr<holdfast::store> kept;
    identifier_source ids;
    lab::kept_lines lines;
    holdfast::jobs client;
    lab::handler_bell handlers;
    job_registry kinds;
    std::optional<exception_policy> rules; // of all kinds
    std::set<std::string> served;
    std::vector<shift> shifts;
};

job_lab::job_lab(job_defaults defaults, std::uint64_t seed, std::uint64_t order)
    : parts_(std::make_unique<parts>(defaults, seed, order)) {}
job_lab::~job_lab() = default;

job_lab& job_lab::add(const policy& each) {
    parts_->made.add(each);
    return *this;
}
job_lab& job_lab::use(exception_policy rules) {
    if (parts_->rules)
        throw failed({errc::duplicate, "the lab has exception rules already: one policy is for all", std::nullopt});
    parts_->rules = std::move(rules);
    return *this;
}
void job_lab::add_kind(std::unique_ptr<job_type> kind) {
    value_of(parts_->kinds.add(std::make_unique<lab::observed_type>(std::move(kind), parts_->handlers)));
}

jobs& job_lab::jobs() noexcept {
    return parts_->client;
}
store& job_lab::store() noexcept {
    return *parts_->kept;
}
policies& job_lab::policies() noexcept {
    return parts_->made.policies();
}
simulated_runtime& job_lab::time() noexcept {
    return parts_->time;
}

drained job_lab::drain() {
    parts_->news(); // what ended before is not told here
    parts_->drain_all();
    return parts_->news();
}

drained job_lab::advance(duration d) {
    parts_->news(); // what ended before is not told here
    const time_point until = saturating_add(parts_->time.now(), d);
    while (parts_->time.now() < until) {
        parts_->run_ready();
        const duration left = until - parts_->time.now();
        const duration next = parts_->next_due().value_or(left);
        parts_->time.advance(next > duration::zero() ? std::min(next, left) : left);
        parts_->look_for_work();
    }
    parts_->run_ready();
    return parts_->news();
}

drained job_lab::run_until_done(duration at_most) {
    const time_point until = saturating_add(parts_->time.now(), at_most);
    drained sum = drain();
    for (;;) {
        const auto next = parts_->next_due();
        if (!next || *next <= duration::zero() || saturating_add(parts_->time.now(), *next) > until) return sum;
        sum += advance(*next);
        sum += drain();
    }
}

new_job job_lab::made_or_throw(result<new_job> made) {
    return value_of(std::move(made));
}

inline_run job_lab::run_inline(const new_job& made, int attempt) {
    job_type* kind = parts_->kinds.find(made.what.type);
    if (kind == nullptr)
        throw failed({errc::invalid_argument,
                      "job \"" + made.what.type + "\" has no handler here: give the lab one with add<Job>(handler)",
                      std::nullopt});
    const job_context::facts facts{.id = made.id,
                                   .token = static_cast<std::uint64_t>(attempt),
                                   .type = made.what.type,
                                   .queue = made.queue,
                                   .attempt = attempt,
                                   .max_attempts = made.max_attempts,
                                   .extra = &made.extra};
    job_context context(facts, parts_->time, parts_->lines, {}, &parts_->client);
    inline_run ended;
    ended.returned = sync_wait(parts_->time, kind->run(made.what, context));
    ended.progress = context.take_progress();
    ended.output = context.take_output();
    ended.snooze = context.wants_snooze();
    ended.retry_after = context.wants_retry_after();
    return ended;
}

std::vector<job_view> job_lab::list(job_filter filter) {
    std::vector<job_view> all;
    std::string cursor;
    do {
        job_page page = parts_->get(parts_->store().list(filter, 500, std::move(cursor)));
        std::ranges::move(page.jobs, std::back_inserter(all));
        cursor = std::move(page.next);
    } while (!cursor.empty());
    std::ranges::reverse(all);
    return all;
}

job_view job_lab::look(const identifier& id) {
    job_lookup found = parts_->get(parts_->store().get(id));
    if (auto* job = std::get_if<job_view>(&found)) return std::move(*job);
    throw failed({errc::invalid_argument, "there is no job " + to_text(id), std::nullopt});
}

const std::vector<std::string>& job_lab::log() const noexcept {
    return parts_->lines.all();
}

} // namespace holdfast
