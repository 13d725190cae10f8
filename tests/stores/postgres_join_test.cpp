// Units of work inside the application's own libpqxx transaction.
#include <pqxx/pqxx>

#include "stores/postgres_support.hpp"

using namespace holdfast;
using namespace std::chrono_literals;
using test::postgres::desk;

namespace {

// What a handler does together with its own writes: it ends its job, answers its key and notes the message that it got.
template <class Transaction>
void check_joined_ends(desk& d) {
    pqxx::connection theirs(d.server.url());
    for (const bool commit : {false, true}) {
        const identifier message = d.ids.next();
        const identifier id = d.add();
        const claimed_job mine = d.claim_one();
        const settlement done[] = {d.success(mine)};
        const std::string key = to_text(message);
        auto began = d.await(d.kept->idempotency()->begin({key, "f", 1h, 2h}));
        const auto& held = std::get<idempotency_started>(began).lease;

        Transaction transaction(theirs);
        auto unit = d.await(d.kept->join(native_transaction::of(transaction)));
        CHECK(d.await(d.jobs().settle(done, unit.get())).at(0) == settled{write_answer::done, job_state::succeeded});
        d.await(d.kept->idempotency()->complete(held, {"t", 1, "", "answer"}, 1h, unit.get()));
        CHECK(d.await(d.kept->outbox()->receive("c", message, 1h, unit.get())));
        CHECK(d.state_of(id) == job_state::processing);
        unit.reset();
        if (commit) transaction.commit();
        else transaction.abort();

        CHECK(d.state_of(id) == (commit ? job_state::succeeded : job_state::processing));
        CHECK(d.await(d.kept->outbox()->received("c", {message})).at(0) == commit);
        const auto stored = d.await(d.kept->idempotency()->begin({key, "f", 1h, 2h}));
        CHECK(std::holds_alternative<idempotency_completed>(stored) == commit);
        CHECK(d.settle(mine.lease).answer == (commit ? write_answer::stale : write_answer::done));
    }
}

} // namespace

TEST_CASE("postgres: a joined unit of work commits and rolls back with the application's transaction") {
    NEEDS_POSTGRES();
    desk d;
    pqxx::connection theirs(d.server.url());
    for (const bool commit : {false, true}) {
        const new_job job = d.job();
        pqxx::work transaction(theirs);
        transaction.exec("CREATE TABLE IF NOT EXISTS " + d.space + ".invoices (id integer)");
        transaction.exec("INSERT INTO " + d.space + ".invoices VALUES (1)");
        auto unit = d.await(d.kept->join(native_transaction::of(transaction)));
        d.await(d.jobs().enqueue({job}, unit.get()));
        d.await(d.kept->outbox()->append({{d.ids.next(), "topic", "k", {}, {}}}, unit.get()));
        CHECK(d.await(d.kept->idempotency()->try_claim("once", default_idempotency_ttl, unit.get())));
        CHECK(d.refusal(unit->commit()).code == errc::invalid_argument);
        CHECK(std::holds_alternative<job_absence>(d.await(d.jobs().get(job.id)))); // nobody else sees it yet
        unit.reset();                                                              // leaves the transaction alone
        if (commit) transaction.commit();
        else transaction.abort();
        CHECK(std::holds_alternative<job_view>(d.await(d.jobs().get(job.id))) == commit);
    }
    CHECK(d.sql("SELECT count(*) FROM " + d.space + ".invoices") == "1");
    CHECK(d.await(d.kept->outbox()->unsent()) == 1);
}

TEST_CASE("postgres: a job, a key and a message are settled in the application's transaction, at every isolation") {
    NEEDS_POSTGRES();
    desk d;
    SECTION("read committed") {
        check_joined_ends<pqxx::work>(d);
    }
    SECTION("repeatable read") {
        check_joined_ends<pqxx::transaction<pqxx::repeatable_read>>(d);
    }
    SECTION("serializable") {
        check_joined_ends<pqxx::transaction<pqxx::serializable>>(d);
    }
}

TEST_CASE("postgres: a lease that was lost after the application's snapshot was taken settles nothing there") {
    NEEDS_POSTGRES();
    desk d;
    const identifier id = d.add();
    const claimed_job mine = d.claim_one();
    const settlement done[] = {d.success(mine)};
    pqxx::connection theirs(d.server.url());
    pqxx::transaction<pqxx::repeatable_read> transaction(theirs);
    transaction.exec("SELECT 1 FROM " + d.space + ".jobs"); // sees the lease from now on
    CHECK(d.settle(mine.lease, settlement::kind::release).answer == write_answer::done);
    const claimed_job other = d.claim_one();
    const auto unit = d.await(d.kept->join(native_transaction::of(transaction)));
    CHECK(d.refusal(d.jobs().settle(done, unit.get())).code == errc::unavailable); // the server could not serialize
    transaction.abort();
    CHECK(d.state_of(id) == job_state::processing);
    CHECK(d.settle(other.lease).answer == write_answer::done);
}

TEST_CASE("postgres: an error of the server in a joined call spoils the application's transaction, and is told again") {
    NEEDS_POSTGRES();
    desk d;
    pqxx::connection theirs(d.server.url());
    d.sql("ALTER TABLE " + d.space + ".jobs ADD CHECK (type <> 'odd')");
    pqxx::work transaction(theirs);
    const new_job job = d.job();
    const auto unit = d.await(d.kept->join(native_transaction::of(transaction)));
    d.await(d.jobs().enqueue({job}, unit.get()));
    new_job odd = d.job();
    odd.what.type = "odd";
    const error first = d.refusal(d.jobs().enqueue({odd}, unit.get()));
    CHECK(first.code == errc::internal);
    CHECK(d.refusal(d.jobs().enqueue({d.job()}, unit.get())).message == first.message);
    CHECK_THROWS(transaction.exec("SELECT 1"));
    transaction.abort();
    CHECK(std::holds_alternative<job_absence>(d.await(d.jobs().get(job.id))));
}

TEST_CASE("postgres: what cannot roll back cannot be joined") {
    NEEDS_POSTGRES();
    desk d;
    pqxx::connection theirs(d.server.url());
    pqxx::nontransaction alone(theirs);
    CHECK(d.refusal(d.kept->join(native_transaction::of(alone))).code == errc::invalid_argument);
    int number = 0;
    CHECK(d.refusal(d.kept->join(native_transaction::of(number))).code == errc::invalid_argument);
}
