// Worker processes that are killed, frozen and told to stop, on real stores.
#include <algorithm>
#include <csignal>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "shop.hpp"

using namespace std::chrono_literals;
using namespace holdfast;

namespace {

using test::shop;

void killed_in_the_handler_with_jobs_prefetched(shop& at) {
    at.enqueue_many(30, "quick", 10);
    const auto waits = at.enqueue("wait", 5);
    auto behind = at.enqueue_many(40, "quick");
    behind.push_back(at.enqueue("quick", 0, false));
    auto first = at.worker(1);
    at.until("the handler runs", [&] { return at.noted("began", waits) == 1; });
    at.until("jobs are prefetched", [&] { return at.count_of(job_state::processing) > 5; });
    first.signal(SIGKILL);
    CHECK(first.wait(10s) == 128 + SIGKILL);
    auto second = at.worker(4);
    at.let_go(second);
    at.until("all is done", [&] { return at.count_of(job_state::succeeded) == 72; });
    CHECK(at.noted("began", waits) == 2);
    CHECK(at.view(waits).crash_count == 1);
    CHECK(at.view(waits).attempts == 1);
    for (const identifier& each : behind) {
        CHECK(at.noted("done", each) == 1); // it never began before
        CHECK(at.view(each).attempts == 1); // and no attempt was burnt
    }
    second.stop(SIGTERM, 10s);
}

void killed_after_the_handler(shop& at) {
    const auto again = at.enqueue("dies_at_end");
    auto first = at.worker(2);
    CHECK(first.wait(20s) == 128 + SIGKILL);
    auto second = at.worker(2);
    at.until("it ran again", [&] { return at.state_of(again) == job_state::succeeded; });
    CHECK(at.noted("done", again) == 2);
    CHECK(at.view(again).history.size() == 2);
    const auto once = at.enqueue("dies_at_end", 0, false);
    CHECK(second.wait(20s) == 128 + SIGKILL);
    auto third = at.worker(2);
    at.until("it is given up", [&] { return at.state_of(once) == job_state::failed; });
    CHECK(at.noted("done", once) == 1);
    CHECK(at.view(once).last_error.message == "crash, restart not allowed");
    third.stop(SIGTERM, 10s);
}

// Jobs come one at a time, so that some are handed to workers that are idle, or dead by then, or frozen.
void killed_while_idle(shop& at) {
    constexpr int rounds = 5;
    std::vector<identifier> all;
    const bool may_freeze = at.plugin != "sqlite"; // where it may hold the lock of the file, and everybody waits
    auto stays = at.worker(2);
    for (int round = 0; round < rounds; ++round) {
        auto goes = at.worker(2);
        for (int i = 0; i < 60; ++i) {
            if (i == 20 && round % 2 == 1 && may_freeze) goes.signal(SIGSTOP);
            if (i == 40) goes.signal(SIGKILL);
            all.push_back(at.enqueue("quick"));
            std::this_thread::sleep_for(3ms);
        }
        CHECK(goes.wait(10s) == 128 + SIGKILL);
    }
    at.until("all is done", [&] { return at.count_of(job_state::succeeded) == all.size(); });
    const auto done = at.noted("done");
    for (const identifier& each : all) {
        const auto times = done.find(to_text(each));
        REQUIRE(times != done.end());
        const auto seen = at.view(each);
        CHECK((times->second == 1 || seen.crash_count > 0)); // twice, only when a worker died of it
        CHECK(seen.attempts == 1);
    }
    stays.stop(SIGTERM, 10s);
}

// It hears of it from its first heartbeat, and tells its handler. What that still says goes nowhere.
void frozen_past_the_lease(shop& at) {
    const auto id = at.enqueue("wait");
    auto first = at.worker(1);
    at.until("the handler runs", [&] { return at.noted("began", id) == 1; });
    first.signal(SIGSTOP);
    auto second = at.worker(1);
    at.until("another has it", [&] { return at.noted("began", id) == 2; });
    first.signal(SIGCONT); // the other is still at it
    at.until("its heartbeat is refused", [&] { return at.refused("heartbeat", id, first); });
    at.let_go(first);
    at.until("the late one has ended", [&] { return at.noted("done", id) == 1; });
    CHECK(at.noted("told", id) == 1);
    first.stop(SIGTERM, 10s);
    const auto running = at.view(id);
    CHECK(running.state == job_state::processing);
    CHECK(running.percent == 0);
    CHECK(running.output.empty());
    at.let_go(second);
    at.until("the other has ended", [&] { return at.state_of(id) == job_state::succeeded; });
    const auto ended = at.view(id);
    CHECK(ended.output == to_text(id) + "-" + std::to_string(ended.history.back().token));
    CHECK(ended.note == "by " + std::to_string(second.id()));
    CHECK(ended.history.size() == 2);
    CHECK(ended.history.front().outcome == "crashed");
    second.stop(SIGTERM, 10s);
}

void a_handler_that_kills_its_workers(shop& at, const std::string& how, int signal, int max_crashes) {
    INFO(how);
    const auto killer = at.enqueue(how, 1, true, max_crashes);
    const auto beside = at.enqueue_many(2, "nap");
    int crashes = 0;
    for (; crashes < 10 && at.state_of(killer) != job_state::dead_letter; ++crashes) {
        auto worker = at.worker(8, 500ms);
        std::optional<int> code;
        at.until("it crashes, or need not any more", [&] {
            code = worker.wait(20ms);
            return code || at.state_of(killer) == job_state::dead_letter;
        });
        if (code) CHECK(*code == 128 + signal);
    }
    CHECK(crashes <= max_crashes + 2);
    CHECK(at.view(killer).last_error.type == "crash");
    CHECK(at.view(killer).last_error.message == "crashed too often");
    CHECK(at.view(killer).attempts == 0); // a crash is no attempt
    CHECK(at.noted("began", killer) == max_crashes + 1);
    auto last = at.worker(8, 500ms);
    const auto is_done = [&](const identifier& each) { return at.state_of(each) == job_state::succeeded; };
    at.until("those beside it are done", [&] { return std::ranges::all_of(beside, is_done); });
    for (const identifier& each : beside) CHECK(at.view(each).attempts == 1);
    last.stop(SIGTERM, 10s);
}

void handlers_that_kill_their_workers(shop& at) {
    a_handler_that_kills_its_workers(at, "segfault", SIGSEGV, 3);
    a_handler_that_kills_its_workers(at, "aborts", SIGABRT, 1);
#ifndef HOLDFAST_SANITIZED // a sanitizer needs all the memory there is
    a_handler_that_kills_its_workers(at, "out_of_memory", SIGABRT, 1);
    a_handler_that_kills_its_workers(at, "killed_for_memory", SIGKILL, 1);
    const auto hungry = at.enqueue("hungry"); // what it throws is caught
    auto worker = at.worker(8);
    at.until("it has failed often enough", [&] { return at.state_of(hungry) == job_state::dead_letter; });
    CHECK(at.view(hungry).last_error.type == "std::bad_alloc");
    CHECK(at.view(hungry).crash_count == 0);
    CHECK(at.noted("began", hungry) == 3);
    CHECK(worker.running());
    worker.stop(SIGTERM, 10s);
#endif
}

void told_to_stop(shop& at) {
    const auto long_one = at.enqueue("obedient");
    auto patient = at.worker(1);
    at.until("the handler runs", [&] { return at.noted("began", long_one) == 1; });
    patient.signal(SIGTERM);
    CHECK(!patient.wait(300ms)); // it gives the handler its time
    patient.signal(SIGTERM);
    CHECK(patient.wait(8s) == 0);
    CHECK(at.state_of(long_one) == job_state::pending);
    CHECK(at.view(long_one).attempts == 0);
    at.await(at.jobs().cancel({long_one}));

    at.enqueue_many(3000, "quick");
    auto busy = at.worker(4);
    at.until("it is in the middle of it", [&] { return test::notes_in(at.folder / "done").size() > 50; });
    busy.signal(SIGTERM);
    CHECK(busy.wait(10s) == 0);
    CHECK(at.count_of(job_state::processing) == 0);
    CHECK(at.count_of(job_state::succeeded) + at.count_of(job_state::pending) == 3000);
    const auto done = at.noted("done");
    CHECK(done.size() == at.count_of(job_state::succeeded));
    for (const auto& [id, times] : done) REQUIRE(times == 1);
}

// One program start per store, for servers take their time.
void survives_everything(const std::string& plugin, const test::text_settings& with) {
    using scenario = void (*)(shop&);
    const std::pair<const char*, scenario> all[] = {
        {"killed in the handler, with jobs prefetched", &killed_in_the_handler_with_jobs_prefetched},
        {"killed after the handler", &killed_after_the_handler},
        {"killed while idle", &killed_while_idle},
        {"frozen past the lease", &frozen_past_the_lease},
        {"handlers that kill their workers", &handlers_that_kill_their_workers},
        {"told to stop", &told_to_stop},
    };
    for (const auto& [name, run] : all) {
        INFO(plugin << ": " << name);
        shop at(plugin, with);
        run(at);
    }
}

} // namespace

TEST_CASE("sqlite: jobs survive what happens to their workers") {
    survives_everything("sqlite", {});
}

TEST_CASE("postgres: jobs survive what happens to their workers") {
    if (!harness::postgres_binaries()) SKIP("PostgreSQL is not installed (no initdb and postgres found)");
    harness::postgres_server server({.fsync = false});
    survives_everything("postgres", {{"url", server.url()}});
}

TEST_CASE("redis: jobs survive what happens to their workers") {
    if (!harness::redis_binary()) SKIP("Redis is not installed (no redis-server found)");
    harness::redis_server server;
    survives_everything("redis", {{"url", server.url()}});
}
