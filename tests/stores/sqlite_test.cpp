// SQLite: joining the application's transaction, group commit, and what large bodies cost.
#include <filesystem>
#include <string>
#include <vector>

#include <holdfast/when_all.hpp>

#include "catch.hpp"
#include "stores/sqlite_support.hpp"

using namespace holdfast;
using namespace holdfast::test::sqlite;
using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;

namespace {

task<bool> enqueue_one(job_store* in, new_job j) {
    std::vector<new_job> batch{std::move(j)};
    auto call = in->enqueue(std::move(batch));
    const auto answer = co_await std::move(call);
    co_return answer && answer->at(0).created;
}

std::uintmax_t wal_size(const desk& at) {
    return std::filesystem::file_size(at.file() + "-wal");
}

} // namespace

TEST_CASE("sqlite: a job is enqueued in the application's own transaction, and shares its fate") {
    desk at;
    raw_file mine(at.file());
    mine.run("CREATE TABLE orders(number INTEGER)");

    mine.run("BEGIN; INSERT INTO orders VALUES(1)");
    auto unit = at.await(at.kept->join(native_transaction::of(mine.handle())));
    const auto undone = at.job();
    CHECK(at.await(at.jobs().enqueue({undone}, unit.get())).at(0).created);
    at.await(at.kept->outbox()->append({{at.ids.next(), "topic", "", undone.what, {}}}, unit.get()));
    unit.reset();
    mine.run("ROLLBACK");
    CHECK(std::get<job_absence>(at.await(at.jobs().get(undone.id))) == job_absence::never_known);
    CHECK(at.await(at.kept->outbox()->unsent()) == 0);

    mine.run("BEGIN; INSERT INTO orders VALUES(2)");
    unit = at.await(at.kept->join(native_transaction::of(mine.handle())));
    const auto done = at.job();
    at.await(at.jobs().enqueue({done}, unit.get()));
    CHECK(at.await(at.kept->idempotency()->try_claim("order 2", 1h, unit.get())));
    CHECK(std::get<job_absence>(at.await(at.jobs().get(done.id))) == job_absence::never_known);
    unit.reset(); // leaves the transaction to its owner
    mine.run("COMMIT");
    CHECK(std::holds_alternative<job_view>(at.await(at.jobs().get(done.id))));
    CHECK(!at.await(at.kept->idempotency()->try_claim("order 2", 1h)));
    CHECK(mine.run("SELECT group_concat(number) FROM orders") == "2");
}

TEST_CASE("sqlite: a refused call in a joined transaction undoes itself alone") {
    desk at;
    const auto begun = at.await(at.kept->idempotency()->begin({"k", "f", 1min, 1h}));
    const auto& lease = std::get<idempotency_started>(begun).lease;
    raw_file mine(at.file());
    mine.run("CREATE TABLE orders(number INTEGER); BEGIN; INSERT INTO orders VALUES(1)");
    const auto unit = at.await(at.kept->join(native_transaction::of(mine.handle())));
    const idempotency_lease stale("k", lease.token() + 1);
    CHECK(at.refusal(at.kept->idempotency()->complete(stale, {}, 1h, unit.get())).code == errc::stale_lease);
    at.await(at.kept->idempotency()->complete(lease, {"t", 1, "", "answer"}, 1h, unit.get()));
    mine.run("COMMIT");
    CHECK(mine.run("SELECT count(*) FROM orders") == "1");
    CHECK(std::holds_alternative<idempotency_completed>(at.await(at.kept->idempotency()->begin({"k", "f", 1min, 1h}))));
}

TEST_CASE("sqlite: a job and a message are settled in the application's own transaction, and share its fate") {
    desk at;
    raw_file mine(at.file());
    for (const bool commit : {false, true}) {
        const identifier message = at.ids.next();
        const identifier id = at.add();
        const claimed_job held = at.claim_one();
        const settlement done[] = {at.success(held)};
        mine.run("BEGIN");
        auto unit = at.await(at.kept->join(native_transaction::of(mine.handle())));
        CHECK(at.await(at.jobs().settle(done, unit.get())).at(0) == settled{write_answer::done, job_state::succeeded});
        CHECK(at.await(at.kept->outbox()->receive("c", message, 1h, unit.get())));
        CHECK_FALSE(at.await(at.kept->outbox()->receive("c", message, 1h, unit.get())));
        CHECK(at.state_of(id) == job_state::processing);
        unit.reset();
        mine.run(commit ? "COMMIT" : "ROLLBACK");
        CHECK(at.state_of(id) == (commit ? job_state::succeeded : job_state::processing));
        CHECK(at.await(at.kept->outbox()->received("c", {message})).at(0) == commit);
        CHECK(at.settle(held.lease).answer == (commit ? write_answer::stale : write_answer::done));
    }
}

TEST_CASE("sqlite: an error of the database in a joined call undoes that call, and the transaction goes on") {
    desk at;
    raw_file mine(at.file());
    mine.run("CREATE TRIGGER odd BEFORE INSERT ON holdfast_jobs WHEN NEW.type = 'odd' "
             "BEGIN SELECT RAISE(ABORT, 'odd'); END; BEGIN");
    const auto unit = at.await(at.kept->join(native_transaction::of(mine.handle())));
    const new_job first = at.job();
    const new_job last = at.job();
    new_job odd = at.job();
    odd.what.type = "odd";
    at.await(at.jobs().enqueue({first}, unit.get()));
    CHECK_FALSE(at.attempt(at.jobs().enqueue({at.job(), odd}, unit.get())));
    at.await(at.jobs().enqueue({last}, unit.get()));
    mine.run("COMMIT");
    CHECK(at.state_of(first.id) == job_state::pending);
    CHECK(at.state_of(last.id) == job_state::pending);
    CHECK(at.claim(10).size() == 2);
}

