// Jobs that are put down for idle workers, over connections, processes and servers that come and go.
#include <atomic>
#include <chrono>
#include <fstream>
#include <mutex>
#include <sstream>
#include <thread>

#include <pqxx/pqxx>

#include "harness/tcp_proxy.hpp"
#include "stores/postgres_support.hpp"

using namespace holdfast;
using namespace std::chrono_literals;
using test::postgres::desk;

namespace {

bool soon(const std::function<bool()>& met) {
    for (const auto end = std::chrono::steady_clock::now() + 20s; !met();) {
        if (std::chrono::steady_clock::now() > end) return false;
        std::this_thread::sleep_for(1ms);
    }
    return true;
}

// It listens, and has said that it waits.
class idle {
public:
    explicit idle(store& at, duration lease = 1min)
        : jobs_(*at.jobs()), lease_(lease), on_(jobs_.attend(
                                                {"default"}, [this] { ++hints_; },
                                                [this](claimed_job job) {
                                                    const std::lock_guard lock(mutex_);
                                                    handed_.push_back(std::move(job));
                                                })) {}
    bool listens(desk& d) {
        if (!soon([&] { return hints_ > 0; })) return false;
        return say(d).empty();
    }
    // Claims; it waits when it has found less than ten.
    std::vector<claimed_job> say(desk& d) {
        return d.await(jobs_.claim({{"default"}, 10, lease_, "idle", on_->address()}));
    }
    std::size_t count() {
        const std::lock_guard lock(mutex_);
        return handed_.size();
    }
    claimed_job take() {
        const std::lock_guard lock(mutex_);
        claimed_job last = std::move(handed_.back());
        handed_.pop_back();
        return last;
    }
    void leave() { on_.reset(); }
    std::string address() const { return on_->address(); }

private:
    job_store& jobs_;
    const duration lease_;
    std::mutex mutex_;
    std::vector<claimed_job> handed_;
    std::atomic<int> hints_ = 0;
    std::unique_ptr<job_watch> on_;
};

std::string table(const desk& d) {
    return d.space + ".idle";
}

// Enqueues, now and then, until one is put down for somebody; the others are got rid of. An enqueue that comes soon after
// another one is told of in another way.
identifier put_down(desk& d, store& from, int max_crashes = 3) {
    for (int i = 0; i < 200; ++i) {
        std::this_thread::sleep_for(20ms);
        new_job job = d.job();
        job.max_crashes = max_crashes;
        d.await(from.jobs()->enqueue({job}));
        if (d.state_of(job.id) == job_state::processing) return job.id;
        d.await(from.jobs()->cancel({job.id}));
    }
    throw std::runtime_error("nothing was put down for anybody");
}

// The settings of a desk, by way of a proxy.
test::text_settings by_way_of(const harness::tcp_proxy& proxy, const desk& d) {
    auto with = d.with;
    const std::string port = ":" + std::to_string(d.server.port());
    for (auto& [key, value] : with)
        if (key == "url") value.replace(value.find(port), port.size(), ":" + std::to_string(proxy.port()));
    return with;
}

// How long until the kernel asks the other end of a silent connection on 127.0.0.1 whether it is there.
std::optional<std::chrono::milliseconds> asks_in(int from_port, int to_port) {
    const auto port = [](const std::string& address) {
        return std::stoi(address.substr(address.find(':') + 1), {}, 16);
    };
    std::ifstream all("/proc/net/tcp");
    std::string line;
    std::getline(all, line);
    while (std::getline(all, line)) {
        std::istringstream words(line);
        std::string number, local, remote, state, queues, timer;
        words >> number >> local >> remote >> state >> queues >> timer;
        const bool keepalive = timer.starts_with("02:");
        if (keepalive && port(local) == from_port && port(remote) == to_port)
            return std::stoi(timer.substr(3), {}, 16) * 10ms;
    }
    return std::nullopt;
}

void go_back_to_version_1(desk& d) {
    d.sql("DROP TABLE " + table(d) + " CASCADE");
    for (const char* each : {"enqueue_and_tell", "collect", "give_back", "leave", "bury", "wait_for_jobs", "pause"})
        d.sql("DROP FUNCTION " + d.space + "." + each);
    d.sql("DELETE FROM " + d.space + ".meta WHERE version > 1; INSERT INTO " + d.space +
          ".meta (version, plugin) SELECT 1, 'older' WHERE NOT EXISTS (SELECT FROM " + d.space + ".meta)");
}

} // namespace

