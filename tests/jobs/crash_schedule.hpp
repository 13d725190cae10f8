// One client and a few workers on one store, on virtual time, with faults at
// their calls. All of it follows from a seed.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <holdfast/codec.hpp>
#include <holdfast/jobs.hpp>

#include "audited_jobs.hpp"
#include "crash_plan.hpp"
#include "crash_rules.hpp"
#include "faulty_process.hpp"
#include "worker_lab.hpp"

namespace holdfast::test {

// Enqueued by a handler, with an id that is the same at every attempt.
struct follow_up {
    static constexpr job_options options{.name = "follow-up", .max_crashes = crash_rules::max_crashes};
};

} // namespace holdfast::test

template <>
struct holdfast::codec<holdfast::test::follow_up> {
    static constexpr std::string_view content_type = "text/plain";
    static std::string encode(const test::follow_up&) { return {}; }
    static result<test::follow_up> decode(std::string_view) { return test::follow_up{}; }
};

namespace holdfast::test {

using namespace std::chrono_literals;

class crash_schedule {
public:
    explicit crash_schedule(std::uint64_t seed)
        : plan_(make_crash_plan(seed)), random_(seed), on_(seed), held_(memory::make_store({}, &on_)),
          store_(*held_->jobs(), on_), client_(store_, on_, random_.next(), pause) {
        sync_wait(on_, held_->prepare()).value();
        store_.hands_over = plan_.hands_over;
        client_.faults = plan_.client;
    }

    // The first rule that was broken and what was known then, or nothing.
    std::string run() {
        task_scope beside;
        beside.spawn(be_client());
        const int second_at = random_.next() % 2 == 0 ? 0 : 10;
        const int retired_at = random_.next() % 8 == 0 ? 2 + static_cast<int>(random_.next() % 30) : -1;
        std::string wrong;
        bool ended = false;
        start_worker();
        for (int step = 0; step < 900 && !ended && wrong.empty(); ++step) {
            if (step == second_at) start_worker();
            if (step == retired_at) retire(*workers_.back(), beside);
            if (step > second_at && std::ranges::none_of(workers_, &worker_process::works)) start_worker();
            on_.advance(1s);
            wrong = told(check(look_at_all()));
            ended = client_done_ && drained() && std::ranges::all_of(workers_, &worker_process::at_rest);
        }
        if (wrong.empty() && !ended) wrong = told("it is not drained");
        for (auto& each : workers_) {
            sync_wait(on_, each->worker.stop(1s));
            sync_wait(on_, each->view.close());
        }
        sync_wait(on_, beside.join());
        sync_wait(on_, client_.close());
        on_.run_until_idle(); // also what a dead worker's handlers had left to do
        const auto all = look_at_all();
        if (wrong.empty()) wrong = told(check(all));
        if (wrong.empty()) wrong = told(rules_.check_ends(all));
        return wrong;
    }

    const std::vector<planned_fault>& faults_of_client() const noexcept { return client_.faults; }
    std::size_t workers() const noexcept { return workers_.size(); }
    const std::vector<planned_fault>& faults_of_worker(std::size_t n) const { return workers_[n]->view.faults; }
    // Every job with all that became of it, and the log.
    std::string history() {
        std::string text;
        for (const auto& [id, view] : look_at_all()) text += rules_.text_of(view) + "\n";
        return text + log_.all();
    }

private:
    static constexpr duration lease = 10s;
    static constexpr duration pause = 3 * lease;

    struct worker_process {
        worker_process(crash_schedule& at, const std::string& name, std::vector<planned_fault> faults)
            : view(at.store_, at.on_, at.random_.next(), pause),
              worker({at.on_, view.store, kinds, at.log_},
                     {.queues = {{.name = "default"}, {.name = "side"}},
                      .concurrency = 3,
                      .lease = lease,
                      .sweep = 5s,
                      .last_wait = 1s,
                      .name = name},
                     at.random_.next() | 1) {
            view.faults = std::move(faults);
            at.register_kinds(*this);
        }
        bool works() const noexcept { return view.alive() && !retired; }
        // Nothing more comes of it.
        bool at_rest() const { return view.at_rest() && (!view.alive() || worker.snapshot().running.empty()); }

