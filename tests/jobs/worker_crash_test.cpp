// Thousands of schedules on virtual time, each with one fault at one store call: the worker dies before or after the
// call is applied, is frozen for longer than its lease, does not hear the answer, or loses the store for a while. A
// second worker takes over. HOLDFAST_SEED=n runs schedule n alone.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <utility>

#include "catch.hpp"
#include "faulty_jobs.hpp"
#include "worker_lab.hpp"

using namespace std::chrono_literals;
using namespace holdfast;
using test::store_call;

namespace {

enum class fault : unsigned char { dies_before, dies_after, freezes, answer_lost, outage };
constexpr std::string_view fault_names[] = {"dies before", "dies after", "freezes in", "loses the answer of",
                                            "loses the store from"};
constexpr std::string_view call_names[] = {"enqueue",  "claim",         "started",  "heartbeat", "settle",
                                           "progress", "recover_stale", "next_due", "other"};

constexpr duration lease = 10s;

// A job store as one worker process sees it: calls take a while, and one of them goes wrong.
class worker_view {
public:
    worker_view(job_store& inner, runtime& on, std::uint64_t seed) : faulty(inner), random_(seed) {
        faulty.before = [this](store_call which) { return before(which); };
        faulty.after = [this](store_call) { return after(); };
        faulty.on = &on;
        faulty.lag = [this] { return std::exchange(frozen_, {}) + std::chrono::microseconds(random_.next() % 3000); };
    }

    bool alive = true;
    int fault_at = -1;             // the number of the call
    std::optional<store_call> hit; // what that call was
    fault what = fault::dies_before;
    test::faulty_jobs faulty;

private:
    std::optional<error> before(store_call which) {
        if (!alive) return error{errc::unavailable, "this process is dead", std::nullopt};
        const int number = ++calls_;
        if (number == fault_at) {
            hit = which;
            if (what == fault::dies_before) return die();
            if (what == fault::freezes) frozen_ = 3 * lease;
            if (what == fault::outage) outage_until_ = number + 30;
            if (what == fault::dies_after || what == fault::answer_lost) ++doomed_;
        }
        if (number < outage_until_) return error{errc::unavailable, "away", std::nullopt};
        return std::nullopt;
    }
    std::optional<error> after() {
        if (!alive) return error{errc::unavailable, "this process is dead", std::nullopt};
        if (doomed_ == 0) return std::nullopt;
        --doomed_;
        if (what == fault::dies_after) return die();
        return error{errc::unknown_outcome, "connection lost", std::nullopt};
    }
    std::optional<error> die() {
        alive = false;
        return error{errc::unavailable, "this process is dead", std::nullopt};
    }

    random_series random_;
    duration frozen_{}; // the next call takes that much longer
    int calls_ = 0;
    int doomed_ = 0;
    int outage_until_ = 0;
};

// What the jobs did, as the outside world saw it.
struct world {
    std::map<identifier, int> effects;
};

class schedule {
public:
    explicit schedule(std::uint64_t seed)
        : random_(seed), on_(seed), held_(memory::make_store({}, &on_)), first_(*held_->jobs(), on_, seed + 1),
          second_(*held_->jobs(), on_, seed + 2) {
        sync_wait(on_, held_->prepare()).value();
    }

    // The first rule that was broken, or nothing.
    std::string run() {
        register_kinds(first_kinds_, first_);
        register_kinds(second_kinds_, second_);
        enqueue_some();
        first_.fault_at = 1 + static_cast<int>(random_.next() % 40);
        first_.what = static_cast<fault>(random_.next() % 5);
        job_worker one({on_, first_.faulty, first_kinds_, log_}, options("one"), random_.next());
        job_worker other({on_, second_.faulty, second_kinds_, log_}, options("other"), random_.next());
        if (!one.start()) return "the first worker does not start";
        const bool together = random_.next() % 2 == 0;
        if (together && !other.start()) return "the second worker does not start";
        for (int step = 0; step < 400 && !drained(); ++step) {
            if (step == 10 && !together && !other.start()) return "the second worker does not start";
            on_.advance(1s);
            if (step % 4 == 0)
                if (auto wrong = check_histories(); !wrong.empty()) return wrong;
        }
        const bool ended = drained();
        sync_wait(on_, other.stop(1s));
        sync_wait(on_, one.stop(1s));
        if (!ended) return "not drained:\n" + text_of_all();
        if (auto wrong = check_histories(); !wrong.empty()) return wrong;
        return check_ends();
    }

