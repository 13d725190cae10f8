// Units of work inside the application's own libpqxx transaction.
#include <pqxx/pqxx>

#include "stores/postgres_support.hpp"

using namespace holdfast;
using test::postgres::desk;

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

TEST_CASE("postgres: what cannot roll back cannot be joined") {
    NEEDS_POSTGRES();
    desk d;
    pqxx::connection theirs(d.server.url());
    pqxx::nontransaction alone(theirs);
    CHECK(d.refusal(d.kept->join(native_transaction::of(alone))).code == errc::invalid_argument);
    int number = 0;
    CHECK(d.refusal(d.kept->join(native_transaction::of(number))).code == errc::invalid_argument);
}
