// Hints from PostgreSQL: across instances, after the listening connection was lost, and behind a proxy that pools.
#include <atomic>
#include <thread>

#include <pqxx/pqxx>

#include <holdfast/engine.hpp>
#include <holdfast/job_worker.hpp>

#include "harness/tcp_proxy.hpp"
#include "stores/postgres_support.hpp"

using namespace holdfast;
using namespace std::chrono_literals;
using test::postgres::desk;

namespace {

class hints {
public:
    explicit hints(job_store& of) : watch_(of.watch({"default"}, [this] { ++count_; })) {}
    int count() const { return count_; }
    bool given() const { return watch_ != nullptr; }
    // A hint comes after those there were.
    bool more_than(int before, std::chrono::milliseconds within = 20s) const {
        const auto give_up = std::chrono::steady_clock::now() + within;
        while (count_ <= before && std::chrono::steady_clock::now() < give_up) std::this_thread::sleep_for(1ms);
        return count_ > before;
    }

private:
    std::atomic<int> count_ = 0;
    std::unique_ptr<job_watch> watch_;
};

// Counts what it is run with.
class counted_job final : public job_type {
public:
    explicit counted_job(std::atomic<int>& ran) : ran_(ran) {}
    const job_options& options() const noexcept override { return how_; }
    holdfast::restart restart() const noexcept override { return how_.restart; }
    task<result<void>> run(payload, job_context&) override {
        ++ran_;
        co_return result<void>{};
    }
    task<happened> probe(payload, job_context&) override { co_return happened::no; }

private:
    std::atomic<int>& ran_;
    job_options how_{.name = "t"};
};

} // namespace

TEST_CASE("postgres: a listening connection that was ended is opened again") {
    NEEDS_POSTGRES();
    desk d;
    const auto there = d.another();
    const hints told(d.jobs());
    REQUIRE(told.more_than(0)); // it listens now
    for (int i = 0; i < 3; ++i) {
        d.sql("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'holdfast'");
        const int lost = told.count();
        REQUIRE(told.more_than(lost)); // what may have been missed
        const int before = told.count();
        d.await(there->jobs()->enqueue({d.job()}));
        CHECK(told.more_than(before));
    }
}

TEST_CASE("postgres: a listening connection that died silently is noticed") {
    NEEDS_POSTGRES();
    desk d;
    harness::tcp_proxy proxy(d.server.port());
    auto with = d.with;
    const std::string port = ":" + std::to_string(d.server.port());
    for (auto& [key, value] : with)
        if (key == "url") value.replace(value.find(port), port.size(), ":" + std::to_string(proxy.port()));
    with.emplace_back("listen_check", "100ms");
    const auto here = test::postgres::open(d.on, with);
    const hints told(*here->jobs());
    REQUIRE(told.more_than(0));

    proxy.drop_replies(true);
    d.add(3);
    const int before = told.count();
    std::this_thread::sleep_for(150ms); // the check is on its way, and its answer is dropped
    proxy.drop_replies(false);
    CHECK(told.more_than(before)); // on a new connection
    const int again = told.count();
    d.add(1);
    CHECK(told.more_than(again));
}

TEST_CASE("postgres: a worker whose listening connection is dead drains its queue by polling") {
    NEEDS_POSTGRES();
    desk d(test::postgres::shared_server(), {{"listen_check", "10m"}}); // nobody notices
    const hints told(d.jobs());
    REQUIRE(told.more_than(0));
    std::atomic<int> ran = 0;
    job_registry kinds;
    REQUIRE(kinds.add(std::make_unique<counted_job>(ran)));
    null_logger log;
    job_worker worker({d.on, d.jobs(), kinds, log}, {.poll = 50ms});
    REQUIRE(worker.start());
    const auto there = d.another();
    const auto ran_all = [&](int all) {
        const auto give_up = std::chrono::steady_clock::now() + 20s;
        while (ran < all && std::chrono::steady_clock::now() < give_up) std::this_thread::sleep_for(1ms);
        return ran == all;
    };
    {
        const test::postgres::deaf_while dead(d);
        const int before = told.count();
        for (int i = 1; i <= 5; ++i) {
            d.await(there->jobs()->enqueue({d.job(), d.job()}));
            REQUIRE(ran_all(2 * i));
        }
        CHECK(told.count() == before); // no hint was heard
    }
    sync_wait(d.on, worker.stop());
}

