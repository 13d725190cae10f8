// More of what goes wrong around worker processes: clocks that are wrong, rows that no store takes, handlers that never
// end, odd payloads, stores that are away when a worker wants to stop.
#include <algorithm>
#include <csignal>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "shop.hpp"

using namespace std::chrono_literals;
using namespace holdfast;
using Catch::Matchers::ContainsSubstring;
using test::shop;

namespace {

// Frozen past its lease, it goes on without having heard of it, and says all that a worker can say: how far it is, that
// it is done, that it lives. Meanwhile another has finished the job, or is at it.
void late_words_are_refused(shop& at, bool finished) {
    const auto id = at.enqueue("wait");
    auto first = at.worker(1);
    at.until("the handler runs", [&] { return at.noted("began", id) == 1; });
    at.silence(first); // else its first heartbeat would tell it
    first.signal(SIGSTOP);
    auto second = at.worker(1);
    at.until("another has it", [&] { return at.noted("began", id) == 2; });
    if (finished) {
        at.let_go(second);
        at.until("the other has ended", [&] { return at.state_of(id) == job_state::succeeded; });
    }
    const auto before = at.view(id);
    at.let_go(first);
    first.signal(SIGCONT);
    at.until("its completion is refused", [&] { return at.refused("settle", id, first); });
    CHECK(at.refused("progress", id, first));
    CHECK(!at.refused("heartbeat", id, first));
    at.let_beat(first);
    at.until("its heartbeat is refused", [&] { return at.refused("heartbeat", id, first); });
    CHECK(at.noted("told", id) == 0);
    first.stop(SIGTERM, 10s);

    const auto after = at.view(id);
    CHECK(after.state == (finished ? job_state::succeeded : job_state::processing));
    CHECK(after.percent == before.percent);
    CHECK(after.output == before.output);
    CHECK(after.note == before.note);
    CHECK(after.worker == before.worker);
    REQUIRE(after.history.size() == 2);
    CHECK(after.history.front().outcome == "crashed");
    CHECK(after.history.back().outcome == (finished ? "succeeded" : "running"));
    at.let_go(second);
    at.until("the other has ended", [&] { return at.state_of(id) == job_state::succeeded; });
    CHECK(at.view(id).output == to_text(id) + "-" + std::to_string(after.history.back().token));
    CHECK(at.view(id).note == "by " + std::to_string(second.id()));
    CHECK(!at.refused("settle", id, second));
    second.stop(SIGTERM, 10s);
}
void frozen_while_another_finishes(shop& at) {
    late_words_are_refused(at, true);
}
void frozen_while_another_is_at_it(shop& at) {
    late_words_are_refused(at, false);
}

void one_completion_of_five_hundred_is_not_taken(shop& at) {
    auto all = at.enqueue_many(250, "quick");
    const auto poison = at.enqueue("says_too_much");
    for (const identifier& each : at.enqueue_many(249, "quick")) all.push_back(each);
    auto worker = at.worker(500);
    at.until("all are done", [&] { return at.count_of(job_state::succeeded) == 500; });
    for (const identifier& each : all) {
        REQUIRE(at.noted("done", each) == 1);
        REQUIRE(at.view(each).history.size() == 1);
    }
    CHECK(at.view(poison).output.empty());
    CHECK(at.view(poison).history.size() == 1);
    worker.stop(SIGTERM, 10s);
}

void a_handler_never_ends(shop& at) {
    const auto id = at.enqueue("stuck");
    auto first = at.worker(1); // it has one slot, and loses it
    at.until("it is given up", [&] { return at.view(id).attempts == 1 && at.state_of(id) != job_state::processing; });
    CHECK(at.view(id).last_error.type == "stuck");
    CHECK_THAT(at.view(id).last_error.message, ContainsSubstring("hard deadline of 300ms, and may still be running"));
    auto second = at.worker(1);
    at.until("another does it", [&] { return at.state_of(id) == job_state::succeeded; });
    CHECK(at.noted("began", id) == 2);
    CHECK(at.view(id).crash_count == 0);
    first.signal(SIGTERM);
    CHECK(first.wait(10s) == 3); // it says that a handler was left
    second.stop(SIGTERM, 10s);
}

void odd_payloads_and_names(shop& at) {
    const auto enqueue = [&](const std::string& type, std::string body, const std::string& queue = "default") {
        new_job made = at.job(std::move(body));
        made.what.type = type;
        made.queue = queue;
        at.await(at.jobs().enqueue({made}));
        return made.id;
    };
    std::vector<std::pair<identifier, std::string>> bodies;
    std::string large((10u << 20), '\0');
    for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<char>(i * 31 % 251);
    for (const std::string& each : {std::string(), std::string("a\0b\0", 4), std::string("\xFF\xC0\x80 \xED\xA0\x80"),
                                    std::string("%s%n'\"\\{}\r\n"), large})
        bodies.emplace_back(enqueue("echo", each), each);
    new_job huge = at.job(large + "x");
    CHECK(at.refusal(at.jobs().enqueue({huge})).code == errc::too_large);
    const auto cut_off = enqueue("three", "ab");
    const auto whole = enqueue("three", "abc");
    const auto unknown = enqueue("nobody's kind", "");
    const std::string odd(test::odd_name);
    const auto named = enqueue(odd, "", odd);
    const auto number = enqueue("throws_a_number", "");

    auto worker = at.worker(4, 20s); // ten megabytes take their time
    for (const auto& [id, body] : bodies) {
        at.until("a body is echoed", [&] { return at.state_of(id) == job_state::succeeded; });
        CHECK(at.view(id).output == body);
    }
    at.until("what does not decode is dead", [&] { return at.state_of(cut_off) == job_state::dead_letter; });
    CHECK(at.view(cut_off).attempts == 1);
    CHECK_THAT(at.view(cut_off).last_error.message, ContainsSubstring("does not decode: expected three letters"));
    at.until("what decodes is done", [&] { return at.state_of(whole) == job_state::succeeded; });
    at.until("an odd name is done", [&] { return at.state_of(named) == job_state::succeeded; });
    at.until("a number is thrown often enough", [&] { return at.state_of(number) == job_state::dead_letter; });
    CHECK(at.noted("began", number) == 3);
    CHECK(at.view(number).last_error.type == "int");
    at.until("what nobody knows is put off", [&] { return at.view(unknown).history.size() >= 2; });
    CHECK(at.view(unknown).attempts <= 1); // the one under way
    worker.stop(SIGTERM, 10s);
    CHECK(at.view(unknown).attempts == 0);
}

// Not on SQLite: there the clock of the machine is the store's.
[[maybe_unused]] void clocks_of_workers_are_wrong(shop& at) {
    auto behind = at.worker_at(-3600s);
    auto ahead = at.worker_at(3600s);
    auto jumping = at.worker_at(0s); // back and forth by an hour all the time
    new_job later = at.job();
    later.what.type = "quick";
    later.when = due::after(1500ms);
    const auto began = at.await(at.kept->now());
    at.await(at.jobs().enqueue({later}));
    const auto naps = at.enqueue_many(12, "long_nap"); // longer than the lease
    at.enqueue_many(300, "quick");
    at.until("all is done", [&] { return at.count_of(job_state::succeeded) == 313; });
    const auto ran = at.view(later.id);
    CHECK(ran.history.front().started - began >= 1500ms);
    CHECK(ran.history.front().started - began < 10s);
    for (const identifier& each : naps) CHECK(at.view(each).history.size() == 1); // nobody took it for dead
    for (auto* each : {&behind, &ahead, &jumping}) each->stop(SIGTERM, 10s);
}

// `away` takes the store away and `back` brings it back.
void the_store_is_away_during_the_drain(shop& at, const std::function<void()>& away,
                                        const std::function<void()>& back) {
    const auto waits = at.enqueue("wait");
    auto first = at.worker(1);
    at.until("the handler runs", [&] { return at.noted("began", waits) == 1; });
    const auto behind = at.enqueue_many(20, "quick");
    away();
    first.signal(SIGTERM);
    at.let_go(first);
    const auto code = first.wait(25s); // it ends, though it cannot say what it has done
    REQUIRE(code == 0);
    back();
    CHECK(at.state_of(waits) == job_state::processing); // nothing false was written
    auto second = at.worker(4);
    at.let_go(second);
    at.until("all is done", [&] { return at.count_of(job_state::succeeded) == 21; });
    CHECK(at.view(waits).crash_count == 1);
    for (const identifier& each : behind) CHECK(at.noted("done", each) == 1);
    second.stop(SIGTERM, 10s);
}

void do_no_harm(const std::string& plugin, const test::text_settings& with) {
    const std::pair<const char*, void (*)(shop&)> all[] = {
        {"frozen while another finishes", &frozen_while_another_finishes},
        {"frozen while another is at it", &frozen_while_another_is_at_it},
        {"one completion of five hundred is not taken", &one_completion_of_five_hundred_is_not_taken},
        {"a handler never ends", &a_handler_never_ends},
        {"odd payloads and names", &odd_payloads_and_names},
    };
    for (const auto& [name, run] : all) {
        INFO(plugin << ": " << name);
        shop at(plugin, with);
        run(at);
    }
}

} // namespace