        faulty_process view;
        job_registry kinds;
        job_worker worker;
        bool retired = false;
    };

    void start_worker() {
        const std::size_t number = workers_.size();
        auto faults = number < plan_.workers.size() ? plan_.workers[number] : std::vector<planned_fault>{};
        workers_.push_back(
            std::make_unique<worker_process>(*this, "worker " + std::to_string(number + 1), std::move(faults)));
        workers_.back()->worker.start().value();
    }
    // It is told to stop, and another one comes.
    void retire(worker_process& which, task_scope& in) {
        which.retired = true;
        in.spawn(which.worker.stop(1s));
        start_worker();
    }

    // How a handler goes about it.
    struct manner {
        duration before{};
        duration after{};
        int fails = 0; // that many attempts
        bool heeds = false;
        bool follows = false;
        bool snoozes = false;
        bool probed = false;
    };

    void register_kinds(worker_process& in) {
        const auto add = [&](std::string_view name, manner how) {
            const job_options options{
                .name = name, .retry = {.delay = 1s}, .restart = how.probed ? restart::probe : restart::unset};
            in.kinds
                .add(std::make_unique<any_job>(
                    options, [this, &in, how](payload, job_context& c) { return handle(in, c, how); },
                    [this, &in](const payload& what) { return has_happened(in, what); }))
                .value();
        };
        add("quick", {});
        add("slow", {.before = 2s, .after = 1s});
        add("long", {.before = 1s, .after = 25s});
        add("flaky", {.before = 5ms, .after = 5ms, .fails = 1});
        add("hopeless", {.before = 5ms, .fails = 100});
        add("heedful", {.before = 1s, .after = 15s, .heeds = true});
        add("chain", {.before = 10ms, .after = 1s, .follows = true});
        add("snoozer", {.before = 10ms, .snoozes = true});
        add("probed", {.before = 10ms, .after = 1s, .fails = 1, .probed = true});
        add("follow-up", {.before = 100ms, .after = 100ms});
    }

    holdfast::happened has_happened(worker_process& in, const payload& what) {
        const auto id = *parse_identifier(what.body);
        if (world_.effects_of(id) == 0) return happened::no;
        if (in.view.alive()) world_.probed.insert(id);
        return happened::yes;
    }

    task<result<void>> handle(worker_process& in, job_context& c, manner how) {
        if (how.probed && c.crash_count() > 0 && world_.effects_of(c.job_id()) > 0)
            complain("it runs again although its probe knows that it happened", c);
        co_await sleep_for(c.runtime(), how.before, c.stop_token());
        auto waking = in.view.awake();
        co_await std::move(waking);
        if (!in.view.alive()) throw operation_cancelled();
        if (how.heeds && c.stop_token().stop_requested()) throw operation_cancelled();
        if (how.snoozes && snoozed_.insert(c.job_id()).second) {
            c.snooze(2s);
            co_return result<void>{};
        }
        auto doing = have_effect(c);
        co_await std::move(doing);
        c.progress(50);
        if (how.follows) {
            auto following = follow(c);
            co_await std::move(following);
        }
        if (c.attempt() <= how.fails) throw std::runtime_error("flaky");
        co_await sleep_for(c.runtime(), how.after, how.heeds ? c.stop_token() : std::stop_token());
        if (how.heeds && c.stop_token().stop_requested()) throw operation_cancelled();
        c.output(c.run_id());
        co_return result<void>{};
    }

    task<void> have_effect(job_context& c) {
        const std::string run = c.run_id();
        if (!world_.effects[c.job_id()].insert(std::stoull(run.substr(run.find('-') + 1))).second)
            complain("one run did it twice", c);
        auto asking = held_->jobs()->get(c.job_id());
        const auto found = (co_await std::move(asking)).value();
        const auto* mine = std::get_if<job_view>(&found);
        if (mine == nullptr || !mine->parent || store_.was_requeued(mine->id)) co_return;
        auto looking = held_->jobs()->get(*mine->parent);
        const auto looked = (co_await std::move(looking)).value();
        const auto* parent = std::get_if<job_view>(&looked);
        if (parent != nullptr && parent->state != job_state::succeeded)
            complain("it runs before its parent is done", c);
    }