TEST_CASE("postgres: behind a proxy that pools transactions there are no hints, and they are still sent") {
    NEEDS_POSTGRES();
    desk d;
    auto with = d.with;
    with.emplace_back("pooler", "true");
    const auto pooled = test::postgres::open(d.on, with);
    const hints none(*pooled->jobs());
    CHECK_FALSE(none.given());

    const hints told(d.jobs());
    REQUIRE(told.more_than(0));
    const int before = told.count();
    d.await(pooled->jobs()->enqueue({d.job()}));
    CHECK(told.more_than(before));
    CHECK(d.claim(1).size() == 1);
}

TEST_CASE("postgres: a job in a transaction makes a hint when that is committed") {
    NEEDS_POSTGRES();
    desk d;
    const hints told(d.jobs());
    REQUIRE(told.more_than(0));
    const int before = told.count();
    SECTION("a unit of work of the store's") {
        const auto unit = d.await(d.kept->begin());
        d.await(d.jobs().enqueue({d.job()}, unit.get()));
        CHECK(told.count() == before);
        d.await(unit->commit());
    }
    SECTION("a transaction that a unit of work has joined") {
        pqxx::connection theirs(d.server.url());
        pqxx::work transaction(theirs);
        const auto unit = d.await(d.kept->join(native_transaction::of(transaction)));
        d.await(d.jobs().enqueue({d.job()}, unit.get()));
        CHECK(told.count() == before);
        transaction.commit();
    }
    CHECK(told.more_than(before));
    CHECK(d.claim(1).size() == 1);
}

TEST_CASE("postgres: many who enqueue at once send few notifications, and the last job is heard of") {
    NEEDS_POSTGRES();
    desk d;
    const auto there = d.another();
    const hints told(d.jobs());
    REQUIRE(told.more_than(0));
    const int before = told.count();
    for (int i = 0; i < 200; ++i) d.await(there->jobs()->enqueue({d.job()}));
    REQUIRE(told.more_than(before));
    CHECK(told.count() - before < 200);
    d.claim(1000);
    const int quiet = told.count();
    d.await(there->jobs()->enqueue({d.job()}));
    CHECK(told.more_than(quiet));
}

TEST_CASE("postgres: a lone enqueue tells others with its commit, and opens no connection to do so") {
    NEEDS_POSTGRES();
    desk d;
    const auto there = d.another();
    const hints told(d.jobs());
    REQUIRE(told.more_than(0));
    new_job later = d.job();
    later.when = due::after(48h); // nobody is told of it, and the queue is known from now on
    d.await(there->jobs()->enqueue({later}));
    const int before = told.count();
    SECTION("of one job") {
        d.await(there->jobs()->enqueue({d.job()}));
    }
    SECTION("of several") {
        d.await(there->jobs()->enqueue({d.job(), d.job()}));
    }
    CHECK(told.more_than(before));
    const std::string telling = d.sql("SELECT count(*) FROM pg_stat_activity "
                                      "WHERE application_name = 'holdfast' AND query LIKE 'SELECT count(pg_notify%'");
    CHECK(telling == "0");
}

TEST_CASE(
    "postgres: a statement that could not be prepared is prepared the next time, and nobody takes that for a proxy") {
    NEEDS_POSTGRES();
    desk d;
    auto with = d.with;
    with.emplace_back("connections", "1");
    const auto kept = test::postgres::open(d.on, with);
    d.await(d.kept->destroy());
    CHECK(d.refusal(kept->jobs()->counts()).code == errc::configuration);
    d.await(d.kept->prepare());
    CHECK(d.await(kept->jobs()->counts()).empty());
    CHECK(kept->jobs()->watch({"default"}, [] {}) != nullptr); // there is none behind a proxy
}