TEST_CASE("sqlite: late writers, odd jobs and stuck handlers do no harm") {
    do_no_harm("sqlite", {});
}
TEST_CASE("postgres: late writers, odd jobs and stuck handlers do no harm") {
    if (!harness::postgres_binaries()) SKIP("PostgreSQL is not installed (no initdb and postgres found)");
    harness::postgres_server server({.fsync = false});
    do_no_harm("postgres", {{"url", server.url()}});
}
TEST_CASE("redis: late writers, odd jobs and stuck handlers do no harm") {
    if (!harness::redis_binary()) SKIP("Redis is not installed (no redis-server found)");
    harness::redis_server server;
    do_no_harm("redis", {{"url", server.url()}});
}

#ifndef HOLDFAST_SANITIZED // a sanitizer must be loaded before all else
TEST_CASE("postgres: clocks of workers that are wrong by an hour, or jump, change nothing") {
    if (!harness::postgres_binaries()) SKIP("PostgreSQL is not installed (no initdb and postgres found)");
    harness::postgres_server server({.fsync = false});
    shop at("postgres", {{"url", server.url()}});
    clocks_of_workers_are_wrong(at);
}
TEST_CASE("redis: clocks of workers that are wrong by an hour, or jump, change nothing") {
    if (!harness::redis_binary()) SKIP("Redis is not installed (no redis-server found)");
    harness::redis_server server;
    shop at("redis", {{"url", server.url()}});
    clocks_of_workers_are_wrong(at);
}
#endif

TEST_CASE("sqlite: a worker that is told to stop ends although the file is locked, and nothing is lost") {
    shop at("sqlite", {});
    std::unique_ptr<unit_of_work> writing; // holds the file for as long as it lives
    the_store_is_away_during_the_drain(
        at, [&] { writing = at.await(at.kept->begin()); }, [&] { at.await(writing->rollback()); });
}
TEST_CASE("postgres: a worker that is told to stop ends although the server is gone, and nothing is lost") {
    if (!harness::postgres_binaries()) SKIP("PostgreSQL is not installed (no initdb and postgres found)");
    harness::postgres_server server;
    shop at("postgres", {{"url", server.url()}});
    the_store_is_away_during_the_drain(at, [&] { server.kill(); }, [&] { server.start(); });
}
TEST_CASE("redis: a worker that is told to stop ends although the server is gone, and nothing is lost") {
    if (!harness::redis_binary()) SKIP("Redis is not installed (no redis-server found)");
    harness::redis_server server({.fsync = "always"});
    shop at("redis", {{"url", server.url()}});
    the_store_is_away_during_the_drain(at, [&] { server.kill(); }, [&] { server.start(); });
}