TEST_CASE("postgres: an idle worker is handed what another process enqueues, and one job at a time") {
    NEEDS_POSTGRES();
    desk d;
    const auto other = d.another();
    idle worker(*d.kept);
    REQUIRE(worker.listens(d));
    const identifier first = put_down(d, *other);
    REQUIRE(soon([&] { return worker.count() == 1; }));
    const claimed_job got = worker.take();
    CHECK(got.id == first);
    CHECK(d.settle(got.lease).answer == write_answer::done);

    std::this_thread::sleep_for(20ms);
    const new_job second = d.job();
    d.await(other->jobs()->enqueue({second})); // it has not said again that it waits
    CHECK(d.state_of(second.id) == job_state::pending);
    CHECK(worker.say(d).size() == 1);
    CHECK(worker.count() == 0);
}

TEST_CASE("postgres: of several idle workers none is left out") {
    NEEDS_POSTGRES();
    desk d;
    const auto other = d.another();
    const auto there = d.another();
    idle workers[] = {idle(*d.kept), idle(*there)};
    for (idle& each : workers) REQUIRE(each.listens(d));
    int got[] = {0, 0};
    for (int i = 0; i < 40 && (got[0] == 0 || got[1] == 0); ++i) {
        put_down(d, *other);
        REQUIRE(soon([&] { return workers[0].count() + workers[1].count() == 1; }));
        const std::size_t who = workers[0].count() == 1 ? 0 : 1;
        ++got[who];
        d.settle(workers[who].take().lease);
        CHECK(workers[who].say(d).empty());
    }
    CHECK(got[0] > 0);
    CHECK(got[1] > 0);
}

TEST_CASE("postgres: in a transaction, with a key or for later a job is handed to nobody") {
    NEEDS_POSTGRES();
    desk d;
    const auto other = d.another();
    idle worker(*d.kept);
    REQUIRE(worker.listens(d));
    d.await(other->jobs()->cancel({put_down(d, *other)}));
    REQUIRE(soon([&] { return worker.count() == 1; }));
    CHECK(worker.say(d).empty());
    std::this_thread::sleep_for(100ms);
    new_job job = d.job();
    SECTION("in a unit of work") {
        const auto unit = d.await(other->begin());
        d.await(other->jobs()->enqueue({job}, unit.get()));
        d.await(unit->commit());
    }
    SECTION("with a key") {
        job.unique_key = "one";
        d.await(other->jobs()->enqueue({job}));
    }
    SECTION("later") {
        job.when = due::after(1h);
        d.await(other->jobs()->enqueue({job}));
        CHECK(d.state_of(job.id) == job_state::scheduled);
        return;
    }
    CHECK(d.state_of(job.id) == job_state::pending);
    CHECK(worker.say(d).size() == 1);
}

TEST_CASE("postgres: a worker whose connection has ended is handed nothing, and others are") {
    NEEDS_POSTGRES();
    desk d;
    harness::tcp_proxy proxy(d.server.port());
    const auto behind = test::postgres::open(d.on, by_way_of(proxy, d));
    idle gone(*behind);
    REQUIRE(gone.listens(d));
    proxy.refuse(true);
    proxy.cut();
    REQUIRE(soon([&] { return d.sql("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") == "0"; }));
    const auto other = d.another();
    for (int i = 0; i < 10; ++i) {
        std::this_thread::sleep_for(20ms);
        const identifier id = d.add();
        CHECK(d.claim_one().id == id);
    }
    idle here(*d.kept);
    REQUIRE(here.listens(d));
    const identifier id = put_down(d, *other);
    REQUIRE(soon([&] { return here.count() == 1; }));
    CHECK(here.take().id == id);
    CHECK(gone.count() == 0);
    proxy.refuse(false);
}

