// Handlers in processes of their own: what they do to themselves costs an attempt, and nobody else notices.
#include <algorithm>
#include <csignal>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <utility>

#include "catch.hpp"
#include "shop.hpp"

using namespace std::chrono_literals;
using namespace holdfast;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;
using test::shop;

namespace {

// The worker, as an application would have it.
harness::child_process isolated_worker(const shop& at, const std::string& isolation = {},
                                       const std::vector<std::string>& more = {}) {
    std::ofstream config(at.folder / "desk.toml");
    config << "[plugins]\npath = ['" HOLDFAST_BUILD_PLUGIN_DIR "']\n[store]\nplugin = '" << at.plugin << "'\n";
    for (const auto& [key, value] : at.with) config << key << " = '" << value << "'\n";
    config << "[jobs]\nlease = '1500ms'\nheartbeat = '200ms'\nsweep = '200ms'\n";
    config << "[jobs.isolation]\nprocesses = 3\nkill_after = '300ms'\n" << isolation;
    config.close();
    std::vector<std::string> words = {HOLDFAST_ISOLATION_PROGRAM, (at.folder / "desk.toml").string()};
    words.insert(words.end(), more.begin(), more.end());
    return at.program(words);
}

identifier enqueue(shop& at, const std::string& kind, int attempts, bool may_restart = true, int max_crashes = 3) {
    new_job made = at.job("it happened");
    made.max_crashes = max_crashes;
    made.what.type = kind;
    made.max_attempts = attempts;
    made.may_restart = may_restart;
    at.await(at.jobs().enqueue({made}));
    return made.id;
}

job_view ended(shop& at, const identifier& id) {
    at.until("job " + to_text(id) + " has ended", [&] { return is_final(at.state_of(id)); });
    return at.view(id);
}

// The processes that are noted there.
std::set<std::string> processes_in(const shop& at, const std::string& file) {
    std::set<std::string> seen;
    for (const std::string& each : test::notes_in(at.folder / file)) seen.insert(each.substr(each.rfind(' ') + 1));
    return seen;
}

bool lives(const std::string& process) {
    std::ifstream status("/proc/" + process + "/stat");
    std::string id;
    std::string name;
    std::string state;
    status >> id >> name >> state;
    return !state.empty() && state != "Z";
}

void does_its_work_elsewhere(shop& at) {
    auto worker = isolated_worker(at);
    new_job made = at.job("seven");
    made.what.type = "fine";
    made.extra["color"] = "green";
    at.await(at.jobs().enqueue({made}));
    at.until("its progress is seen", [&] { return at.view(made.id).percent == 40; });
    const auto seen = ended(at, made.id);
    CHECK(seen.state == job_state::succeeded);
    CHECK(seen.output == "seven " + to_text(made.id) + " green");
    CHECK(seen.note == "half way");
    CHECK(processes_in(at, "done").count(std::to_string(worker.id())) == 0);
    for (const char* each : {"fine", "fine", "fine"}) ended(at, at.enqueue(each));
    CHECK(processes_in(at, "done").size() == 1); // one after the other, in the same process
    at.enqueue_many(12, "fine");
    at.until("all are done", [&] { return at.count_of(job_state::succeeded) == 16; });
    CHECK(processes_in(at, "done").size() == 3); // no more than it may have
    worker.stop(SIGTERM, 10s);
    const auto said = test::notes_in(at.folder / "output");
    CHECK(std::ranges::any_of(said, [](const auto& each) { return each.ends_with("info a word of seven"); }));
    CHECK(std::ranges::count(said, "printed by seven") == 1);
}

void crashes_cost_an_attempt(shop& at) {
    auto worker = isolated_worker(at);
    const auto crashing = enqueue(at, "segfault", 2);
    const auto beside = at.enqueue_many(50, "beside");
    const auto seen = ended(at, crashing);
    CHECK(seen.state == job_state::dead_letter);
    REQUIRE(seen.history.size() == 2);
    CHECK(seen.crash_count == 0); // no worker died
    for (const auto& each : seen.history) {
        CHECK(each.error.type == "crashed: SIGSEGV");
        CHECK_THAT(each.error.message, ContainsSubstring("address 0x0000000000000000"));
        CHECK_THAT(each.error.message, ContainsSubstring("step_on_nothing"));
    }
    at.until("those beside it are done", [&] { return at.count_of(job_state::succeeded) == 50; });
    for (const auto& each : beside) CHECK(at.view(each).history.size() == 1);
    CHECK(worker.running());
    CHECK(at.noted("began", crashing) == 2);
    worker.stop(SIGTERM, 10s);
}

void every_end_is_told(shop& at) {
    auto worker = isolated_worker(at, "memory_mb = 2000\n");
    const auto aborted = enqueue(at, "aborts", 1);
    const auto uncaught = enqueue(at, "uncaught", 1);
    const auto left = enqueue(at, "leaves", 1);
    const auto hungry = enqueue(at, "hungry", 1);
    CHECK(ended(at, aborted).last_error.type == "crashed: SIGABRT");
    CHECK(ended(at, uncaught).last_error.type == "crashed: SIGABRT");
    CHECK_THAT(at.view(uncaught).last_error.message,
               ContainsSubstring("nobody caught std::runtime_error: thrown where nothing may be"));
    CHECK(ended(at, left).last_error.type == "crashed: exit code 7");
    CHECK(ended(at, hungry).last_error.type == "std::bad_alloc"); // an exception like any other, within its limit
    CHECK(at.count_of(job_state::dead_letter) == 4);
    worker.stop(SIGTERM, 10s);
}

void the_restart_rule_counts(shop& at) {
    auto worker = isolated_worker(at);
    const auto never = enqueue(at, "once_segfault", 3, false);
    const auto many = enqueue(at, "patient_segfault", 100, true, 2);
    const auto asked = enqueue(at, "asked_segfault", 3);
    CHECK(ended(at, never).state == job_state::failed);
    CHECK(at.view(never).last_error.type == "crashed: SIGSEGV");
    CHECK_THAT(at.view(never).last_error.message, StartsWith("crash, restart not allowed\n"));
    CHECK(at.noted("began", never) == 1);
    CHECK(ended(at, many).state == job_state::dead_letter);
    CHECK_THAT(at.view(many).last_error.message, StartsWith("crashed too often\n"));
    CHECK(at.noted("began", many) == 3); // two restarts were allowed
    CHECK(ended(at, asked).state == job_state::succeeded);
    CHECK(at.noted("began", asked) == 1); // the probe was asked before a second run
    worker.stop(SIGTERM, 10s);
}

void what_does_not_end_is_ended(shop& at) {
    auto worker = isolated_worker(at);
    const auto endless = enqueue(at, "endless", 1);
    const auto deaf = enqueue(at, "deaf", 1);
    const auto stuck = ended(at, endless);
    CHECK(stuck.state == job_state::dead_letter);
    CHECK(stuck.last_error.type == "stuck");
    CHECK_THAT(stuck.last_error.message, ContainsSubstring("hard deadline of 500ms, so its process was ended"));
    at.until("the other runs", [&] { return at.noted("began", deaf) > 0; });
    at.await(at.jobs().cancel({deaf}));
    CHECK(ended(at, deaf).state == job_state::cancelled);
    at.until("their processes are gone", [&] {
        const auto all = processes_in(at, "began");
        return std::ranges::none_of(all, lives);
    });
    ended(at, at.enqueue("fine")); // the slots are free
    const auto obedient = at.enqueue("obedient");
    at.until("it runs", [&] { return at.noted("began", obedient) == 1; });
    at.await(at.jobs().cancel({obedient}));
    CHECK(ended(at, obedient).state == job_state::cancelled);
    worker.stop(SIGTERM, 10s);
}

void errors_are_judged_by_the_rules_of_the_job(shop& at) {
    auto worker = isolated_worker(at);
    const auto refused = ended(at, at.enqueue("refuses"));
    CHECK(refused.state == job_state::dead_letter);
    CHECK(refused.history.size() == 1); // a rule names it
    CHECK_THAT(refused.last_error.type, ContainsSubstring("bad_address"));
    CHECK(refused.last_error.message == "no such street");
    const auto flaky = ended(at, at.enqueue("flaky"));
    CHECK(flaky.history.size() == 3);
    CHECK(at.noted("began", flaky.id) == 6); // twice in each attempt, by the policy
    CHECK(flaky.last_error.type == "std::runtime_error");
    ended(at, at.enqueue("parent"));
    ended(at, at.enqueue("parent"));
    at.until("their children are done", [&] { return at.count_of(job_state::succeeded) == 42; });
    worker.stop(SIGTERM, 10s);
}

void all_end_with_the_worker(shop& at) {
    auto first = isolated_worker(at);
    const auto deaf = enqueue(at, "deaf", 1);
    at.until("it runs", [&] { return at.noted("began", deaf) == 1; });
    const auto helpers = processes_in(at, "began");
    first.signal(SIGKILL);
    REQUIRE(first.wait(10s) == 128 + SIGKILL);
    at.until("its helpers are gone", [&] { return std::ranges::none_of(helpers, lives); });
    auto second = isolated_worker(at);
    at.until("another has it", [&] { return at.noted("began", deaf) == 2; });
    CHECK(at.view(deaf).crash_count == 1);
    const auto obedient = at.enqueue("obedient");
    at.until("this one runs too", [&] { return at.noted("began", obedient) == 1; });
    second.signal(SIGTERM); // of a group, as from a terminal, it reaches the helpers too
    for (const std::string& each : processes_in(at, "began"))
        if (!helpers.contains(each)) ::kill(std::stoi(each), SIGTERM);
    CHECK(!second.wait(300ms));
    second.signal(SIGTERM);
    CHECK(second.wait(8s) == 0);
    for (const identifier& each : {deaf, obedient}) {
        CHECK(at.state_of(each) == job_state::pending); // unburnt
        CHECK(at.view(each).attempts == 0);
    }
    CHECK(std::ranges::none_of(processes_in(at, "began"), lives));
}

void on_each_store(void (*run)(shop&)) {
    SECTION("sqlite") {
        shop at("sqlite", {});
        run(at);
    }
    SECTION("postgres") {
        if (!harness::postgres_binaries()) SKIP("PostgreSQL is not installed (no initdb and postgres found)");
        static harness::postgres_server server({.fsync = false});
        shop at("postgres", {{"url", server.url()}});
        run(at);
    }
    SECTION("redis") {
        if (!harness::redis_binary()) SKIP("Redis is not installed (no redis-server found)");
        static harness::redis_server server;
        shop at("redis", {{"url", server.url()}});
        run(at);
    }
}

} // namespace

