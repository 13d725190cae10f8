// What the store does when the server, or the way to it, fails.
#include <algorithm>
#include <atomic>
#include <csignal>
#include <map>
#include <mutex>
#include <thread>

#include <holdfast/when_all.hpp>

#include "stores/postgres_support.hpp"

using namespace holdfast;
using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;
using test::postgres::desk;

namespace {

// Ends every session of the store but psql's own, again and again, on the main thread's server.
std::string end_sessions(desk& d) {
    return d.sql("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
                 "WHERE application_name = 'holdfast' AND pid <> pg_backend_pid()");
}

bool is_trouble(const error& e) {
    return e.code == errc::unavailable || e.code == errc::unknown_outcome;
}

struct ledger {
    std::mutex mutex;
    std::vector<identifier> acknowledged;
    std::map<identifier, int> accepted; // settlements that were answered with done
    int unknown_claims = 0;
    std::vector<std::string> surprises;

    void note(const error& e) {
        if (is_trouble(e)) return;
        const std::lock_guard lock(mutex);
        surprises.push_back(e.message);
    }
};

void enqueue_until(desk& d, ledger& book, std::atomic<bool>& stop) {
    while (!stop) {
        std::vector<new_job> batch;
        std::vector<identifier> ids;
        for (int i = 0; i < 5; ++i) ids.push_back(batch.emplace_back(d.job()).id);
        const auto answer = d.attempt(d.jobs().enqueue(batch));
        if (!answer) {
            book.note(answer.error());
            continue;
        }
        const std::lock_guard lock(book.mutex);
        book.acknowledged.insert(book.acknowledged.end(), ids.begin(), ids.end());
    }
}

void settle_some(desk& d, ledger& book, int limit) {
    const auto claimed = d.attempt(d.jobs().claim({{"default"}, limit, 30s, "w"}));
    if (!claimed) return book.note(claimed.error());
    std::vector<settlement> all;
    for (const claimed_job& job : *claimed) all.push_back({.held = &job.lease});
    if (all.empty()) return;
    const auto answers = d.attempt(d.jobs().settle(all));
    if (!answers) return book.note(answers.error());
    const std::lock_guard lock(book.mutex);
    for (std::size_t i = 0; i < answers->size(); ++i)
        if ((*answers)[i].answer == write_answer::done) ++book.accepted[(*claimed)[i].id];
}

} // namespace