TEST_CASE("postgres: whose host vanishes is not taken for one that listens for long") {
    NEEDS_POSTGRES();
    desk d(test::postgres::shared_server(), {{"listen_check", "2s"}});
    idle worker(*d.kept);
    REQUIRE(worker.listens(d));
    // A host that does not answer would take a network of its own; this is what the server does about one.
    const int client = std::stoi(d.sql("SELECT client_port FROM pg_stat_activity WHERE pid IN "
                                       "(SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted)"));
    std::optional<std::chrono::milliseconds> asks;
    REQUIRE(soon([&] { return (asks = asks_in(d.server.port(), client)).has_value(); }));
    CHECK(*asks <= 2s);
}

TEST_CASE("postgres: what a worker did not hear of, its next claim finds, and nobody gets it twice") {
    NEEDS_POSTGRES();
    desk d(test::postgres::shared_server(), {{"listen_check", "10m"}}); // nobody notices
    const auto other = d.another();
    idle worker(*d.kept);
    REQUIRE(worker.listens(d));
    identifier id;
    {
        const test::postgres::deaf_while nobody_hears(d);
        id = put_down(d, *other);
        CHECK(d.claim(10).empty()); // by somebody who has no part in it
        const auto missed = worker.say(d);
        REQUIRE(missed.size() == 1);
        CHECK(missed.front().id == id);
        CHECK(missed.front().attempt == 1);
        CHECK(worker.say(d).empty());
        CHECK(d.settle(missed.front().lease).answer == write_answer::done);
    }
    const identifier next = put_down(d, *other); // it hears again, of the first one too
    REQUIRE(soon([&] { return worker.count() == 1; }));
    CHECK(worker.take().id == next);
    CHECK(worker.say(d).empty());
    CHECK(worker.count() == 0);
}

TEST_CASE("postgres: what was put down while nobody heard is collected as soon as somebody listens again") {
    NEEDS_POSTGRES();
    desk d(test::postgres::shared_server(), {{"listen_check", "10m"}}); // nobody notices
    harness::tcp_proxy proxy(d.server.port());
    const auto behind = test::postgres::open(d.on, by_way_of(proxy, d));
    idle worker(*behind);
    REQUIRE(worker.listens(d));
    proxy.drop_replies(true);
    const identifier id = put_down(d, *d.kept);
    proxy.cut();
    proxy.drop_replies(false);
    REQUIRE(soon([&] { return worker.count() == 1; })); // it claims nothing
    const claimed_job got = worker.take();
    CHECK(got.id == id);
    CHECK(got.attempt == 1);
    CHECK(d.settle(got.lease).answer == write_answer::done);
}

TEST_CASE("postgres: what was put down for a frozen worker is no crash when its lease runs out") {
    NEEDS_POSTGRES();
    desk d(test::postgres::shared_server(), {{"listen_check", "10m"}});
    const auto other = d.another();
    idle worker(*d.kept, 200ms);
    REQUIRE(worker.listens(d));
    const test::postgres::deaf_while nobody_hears(d);
    const identifier id = put_down(d, *other, 0);
    int recovered = 0;
    REQUIRE(soon([&] {
        recovered += d.await(d.jobs().recover_stale(10)).total();
        return d.state_of(id) != job_state::processing;
    }));
    CHECK(recovered == 0);
    const job_view back = d.view(id);
    CHECK(back.state == job_state::pending);
    CHECK(back.attempts == 0);
    CHECK(back.crash_count == 0);
    CHECK(worker.say(d).size() == 1); // from the queue, like anybody
}

TEST_CASE("postgres: what was put down for a process that died is found by whoever claims next, unburnt") {
    NEEDS_POSTGRES();
    desk d(test::postgres::shared_server(), {{"listen_check", "10m"}});
    const auto other = d.another();
    idle worker(*d.kept);
    REQUIRE(worker.listens(d));
    identifier id;
    {
        const test::postgres::deaf_while nobody_hears(d);
        id = put_down(d, *other);
        d.sql("UPDATE " + table(d) + " SET listener = 12345"); // as if it had died: nobody holds that lock
        claimed_job got{.lease = job_lease("", 0), .id = {}, .what = {}, .queue = {}, .extra = {}};
        SECTION("a worker") {
            const auto another = d.another();
            auto look = [&] { return d.await(another->jobs()->claim({{"default"}, 10, 1min, "other", "nowhere 1"})); };
            auto found = look(); // it finds nothing, and sees what is wrong
            if (found.empty()) found = look();
            REQUIRE(found.size() == 1);
            got = std::move(found.front());
        }
        SECTION("the sweep") {
            CHECK(d.await(d.jobs().recover_stale(10)).total() == 0);
            CHECK(d.sql("SELECT count(*) FROM " + table(d)) == "0");
            got = d.claim_one();
        }
        CHECK(got.id == id);
        CHECK(got.attempt == 1);
        CHECK(got.crash_count == 0);
    }
}