TEST_CASE("an isolated handler does its work in another process, and what it says comes back") {
    on_each_store(&does_its_work_elsewhere);
}
TEST_CASE("a handler that segfaults in isolation costs its attempts, with their stacks, and nothing else") {
    on_each_store(&crashes_cost_an_attempt);
}
TEST_CASE("however an isolated process ends, the attempt says so, a memory limit is an exception") {
    on_each_store(&every_end_is_told);
}
TEST_CASE("after a crash in isolation the restart rule counts, and so do max_crashes and the probe") {
    on_each_store(&the_restart_rule_counts);
}
TEST_CASE("an isolated handler that does not end is ended: at its hard deadline, or when it is cancelled") {
    on_each_store(&what_does_not_end_is_ended);
}
TEST_CASE("what an isolated handler throws is judged by the job's rules and policy, what it enqueues is kept") {
    on_each_store(&errors_are_judged_by_the_rules_of_the_job);
}
TEST_CASE("a deadline that passes between two tries of an isolated handler ends the second") {
    shop at("sqlite", {});
    auto worker = isolated_worker(at);
    const auto seen = ended(at, enqueue(at, "relapses", 1));
    CHECK(seen.state == job_state::dead_letter);
    CHECK(seen.last_error.type == "stuck");
    CHECK(at.noted("began", seen.id) == 1);
    worker.stop(SIGTERM, 10s);
}
TEST_CASE("what an isolated process dies of is kept with its stack, however long the message") {
    shop at("sqlite", {});
    auto worker = isolated_worker(at);
    const auto seen = ended(at, enqueue(at, "boasts", 1));
    CHECK(seen.last_error.type == "crashed: SIGABRT");
    CHECK_THAT(seen.last_error.message, ContainsSubstring("nobody caught std::runtime_error: xxx"));
    CHECK_THAT(seen.last_error.message, ContainsSubstring("xxx…\nSIGABRT\n"));
    CHECK_THAT(seen.last_error.message, ContainsSubstring("throw_much"));
    worker.stop(SIGTERM, 10s);
}
TEST_CASE("what an isolated handler executes has its signals as they are everywhere") {
    shop at("sqlite", {});
    auto worker = isolated_worker(at);
    const auto seen = ended(at, enqueue(at, "executes", 1));
    CHECK(seen.state == job_state::succeeded);
    CHECK(seen.last_error.message.empty());
    worker.stop(SIGTERM, 10s);
}
TEST_CASE("a worker with isolated jobs that cannot start says why, and leaves no process behind") {
    shop at("sqlite", {});
    auto worker = isolated_worker(at, {}, {"lost"});
    CHECK(worker.wait(30s) == 1);
    std::ifstream output(at.folder / "output");
    const std::string said(std::istreambuf_iterator<char>(output), {});
    CHECK_THAT(said, ContainsSubstring("schedule \"daily\": ") && ContainsSubstring("Atlantis/Poseidonis"));
}
TEST_CASE("isolated processes end with their worker, killed or told to stop, and not before it") {
    on_each_store(&all_end_with_the_worker);
}