    std::string describe() const {
        return "the first worker " + std::string(fault_names[static_cast<std::size_t>(first_.what)]) + " call " +
               std::to_string(first_.fault_at);
    }
    // The call that went wrong, and how; nothing when the work was done before it came to that.
    std::optional<std::pair<store_call, fault>> injected() const {
        if (!first_.hit) return std::nullopt;
        return std::pair(*first_.hit, first_.what);
    }

private:
    static worker_options options(std::string name) {
        return {.concurrency = 3, .lease = lease, .sweep = 5s, .last_wait = 1s, .name = std::move(name)};
    }

    static task<result<void>> effect(worker_view& in, world& seen, job_context& c, duration before, duration after,
                                     int fails) {
        co_await sleep_for(c.runtime(), before, c.stop_token());
        if (!in.alive) throw operation_cancelled();
        ++seen.effects[c.job_id()];
        c.progress(50);
        if (c.attempt() <= fails) throw std::runtime_error("flaky");
        co_await sleep_for(c.runtime(), after); // deaf to its token
        c.output(c.run_id());
        co_return result<void>{};
    }

    void register_kinds(job_registry& to, worker_view& in) {
        const auto add = [&](job_options how, duration before, duration after, int fails) {
            to.add(std::make_unique<test::any_job>(how,
                                                   [this, &in, before, after, fails](payload, job_context& c) {
                                                       return effect(in, world_, c, before, after, fails);
                                                   }))
                .value();
        };
        add({.name = "quick", .retry = {.delay = 1s}}, 0ms, 0ms, 0);
        add({.name = "slow", .retry = {.delay = 1s}}, 2s, 1s, 0);
        add({.name = "long", .retry = {.delay = 1s}}, 1s, 25s, 0);
        add({.name = "flaky", .retry = {.delay = 1s}}, 5ms, 5ms, 1);
        add({.name = "hopeless", .retry = {.delay = 1s}}, 5ms, 5ms, 100);
    }

    void enqueue_some() {
        constexpr std::string_view kinds[] = {"quick", "slow", "long", "flaky", "hopeless"};
        const int count = 3 + static_cast<int>(random_.next() % 6);
        std::vector<new_job> batch;
        for (int i = 0; i < count; ++i) {
            new_job one;
            one.id = ids_.next(std::chrono::system_clock::time_point(std::chrono::milliseconds(i + 1)));
            one.what = {std::string(kinds[random_.next() % 5]), 1, "text/plain", ""};
            one.may_restart = random_.next() % 4 != 0;
            one.max_crashes = 2;
            if (random_.next() % 4 == 0) one.when = due::after(std::chrono::milliseconds(random_.next() % 5000));
            jobs_.push_back(one);
            batch.push_back(std::move(one));
        }
        sync_wait(on_, held_->jobs()->enqueue(std::move(batch))).value();
    }

    std::optional<job_view> look(const identifier& id) {
        auto found = sync_wait(on_, held_->jobs()->get(id)).value();
        if (auto* view = std::get_if<job_view>(&found)) return *view;
        return std::nullopt;
    }
    bool drained() {
        return std::ranges::all_of(jobs_, [&](const new_job& each) {
            const auto view = look(each.id);
            return !view || is_final(view->state);
        });
    }
    std::string text_of(const job_view& v) {
        std::string text = to_text(v.id) + " " + v.what.type + (v.may_restart ? "" : " (never)") + " " +
                           std::string(to_text(v.state)) + " attempts " + std::to_string(v.attempts) + " crashes " +
                           std::to_string(v.crash_count) + " effects " + std::to_string(world_.effects[v.id]) + ":";
        for (const auto& each : v.history)
            text += " [" + std::to_string(each.token) + " " + each.worker + " " + each.outcome + " " +
                    each.error.message + "]";
        return text;
    }
    std::string text_of_all() {
        std::string text;
        for (const auto& each : jobs_)
            if (const auto view = look(each.id)) text += text_of(*view) + "\n";
        return text + log_.all();
    }