TEST_CASE("postgres: pausing a queue takes back what nobody has collected") {
    NEEDS_POSTGRES();
    desk d(test::postgres::shared_server(), {{"listen_check", "10m"}});
    const auto other = d.another();
    idle worker(*d.kept);
    REQUIRE(worker.listens(d));
    const test::postgres::deaf_while nobody_hears(d);
    const identifier id = put_down(d, *other);
    d.await(d.jobs().pause("default"));
    CHECK(d.state_of(id) == job_state::pending);
    CHECK(d.view(id).attempts == 0);
    CHECK(worker.say(d).empty());
    std::this_thread::sleep_for(20ms);
    const new_job during = d.job();
    d.await(other->jobs()->enqueue({during}));
    CHECK(d.state_of(during.id) == job_state::pending);
    d.await(d.jobs().resume("default"));
    CHECK(worker.say(d).size() == 2);
}

TEST_CASE("postgres: a worker that is busy in one queue is still idle in another") {
    NEEDS_POSTGRES();
    desk d;
    idle worker(*d.kept);
    REQUIRE(worker.listens(d));
    const std::string row = "SELECT string_agg(queue || ' ' || free, ', ' ORDER BY queue) FROM " + table(d);
    CHECK(d.await(d.jobs().claim({{"other"}, 1, 1min, "idle", worker.address()})).empty());
    CHECK(d.sql(row) == "default true, other true");
    new_job job = d.job();
    job.queue = "other";
    job.unique_key = "to be claimed";
    d.await(d.jobs().enqueue({job}));
    CHECK(d.await(d.jobs().claim({{"other"}, 1, 1min, "idle", worker.address()})).size() == 1);
    CHECK(d.sql(row) == "default true, other false");
}

TEST_CASE("postgres: whoever locks several rows of an idle worker does so in one order") {
    NEEDS_POSTGRES();
    desk d;
    idle worker(*d.kept);
    REQUIRE(worker.listens(d));
    d.sql("INSERT INTO " + table(d) + " SELECT 'a', address, false, listener, lease, NULL, NULL, worker FROM " +
          table(d));
    std::string call = "SELECT " + d.space;
    SECTION("the worker leaves") {
        call += ".leave('" + worker.address() + "')";
    }
    SECTION("the worker is buried") {
        d.sql("UPDATE " + table(d) + " SET listener = 12345");
        call += ".bury(NULL)";
    }
    pqxx::connection first(d.server.url());
    pqxx::connection second(d.server.url());
    pqxx::work holding(first);
    holding.exec("SELECT FROM " + table(d) + " WHERE queue = 'a' FOR UPDATE");
    const std::jthread removing([&] { pqxx::nontransaction(second).exec(call); });
    const bool waits = soon([&] {
        return d.sql("SELECT count(*) FROM pg_locks WHERE NOT granted AND pid = " +
                     std::to_string(second.backendpid())) == "1";
    });
    CHECK(waits);
    CHECK(d.sql("SELECT queue FROM " + table(d) + " WHERE queue = 'default' FOR UPDATE SKIP LOCKED") == "default");
    holding.abort();
}

TEST_CASE("postgres: a worker that goes on waiting writes nothing") {
    NEEDS_POSTGRES();
    desk d;
    idle worker(*d.kept);
    REQUIRE(worker.listens(d));
    const std::string row = "SELECT xmin, ctid FROM " + table(d);
    const std::string before = d.sql(row);
    for (int i = 0; i < 5; ++i) CHECK(worker.say(d).empty());
    CHECK(d.sql(row) == before);
}