    // Every other one waits for the job that enqueues it.
    task<void> follow(job_context& c) {
        enqueue_options options{.id = c.job_id()};
        options.id->bytes.back() ^= 0xFF;
        if (c.job_id().bytes.back() % 2 == 0) options.parent = c.job_id();
        auto enqueueing = c.jobs().enqueue(follow_up{}, options);
        const auto answer = co_await std::move(enqueueing);
        if (!answer) throw failed(answer.error());
        world_.acknowledged.insert(answer->id);
    }

    void complain(const std::string& what, job_context& c) {
        if (world_.wrong.empty()) world_.wrong = what + ": " + std::string(c.type()) + " " + c.run_id();
    }

    // Does what the script says, each step until it is acknowledged. When it
    // dies, another one goes on.
    task<void> be_client() {
        const time_point began = on_.now();
        for (const client_step& step : plan_.script) {
            co_await sleep_for(on_, std::max(duration::zero(), began + step.at - on_.now()));
            for (;;) {
                auto trying = perform(step);
                if (co_await std::move(trying)) break;
                co_await sleep_for(on_, client_.alive() ? 200ms : 2s);
                client_.start_again();
            }
        }
        client_done_ = true;
    }

    task<bool> perform(const client_step& step) {
        job_store& store = client_.store;
        switch (step.what) {
        case client_step::kind::enqueue: {
            auto enqueueing = store.enqueue(step.jobs);
            const auto answers = co_await std::move(enqueueing);
            if (!answers) co_return false;
            for (const enqueued& each : *answers) world_.acknowledged.insert(each.id);
            co_return true;
        }
        case client_step::kind::cancel: co_return co_await answered(store.cancel(step.which));
        case client_step::kind::requeue: co_return co_await answered(store.requeue(step.which));
        case client_step::kind::get: co_return co_await answered(store.get(step.which.front()));
        case client_step::kind::list: co_return co_await answered(store.list({}, 5));
        case client_step::kind::counts: co_return co_await answered(store.counts());
        case client_step::kind::pause: co_return co_await answered(store.pause("side"));
        case client_step::kind::resume: co_return co_await answered(store.resume("side"));
        }
        co_return true;
    }
    template <class T>
    static task<bool> answered(task<result<T>> call) {
        const auto answer = co_await std::move(call);
        co_return answer.has_value();
    }

    std::string check(const crash_rules::views& all) {
        for (const auto& [id, view] : all)
            for (const attempt_entry& each : view.history)
                if (each.outcome == "crashed" && !was_disturbed(each.worker))
                    return "a worker that nothing happened to lost its job: " + rules_.text_of(view);
        return rules_.check(all);
    }
    bool was_disturbed(const std::string& worker) const {
        const auto found =
            std::ranges::find_if(workers_, [&](const auto& each) { return each->worker.name() == worker; });
        return (*found)->retired || std::ranges::any_of((*found)->view.faults,
                                                        [](const planned_fault& each) { return each.hit.has_value(); });
    }
    std::string told(const std::string& wrong) { return wrong.empty() ? wrong : wrong + "\n" + history(); }

    crash_rules::views look_at_all() {
        crash_rules::views all;
        for (const identifier& each : store_.known()) {
            auto found = sync_wait(on_, held_->jobs()->get(each)).value();
            if (auto* view = std::get_if<job_view>(&found)) all.emplace(each, std::move(*view));
        }
        return all;
    }
    bool drained() {
        const auto counts = sync_wait(on_, held_->jobs()->counts()).value();
        return std::ranges::all_of(counts, [](const job_count& each) { return is_final(each.state); });
    }

    crash_plan plan_;
    random_series random_;
    simulated_runtime on_;
    std::unique_ptr<holdfast::store> held_;
    audited_jobs store_;
    crash_world world_;
    crash_rules rules_{store_, world_};
    kept_log log_;
    std::set<identifier> snoozed_;
    faulty_process client_;
    bool client_done_ = false;
    std::vector<std::unique_ptr<worker_process>> workers_;
};

} // namespace holdfast::test