    // Nothing is lost, attempts stay within their maximum, history only grows, tokens only rise.
    std::string check_histories() {
        for (const new_job& each : jobs_) {
            const auto view = look(each.id);
            if (!view) return "an acknowledged job is gone: " + to_text(each.id);
            if (view->attempts > view->max_attempts) return "too many attempts: " + text_of(*view);
            auto& before = histories_[each.id];
            if (view->history.size() < before.size()) return "history shrank: " + text_of(*view);
            for (std::size_t i = 0; i < view->history.size(); ++i) {
                const auto& entry = view->history[i];
                if (i > 0 && entry.token <= view->history[i - 1].token) return "a token came twice: " + text_of(*view);
                const bool is_over = i < before.size() && before[i].outcome != "running";
                if (is_over && (before[i].outcome != entry.outcome || before[i].token != entry.token))
                    return "history changed: " + text_of(*view);
            }
            before = view->history;
        }
        return {};
    }

    // One accepted token per end, and no more effects than the rules allow.
    std::string check_ends() {
        for (const new_job& each : jobs_) {
            const auto view = look(each.id);
            const int effects = world_.effects[each.id];
            int crashes = 0;
            int failures = 0;
            for (const auto& entry : view->history) {
                if (entry.outcome == "crashed") ++crashes;
                if (entry.outcome == "retry") ++failures;
                if (entry.outcome == "running") return "an attempt has no end: " + text_of(*view);
            }
            const auto& last = view->history.back();
            if (last.outcome != "succeeded" && last.outcome != "retry" && last.outcome != "crashed")
                return "a strange end: " + text_of(*view);
            if (view->state == job_state::succeeded) {
                if (effects == 0) return "succeeded without having run: " + text_of(*view);
                if (view->output != to_text(view->id) + "-" + std::to_string(last.token))
                    return "the output is not of the run that was accepted: " + text_of(*view);
            }
            const int runs = crashes + failures + (view->state == job_state::succeeded ? 1 : 0);
            if (effects > runs) return "more effects than runs: " + text_of(*view);
            if (!view->may_restart && effects > failures + 1) return "ran again after a crash: " + text_of(*view);
            if (view->what.type == "hopeless" && view->state == job_state::succeeded)
                return "a hopeless job succeeded: " + text_of(*view);
        }
        return {};
    }

    random_series random_;
    simulated_runtime on_;
    std::unique_ptr<holdfast::store> held_;
    worker_view first_;
    worker_view second_;
    world world_;
    job_registry first_kinds_;
    job_registry second_kinds_;
    test::kept_log log_;
    identifier_source ids_{3};
    std::vector<new_job> jobs_;
    std::map<identifier, std::vector<attempt_entry>> histories_;
};

void run_schedules(std::uint64_t first, std::uint64_t last) {
    if (const char* one = std::getenv("HOLDFAST_SEED")) {
        first = std::strtoull(one, nullptr, 10);
        last = first;
    }
    std::set<std::pair<store_call, fault>> seen;
    for (std::uint64_t seed = first; seed <= last; ++seed) {
        schedule each(seed);
        const std::string wrong = each.run();
        if (!wrong.empty()) FAIL("HOLDFAST_SEED=" << seed << ": " << each.describe() << "\n" << wrong);
        if (const auto what = each.injected()) seen.insert(*what);
    }
    if (first == last) return;
    // Every fault happened to every call that a worker makes.
    for (const store_call call : {store_call::claim, store_call::started, store_call::heartbeat, store_call::settle,
                                  store_call::progress, store_call::recover_stale, store_call::next_due})
        for (std::size_t how = 0; how < std::size(fault_names); ++how) {
            INFO("the worker " << fault_names[how] << " " << call_names[static_cast<std::size_t>(call)]);
            CHECK(seen.contains({call, static_cast<fault>(how)}));
        }
}

} // namespace

TEST_CASE("whatever goes wrong at one store call, nothing is lost or done too often: schedules 1 to 2500") {
    run_schedules(1, 2500);
}
TEST_CASE("whatever goes wrong at one store call, nothing is lost or done too often: schedules 2501 to 5000") {
    run_schedules(2501, 5000);
}
TEST_CASE("whatever goes wrong at one store call, nothing is lost or done too often: schedules 5001 to 7500") {
    run_schedules(5001, 7500);
}
TEST_CASE("whatever goes wrong at one store call, nothing is lost or done too often: schedules 7501 to 10000") {
    run_schedules(7501, 10'000);
}