TEST_CASE("postgres: a store that closes gives back what is on its way to it") {
    NEEDS_POSTGRES();
    desk d;
    std::atomic<bool> stop = false;
    std::atomic<int> added = 0;
    std::thread adds([&] {
        for (; !stop; ++added) {
            d.add();
            std::this_thread::sleep_for(2ms);
        }
    });
    std::size_t taken = 0;
    std::size_t handed = 0;
    for (int round = 0; round < 20; ++round) {
        const auto here = d.another();
        idle worker(*here);
        for (int i = 0; i < 20; ++i) {
            taken += worker.say(d).size();
            std::this_thread::sleep_for(1ms);
        }
        worker.leave(); // what is put down for it from here on, the store gives back
        handed += worker.count();
    }
    stop = true;
    adds.join();
    const std::size_t left = d.claim(1'000'000).size();
    INFO(added << " added, " << taken << " claimed, " << handed << " handed over, " << left << " left");
    CHECK(handed > 0);
    CHECK(taken + handed + left == static_cast<std::size_t>(added));
    CHECK(d.sql("SELECT count(*) FROM " + table(d)) == "0");
}

TEST_CASE("postgres: what was handed over is kept when the server crashes, and comes back after its lease") {
    NEEDS_POSTGRES();
    harness::postgres_server server;
    desk d(server);
    const auto other = d.another();
    idle worker(*d.kept, 300ms);
    REQUIRE(worker.listens(d));
    const identifier id = put_down(d, *other);
    REQUIRE(soon([&] { return worker.count() == 1; }));
    server.kill();
    server.start();
    const claimed_job lost = worker.take();
    REQUIRE(soon([&] {
        const auto seen = d.attempt(d.jobs().get(id));
        return seen && std::holds_alternative<job_view>(*seen);
    }));
    CHECK(d.view(id).attempts == 1);
    CHECK(d.sql("SELECT count(*) FROM " + table(d)) == "0");
    REQUIRE(soon([&] { return d.await(d.jobs().recover_stale(10)).requeued == 1; }));
    const claimed_job again = d.claim_one();
    CHECK(again.id == id);
    CHECK(again.lease.token() > lost.lease.token());
    CHECK(d.settle(lost.lease).answer == write_answer::stale);
}

TEST_CASE("postgres: a schema of the first version is brought up to date, with what is in it") {
    NEEDS_POSTGRES();
    desk d;
    const identifier id = d.add();
    go_back_to_version_1(d);
    const auto newer = d.another(); // prepares
    CHECK(d.sql("SELECT max(version) FROM " + d.space + ".meta") == "2");
    CHECK(d.claim_one().id == id);
    idle worker(*newer);
    REQUIRE(worker.listens(d));
    const identifier next = put_down(d, *d.kept);
    REQUIRE(soon([&] { return worker.count() == 1; }));
    CHECK(worker.take().id == next);
}

TEST_CASE("postgres: who was granted the tables of the first version can work with those of this one") {
    NEEDS_POSTGRES();
    desk d;
    go_back_to_version_1(d);
    const std::string role = d.space + "_app";
    d.sql("CREATE ROLE " + role + " LOGIN PASSWORD 'app'; GRANT USAGE ON SCHEMA " + d.space + " TO " + role +
          "; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA " + d.space + " TO " + role +
          "; GRANT USAGE ON ALL SEQUENCES IN SCHEMA " + d.space + " TO " + role);
    const auto owner = d.another(); // prepares
    {
        auto with = d.with;
        for (auto& [key, value] : with)
            if (key == "url") value.replace(0, value.find('@'), "postgresql://" + role + ":app");
        const auto here = test::postgres::open(d.on, with);
        const auto there = test::postgres::open(d.on, with);
        d.await(here->prepare());
        idle worker(*here);
        REQUIRE(worker.listens(d));
        const identifier id = put_down(d, *there);
        REQUIRE(soon([&] { return worker.count() == 1; }));
        CHECK(worker.take().id == id);
        d.await(there->jobs()->pause("default"));
        d.await(there->jobs()->recover_stale(10));
    }
    d.sql("DROP OWNED BY " + role + "; DROP ROLE " + role);
}
