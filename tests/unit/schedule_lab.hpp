// A fleet on virtual time: nodes with a worker and a scheduler each, over one memory store. A node can die at any call
// to the store: from then on it reaches nothing.
#pragma once

#include <algorithm>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <holdfast/job_scheduler.hpp>
#include <holdfast/system_time_zones.hpp>
#include <holdfast/timestamp.hpp>

#include "jobs/faulty_jobs.hpp"
#include "jobs/worker_lab.hpp"

namespace holdfast::test {

struct schedule_fleet;

// A store whose answers about the time are late by then.
class late_clock final : public store {
public:
    explicit late_clock(store& inner) : inner_(inner) {}
    std::string_view name() const noexcept override { return inner_.name(); }
    store_capabilities capabilities() const override { return inner_.capabilities(); }
    task<result<void>> prepare() override { return inner_.prepare(); }
    task<result<void>> destroy() override { return inner_.destroy(); }
    task<result<store_time>> now() override {
        auto asking = inner_.now();
        const auto answer = co_await std::move(asking);
        co_return *answer - late;
    }
    std::chrono::seconds late{0};

private:
    store& inner_;
};

struct schedule_node {
    schedule_node(schedule_fleet& in, std::string name);

    void add(const schedule_options& when, duration takes = duration::zero(), bool fails = false);
    void start(bool with_worker = true);
    void start_worker();
    void stop_worker();
    void stop();
    // At the n-th call to the store from now, before it is applied or after.
    void die_at(int call, bool applied);
    schedule_status status(std::string_view of = "s");

    schedule_fleet& in;
    std::string name;
    bool dead = false;
    int calls = 0;
    faulty_jobs store;
    jobs client;
    job_registry kinds;
    job_scheduler scheduler;
    std::optional<job_worker> worker;
    bool has_kinds = false;
};

struct schedule_fleet {
    // Begins half a minute after noon, by the store's clock: at the same distance from midnight whenever the test runs.
    explicit schedule_fleet(std::uint64_t order = 0) : on(order), held(memory::make_store({}, &on)) {
        sync_wait(on, held->prepare()).value();
        const auto noon = std::chrono::ceil<std::chrono::days>(now()) + std::chrono::hours{12};
        on.advance(noon - now() + std::chrono::seconds{30});
        began = now();
    }
    ~schedule_fleet() {
        for (auto& each : nodes) each.stop();
    }

    schedule_node& node(std::string name = "n") { return nodes.emplace_back(*this, std::move(name)); }
    // One with the schedule, running.
    schedule_node& node_with(const schedule_options& when, duration takes = duration::zero(), std::string name = "n") {
        schedule_node& made = node(std::move(name));
        made.add(when, takes);
        made.start();
        return made;
    }
    store_time now() { return sync_wait(on, held->now()).value(); }

    // What is in the store.
    std::vector<job_view> jobs_of(std::string type) {
        std::vector<job_view> all;
        std::string cursor;
        do {
            auto page = sync_wait(on, held->jobs()->list({.type = type}, 500, cursor)).value();
            std::ranges::move(page.jobs, std::back_inserter(all));
            cursor = page.next;
        } while (!cursor.empty());
        std::ranges::reverse(all);
        return all;
    }
    // The slots that have a run, oldest first, as seconds since `began`.
    std::vector<long> fired() {
        std::vector<long> all;
        for (const job_view& each : jobs_of("work")) all.push_back(since(each.extra.find("schedule-slot")->second));
        std::ranges::sort(all);
        return all;
    }
    long since(const std::string& slot) {
        return std::chrono::duration_cast<std::chrono::seconds>(*parse_timestamp<store_time>(slot) - began).count();
    }

    simulated_runtime on;
    std::unique_ptr<holdfast::store> held;
    late_clock clock{*held};
    kept_log log;
    system_time_zones zones;
    identifier_source ids{3};
    store_time began{};
    std::vector<long> begun{}; // when handlers began, seconds
    duration first_takes{};    // the very first run, where it is another time
    int running = 0;
    int most_running = 0;
    std::map<std::string, int> by_node{};
    std::list<schedule_node> nodes;
};

inline schedule_node::schedule_node(schedule_fleet& fleet, std::string called)
    : in(fleet), name(std::move(called)), store(*fleet.held->jobs()), client(store, fleet.ids),
      scheduler({fleet.on, fleet.clock, client, fleet.log, fleet.zones}, {.node = name}, 9) {}

inline task<result<void>> schedule_lab_run(schedule_fleet& in, std::string node, job_context& c, duration takes,
                                           bool fails) {
    ++in.by_node[node];
    in.begun.push_back(std::chrono::duration_cast<std::chrono::seconds>(in.now() - in.began).count());
    in.most_running = std::max(in.most_running, ++in.running);
    if (in.begun.size() == 1 && in.first_takes > duration::zero()) takes = in.first_takes;
    co_await sleep_for(c.runtime(), takes, c.stop_token());
    --in.running;
    if (fails) co_return fail(errc::invalid_argument, "it failed");
    co_return result<void>{};
}

inline void schedule_node::add(const schedule_options& when, duration takes, bool fails) {
    recurring_job job{.when = when,
                      .type = {.name = "work", .attempts = 1},
                      .what = {.type = "work", .version = 1, .content_type = "text/plain", .body = {}}};
    if (auto added = scheduler.add(std::move(job)); !added) throw failed(added.error());
    if (kinds.find("work") != nullptr) return;
    auto run = [this, takes, fails](payload, job_context& c) { return schedule_lab_run(in, name, c, takes, fails); };
    if (auto added = kinds.add(std::make_unique<any_job>(job_options{.name = "work", .attempts = 1}, run)); !added)
        throw failed(added.error());
}

inline void schedule_node::start(bool with_worker) {
    if (auto started = scheduler.start(); !started) throw failed(started.error());
    if (with_worker) start_worker();
    in.on.run_ready();
}

inline void schedule_node::start_worker() {
    if (!std::exchange(has_kinds, true)) scheduler.add_kinds(kinds).value();
    worker_options how{.name = name};
    for (const std::string& queue : scheduler.node_queues()) how.queues.push_back({.name = queue});
    worker.emplace(worker_parts{in.on, store, kinds, in.log}, std::move(how), 11);
    if (auto started = worker->start(); !started) throw failed(started.error());
}

inline void schedule_node::stop_worker() {
    if (!worker) return;
    sync_wait(in.on, worker->stop(duration::zero()));
    worker.reset();
}

inline void schedule_node::stop() {
    stop_worker();
    sync_wait(in.on, scheduler.stop());
}

inline void schedule_node::die_at(int call, bool applied) {
    calls = 0;
    store.before = [this, call, applied](store_call) -> std::optional<error> {
        if (!dead && ++calls == call && !applied) dead = true;
        if (dead) return error{errc::unavailable, "it is dead", std::nullopt};
        return std::nullopt;
    };
    store.after = [this, call, applied](store_call) -> std::optional<error> {
        if (!dead && calls == call && applied) dead = true;
        if (dead) return error{errc::unavailable, "it is dead", std::nullopt};
        return std::nullopt;
    };
}

inline schedule_status schedule_node::status(std::string_view of) {
    auto all = sync_wait(in.on, scheduler.inspect()).value();
    for (schedule_status& each : all)
        if (each.name == of) return std::move(each);
    throw std::runtime_error("no such schedule");
}

} // namespace holdfast::test