TEST_CASE("postgres: connections terminated in a storm lose no acknowledged job and settle none twice") {
    NEEDS_POSTGRES();
    desk d;
    ledger book;
    std::atomic<bool> stop = false;
    {
        std::vector<std::jthread> workers;
        for (int i = 0; i < 2; ++i) workers.emplace_back([&] { enqueue_until(d, book, stop); });
        for (int i = 0; i < 2; ++i)
            workers.emplace_back([&] {
                while (!stop) settle_some(d, book, 20);
            });
        int ended = 0;
        for (int i = 0; i < 25; ++i) ended += std::stoi(end_sessions(d));
        CHECK(ended > 0);
        stop = true;
    }
    CHECK(book.surprises == std::vector<std::string>{});

    // Claims whose answer was lost are somebody's no more: their leases are made to end now.
    d.sql("UPDATE " + d.space + ".jobs SET leased_until = 0 WHERE state = 2");
    d.await(d.jobs().recover_stale(100'000));
    for (std::size_t before = 0; before != book.accepted.size() || before == 0;) {
        before = book.accepted.size();
        settle_some(d, book, 1000);
        if (book.acknowledged.empty()) break;
    }
    CHECK(book.surprises == std::vector<std::string>{});
    CHECK(!book.acknowledged.empty());
    for (const identifier& id : book.acknowledged) {
        const job_view job = d.view(id);
        REQUIRE(job.state == job_state::succeeded);
        REQUIRE(std::ranges::count(job.history, std::string("succeeded"), &attempt_entry::outcome) == 1);
    }
    for (const auto& [id, times] : book.accepted) REQUIRE(times == 1);
}

TEST_CASE("postgres: a restart in between goes unnoticed, a server that is down is unavailable") {
    NEEDS_POSTGRES();
    harness::postgres_server own({.fsync = false});
    desk d(own);
    const auto ids = d.add(3);
    own.restart();
    CHECK(d.claim(1).size() == 1); // dead connections are dropped before they are used

    own.stop();
    const error down = d.refusal(d.jobs().enqueue({d.job()}));
    CHECK(down.code == errc::unavailable);
    CHECK_THAT(down.message, ContainsSubstring("127.0.0.1:" + std::to_string(own.port())));
    CHECK(d.refusal(d.kept->begin()).code == errc::unavailable);
    own.start();
    CHECK(d.claim(10).size() == 2);
}

TEST_CASE("postgres: a server killed during commits keeps every acknowledged job and gives none an unclear state") {
    NEEDS_POSTGRES();
    harness::postgres_server own({.fsync = true});
    desk d(own, {{"connections", "4"}});
    ledger book;
    for (int round = 0; round < 3; ++round) {
        std::atomic<bool> stop = false;
        std::vector<std::jthread> workers;
        for (int i = 0; i < 2; ++i) workers.emplace_back([&] { enqueue_until(d, book, stop); });
        workers.emplace_back([&] {
            while (!stop) settle_some(d, book, 10);
        });
        std::this_thread::sleep_for(150ms);
        own.kill();
        own.start();
        stop = true;
    }
    CHECK(book.surprises == std::vector<std::string>{});
    REQUIRE(!book.acknowledged.empty());
    for (const identifier& id : book.acknowledged) REQUIRE(d.view(id).id == id);
    for (const auto& [id, times] : book.accepted) {
        REQUIRE(times == 1);
        REQUIRE(d.view(id).state == job_state::succeeded);
    }
}

TEST_CASE("postgres: a read-only server refuses writes as unavailable and still reads") {
    NEEDS_POSTGRES();
    harness::postgres_server own({.fsync = false});
    desk d(own);
    const auto ids = d.add(1);
    d.sql("ALTER SYSTEM SET default_transaction_read_only = on");
    d.sql("SELECT pg_reload_conf()");
    end_sessions(d);
    const error refused = d.refusal(d.jobs().enqueue({d.job()}));
    CHECK(refused.code == errc::unavailable);
    CHECK_THAT(refused.message, ContainsSubstring("read-only"));
    CHECK(d.refusal(d.kept->locks()->try_acquire("door")).code == errc::unavailable);
    CHECK(d.view(ids[0]).state == job_state::pending);

    d.sql("ALTER SYSTEM RESET default_transaction_read_only");
    d.sql("SELECT pg_reload_conf()");
    end_sessions(d);
    CHECK(d.add(1).size() == 1);
}

TEST_CASE("postgres: too many connections is unavailable, says so, and passes") {
    NEEDS_POSTGRES();
    harness::postgres_server own({.fsync = false, .max_connections = 6});
    desk d(own, {{"connections", "6"}});
    std::vector<std::unique_ptr<unit_of_work>> units;
    for (int i = 0; i < 6; ++i) units.push_back(d.await(d.kept->begin()));

    auto settings = d.with;
    settings.emplace_back("connections", "1");
    const auto other = test::postgres::open(d.on, settings);
    const error refused = d.refusal(other->prepare());
    CHECK(refused.code == errc::unavailable);
    CHECK_THAT(refused.message, ContainsSubstring("too many"));
    units.clear();
    bool came_back = false;
    for (int i = 0; i < 100 && !came_back; ++i) { // the server ends sessions in its own time
        came_back = d.attempt(other->prepare()).has_value();
        if (!came_back) std::this_thread::sleep_for(10ms);
    }
    CHECK(came_back);
}

TEST_CASE("postgres: eight stores prepare one namespace at the same time, and twice") {
    NEEDS_POSTGRES();
    asio_runtime on{asio_options{}};
    const std::string space = test::postgres::fresh_namespace();
    std::vector<std::unique_ptr<store>> stores;
    for (int i = 0; i < 8; ++i)
        stores.push_back(test::postgres::open(
            on, {{"url", test::postgres::shared_server().url()}, {"namespace", space}, {"connections", "1"}}));
    for (int twice = 0; twice < 2; ++twice) {
        std::vector<task<result<void>>> calls;
        for (const auto& each : stores) calls.push_back(each->prepare());
        for (const auto& answer : sync_wait(on, when_all(std::move(calls)))) {
            INFO((answer ? "" : answer.error().message));
            CHECK(answer.has_value());
        }
    }
    CHECK(test::postgres::shared_server().psql("SELECT count(*) FROM " + space + ".meta") == "1");
    CHECK(sync_wait(on, stores[0]->destroy()).has_value());
}

TEST_CASE("postgres: a migration killed midway leaves nothing behind and is done by the next") {
    NEEDS_POSTGRES();
    asio_runtime on{asio_options{}};
    auto& server = test::postgres::shared_server();
    const std::string space = test::postgres::fresh_namespace();
    const auto made = test::postgres::open(on, {{"url", server.url()}, {"namespace", space}, {"connections", "1"}});
    // A trigger of the server's own stops it in the middle.
    server.psql("CREATE FUNCTION public.interrupt() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN "
                "IF tg_tag = 'CREATE SEQUENCE' THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF; END $$; "
                "CREATE EVENT TRIGGER interrupt ON ddl_command_end EXECUTE FUNCTION public.interrupt()");
    const auto interrupted = sync_wait(on, made->prepare());
    server.psql("DROP EVENT TRIGGER interrupt; DROP FUNCTION public.interrupt()");
    REQUIRE(!interrupted);
    CHECK(is_trouble(interrupted.error()));
    CHECK(server.psql("SELECT count(*) FROM pg_namespace WHERE nspname = '" + space + "'") == "0");
    CHECK(sync_wait(on, made->prepare()).has_value());
    CHECK(sync_wait(on, made->now()).has_value());
    CHECK(sync_wait(on, made->destroy()).has_value());
}

TEST_CASE("postgres: a schema newer than the plugin is refused with both versions") {
    NEEDS_POSTGRES();
    desk d;
    d.sql("UPDATE " + d.space + ".meta SET version = 99");
    const error refused = d.refusal(d.kept->prepare());
    CHECK(refused.code == errc::configuration);
    CHECK_THAT(refused.message, ContainsSubstring("99"));
    CHECK_THAT(refused.message, ContainsSubstring("knows versions up to 2"));
}

TEST_CASE("postgres: of completion and recovery exactly one wins, ten thousand times") {
    NEEDS_POSTGRES();
    desk d;
    int settled_first = 0;
    int recovered_first = 0;
    for (int round = 0; round < 100; ++round) {
        d.add(100);
        const auto claimed = d.claim(200, 1ms);
        REQUIRE(claimed.size() == 100);
        std::this_thread::sleep_for(2ms);
        std::vector<settlement> all;
        for (const claimed_job& job : claimed) all.push_back({.held = &job.lease});
        // Two halves, so that recovery falls before, between and after them.
        const std::span<const settlement> both(all);
        std::vector<task<result<std::vector<settled>>>> settling;
        settling.push_back(d.jobs().settle(both.first(50)));
        settling.push_back(d.jobs().settle(both.subspan(50)));
        auto [answers, recovered] =
            sync_wait(d.on, when_all(when_all(std::move(settling)), d.jobs().recover_stale(1000)));
        int done = 0;
        for (const auto& half : answers) {
            REQUIRE(half.has_value());
            done += static_cast<int>(std::ranges::count(*half, write_answer::done, &settled::answer));
        }
        REQUIRE(recovered.has_value());
        REQUIRE(done + recovered->requeued == 100);
        settled_first += done;
        recovered_first += recovered->requeued;
        // The old leases are worth nothing now.
        auto late = d.await(d.jobs().settle(all));
        REQUIRE(std::ranges::all_of(late, [](const settled& s) { return s.answer == write_answer::stale; }));
        d.sql("DELETE FROM " + d.space + ".jobs");
    }
    CHECK(settled_first + recovered_first == 10'000);
    INFO("settled first " << settled_first << ", recovered first " << recovered_first);
    CHECK(settled_first > 0);
}

TEST_CASE("postgres: a server that falls silent is given up after statement_timeout, as an unknown outcome") {
    NEEDS_POSTGRES();
    desk d(test::postgres::shared_server(), {{"connections", "1"}, {"statement_timeout", "200ms"}});
    d.add(1);
    // Not the one that tells of new jobs, nor one of an earlier test that is about to end.
    const pid_t session = std::stoi(d.sql("SELECT pid FROM pg_stat_activity WHERE application_name = 'holdfast' "
                                          "AND query LIKE '%" +
                                          d.space + "%'"));
    const auto started = std::chrono::steady_clock::now();
    const error lost = [&] {
        struct frozen { // whatever happens, it goes on: its server could not end it
            explicit frozen(pid_t id) : id(id) { ::kill(id, SIGSTOP); }
            ~frozen() { ::kill(id, SIGCONT); }
            const pid_t id;
        } silent(session);
        return d.refusal(d.kept->locks()->try_acquire("door"));
    }();
    CHECK(lost.code == errc::unknown_outcome);
    CHECK(std::chrono::steady_clock::now() - started < 20s);
    CHECK(d.add(1).size() == 1);
}

TEST_CASE("postgres: a unit of work whose connection is lost fails, and nothing of it happened") {
    NEEDS_POSTGRES();
    desk d;
    auto unit = d.await(d.kept->begin());
    const new_job job = d.job();
    d.await(d.jobs().enqueue({job}, unit.get()));
    end_sessions(d);
    const error lost = d.refusal(unit->commit());
    CHECK(is_trouble(lost));
    CHECK(std::get<job_absence>(d.await(d.jobs().get(job.id))) == job_absence::never_known);
    CHECK(d.refusal(unit->commit()).code == errc::invalid_argument);
}

TEST_CASE("postgres: the password is in no message") {
    NEEDS_POSTGRES();
    asio_runtime on{asio_options{}};
    const std::string port = std::to_string(test::postgres::shared_server().port());
    for (const std::string& url :
         {"postgresql://holdfast:s3cr%21t@127.0.0.1:" + port + "/postgres?nonsense=s3cr%21t",
          "postgresql://holdfast:s3cr%21t@127.0.0.1:" + port + "/postgres",
          "host=127.0.0.1 port=" + port + " user=holdfast dbname=postgres password=s3cr!t",
          "host=127.0.0.1 port=" + port + " user=holdfast dbname=postgres password='s3cr!t' bad"}) {
        const auto made = test::postgres::open(on, {{"url", url}});
        const auto answer = sync_wait(on, made->prepare());
        REQUIRE(!answer);
        CHECK(answer.error().code == errc::unavailable);
        CHECK_THAT(answer.error().message, ContainsSubstring(port));
        CHECK_THAT(answer.error().message, !ContainsSubstring("s3cr"));
    }
}

TEST_CASE("postgres: a durability that the server does not keep is not promised") {
    NEEDS_POSTGRES();
    desk d; // fsync is off there
    CHECK(d.kept->capabilities().writes_survive == survives::server_crash);
    CHECK_THAT(d.kept->capabilities().loses, ContainsSubstring("fsync"));
    harness::postgres_server safe;
    desk e(safe);
    CHECK(e.kept->capabilities().writes_survive == survives::power_loss);
    safe.psql("ALTER SYSTEM SET synchronous_commit = off");
    safe.psql("SELECT pg_reload_conf()");
    end_sessions(e);
    e.await(e.kept->prepare());
    CHECK(e.kept->capabilities().writes_survive == survives::process_crash);
}