TEST_CASE("sqlite: only an open transaction on the same file is joined, and only its owner ends it") {
    desk at;
    raw_file mine(at.file());
    CHECK(at.refusal(at.kept->join(native_transaction::of(mine.handle()))).code == errc::invalid_argument);

    desk other;
    raw_file theirs(other.file());
    theirs.run("BEGIN");
    const auto why = at.refusal(at.kept->join(native_transaction::of(theirs.handle())));
    CHECK(why.code == errc::invalid_argument);
    CHECK_THAT(why.message, ContainsSubstring(other.file()));
    int number = 0;
    CHECK(at.refusal(at.kept->join(native_transaction::of(number))).code == errc::invalid_argument);

    mine.run("BEGIN");
    const auto unit = at.await(at.kept->join(native_transaction::of(mine.handle())));
    CHECK(at.refusal(unit->commit()).code == errc::invalid_argument);
    CHECK(at.refusal(unit->rollback()).code == errc::invalid_argument);
    CHECK(at.refusal(other.jobs().enqueue({other.job()}, unit.get())).code == errc::invalid_argument);
    mine.run("COMMIT");
    CHECK(at.refusal(at.jobs().enqueue({at.job()}, unit.get())).code == errc::invalid_argument);
}

TEST_CASE("sqlite: calls that wait together are committed together") {
    const auto written_by = [](int callers, bool at_once) {
        desk at;
        const auto before = wal_size(at);
        std::vector<task<bool>> calls;
        for (int i = 0; i < callers; ++i) {
            calls.push_back(enqueue_one(&at.jobs(), at.job(std::string(200, 'x'))));
            if (at_once) continue;
            REQUIRE(sync_wait(at.on, std::move(calls.back())));
            calls.pop_back();
        }
        for (const bool created : sync_wait(at.on, when_all(std::move(calls)))) CHECK(created);
        CHECK(at.claim(2 * callers).size() == static_cast<std::size_t>(callers));
        return wal_size(at) - before;
    };
    CHECK(written_by(100, true) < written_by(100, false) / 2);
}

TEST_CASE("sqlite: one call that is refused spoils nothing for those committed with it") {
    desk at;
    const auto first = at.job();
    at.await(at.jobs().enqueue({first}));
    auto held = at.claim(1);
    at.settle(held.at(0).lease);
    std::vector<task<bool>> calls;
    for (int i = 0; i < 50; ++i) calls.push_back(enqueue_one(&at.jobs(), at.job()));
    calls.push_back([](store* in) -> task<bool> {
        const lock_lease nobody("nothing", 1);
        auto call = in->locks()->renew(nobody, 1min);
        const auto answer = co_await std::move(call);
        co_return !answer && answer.error().code == errc::stale_lease;
    }(at.kept.get()));
    for (int i = 0; i < 50; ++i) calls.push_back(enqueue_one(&at.jobs(), at.job()));
    for (const bool as_expected : sync_wait(at.on, when_all(std::move(calls)))) CHECK(as_expected);
    CHECK(at.claim(200).size() == 100);
}

TEST_CASE("sqlite: a body of ten megabytes is kept exactly, and not rewritten when its job is") {
    desk at;
    std::string body(10u << 20, '\0');
    for (std::size_t i = 0; i < body.size(); ++i) body[i] = static_cast<char>(i * 31);
    const auto id = at.add(body);
    raw_file(at.file()).run("PRAGMA wal_checkpoint(TRUNCATE)");
    const auto claimed = at.claim(1);
    REQUIRE(claimed.size() == 1);
    CHECK(claimed[0].what.body == body);
    const job_lease* held[] = {&claimed[0].lease};
    for (int i = 0; i < 10; ++i) at.await(at.jobs().heartbeat(held, 1min));
    CHECK(wal_size(at) < (1u << 20));
    CHECK(std::get<job_view>(at.await(at.jobs().get(id))).what.body == body);
    CHECK(at.refusal(at.jobs().enqueue({at.job(body + "x")})).code == errc::too_large);
    CHECK(at.settle(claimed[0].lease).now == job_state::succeeded);
    CHECK(at.await(at.jobs().purge(job_state::succeeded, 0s, 10)) == 1);
    CHECK(raw_file(at.file()).run("SELECT count(*) FROM holdfast_job_bodies") == "0");
}

TEST_CASE("sqlite: what has expired is swept, and remembered for as long as it was said") {
    const bool asks_for_it = GENERATE(true, false);
    desk at({{"keep_tombstones", "20ms"}, {"keep_succeeded", asks_for_it ? "1d" : "1ms"}});
    auto j = at.job();
    if (asks_for_it) j.keep_for = 1ms;
    at.await(at.jobs().enqueue({j}));
    const auto claimed = at.claim(1);
    at.settle(claimed.at(0).lease);
    const auto absence = [&] { return std::get<job_absence>(at.await(at.jobs().get(j.id))); };
    const auto until = [&](duration d) {
        const auto due = at.await(at.kept->now()) + std::chrono::duration_cast<std::chrono::microseconds>(d);
        while (at.await(at.kept->now()) <= due) std::this_thread::sleep_for(1ms);
    };
    until(1ms);
    CHECK(absence() == job_absence::expired);
    at.await(at.jobs().recover_stale(10));
    CHECK(raw_file(at.file()).run("SELECT count(*) FROM holdfast_jobs") == "0");
    CHECK(raw_file(at.file()).run("SELECT count(*) FROM holdfast_attempts") == "0");
    until(20ms);
    CHECK(absence() == job_absence::never_known);
    at.await(at.jobs().recover_stale(10));
    CHECK(raw_file(at.file()).run("SELECT count(*) FROM holdfast_tombstones") == "0");
}
