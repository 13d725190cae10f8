// What a Redis server and the way to it can do to a store.
#include <algorithm>
#include <chrono>
#include <thread>

#include <holdfast/redis/scripted_server.hpp>

#include "stores/redis_support.hpp"

using namespace holdfast;
using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;
using test::redis::desk;

namespace {

std::string through(const harness::tcp_proxy& proxy) {
    return "redis://127.0.0.1:" + std::to_string(proxy.port());
}

// What there are tokens of, each taken now; what is not there yet is made first.
struct tokens_of {
    tokens_of(desk& d, const new_job& one, const outgoing_message& sent)
        : job(claim(d, one)), message(lease(d, sent)), key(begin(d)), lock(acquire(d)) {}

    bool all_larger_than(const tokens_of& other) const {
        return job.token() > other.job.token() && message.token() > other.message.token() &&
               key.token() > other.key.token() && lock.token() > other.lock.token();
    }

    job_lease job;
    message_lease message;
    idempotency_lease key;
    lock_lease lock;

private:
    static constexpr duration short_lease = 1ms;

    static void pass() { std::this_thread::sleep_for(2ms); }
    static job_lease claim(desk& d, const new_job& one) {
        d.await(d.jobs().enqueue({one}));
        for (;;) {
            auto got = d.claim(1, short_lease);
            if (got.size() != 1) throw std::runtime_error("expected a job to claim");
            if (got[0].id == one.id) return std::move(got[0].lease);
        }
    }
    static message_lease lease(desk& d, const outgoing_message& sent) {
        d.await(d.kept->outbox()->append({sent}));
        pass();
        auto got = d.await(d.kept->outbox()->lease_batch(1, short_lease, "r"));
        return std::move(got.at(0).lease);
    }
    static idempotency_lease begin(desk& d) {
        pass();
        auto began = d.await(d.kept->idempotency()->begin({"k", "f", short_lease, 1h}));
        return std::move(std::get<idempotency_started>(began).lease);
    }
    static lock_lease acquire(desk& d) {
        pass();
        return d.await(d.kept->locks()->try_acquire("r", short_lease)).value();
    }
};

} // namespace

TEST_CASE("redis: a server that has forgotten the scripts is given them again") {
    NEEDS_REDIS();
    harness::redis_server server;
    desk d(server.url());
    const identifier id = d.add();
    CHECK(server.tell("SCRIPT FLUSH") == "+OK");
    const claimed_job mine = d.claim_one();
    CHECK(mine.id == id);
    CHECK(d.await(d.kept->locks()->try_acquire("r")).has_value());
}

TEST_CASE("redis: erased data are noticed by every call, and tokens still grow after a new start") {
    NEEDS_REDIS();
    harness::redis_server server;
    desk d(server.url());
    d.add();
    const claimed_job mine = d.claim_one();
    const std::uint64_t before = d.await(d.kept->locks()->try_acquire("r"))->token();
    CHECK(server.tell("FLUSHALL") == "+OK");
    const settlement done[] = {d.success(mine)};
    for (const error& each : {d.refusal(d.jobs().settle(done)), d.refusal(d.jobs().enqueue({d.job()})),
                              d.refusal(d.kept->locks()->try_acquire("r")), d.refusal(d.kept->outbox()->unsent()),
                              d.refusal(d.kept->idempotency()->try_claim("k"))}) {
        CHECK(each.code == errc::configuration);
        CHECK_THAT(each.message, ContainsSubstring("erased"));
    }
    d.await(d.kept->prepare());
    CHECK(d.await(d.kept->locks()->try_acquire("r"))->token() > before);
}

TEST_CASE("redis: no token of a job, a key or a message comes back after the data were erased") {
    NEEDS_REDIS();
    harness::redis_server server;
    desk d(server.url());
    const new_job job = d.job();
    const outgoing_message message{d.ids.next(), "topic", "k", {}, {}};
    const tokens_of before(d, job, message);
    CHECK(server.tell("FLUSHALL") == "+OK");
    d.await(d.kept->prepare());
    const tokens_of after(d, job, message); // the same names
    CHECK(after.all_larger_than(before));
    // The old holders have nothing to say.
    CHECK(d.settle(before.job).answer == write_answer::stale);
    const message_lease* const sent[] = {&before.message};
    CHECK(d.await(d.kept->outbox()->delivered(sent)).at(0) == write_answer::stale);
    CHECK(d.refusal(d.kept->idempotency()->complete(before.key, {})).code == errc::stale_lease);
    CHECK(d.refusal(d.kept->locks()->renew(before.lock, 1min)).code == errc::stale_lease);
}

TEST_CASE("redis: tokens grow past what a server lost that was killed before it had written") {
    NEEDS_REDIS();
    harness::redis_server server; // everysec
    desk d(server.url());
    const new_job job = d.job();
    const outgoing_message message{d.ids.next(), "topic", "k", {}, {}};
    d.add();
    const auto kept = server.written();
    const tokens_of before(d, job, message);
    server.kill();
    const auto written = server.written();
    REQUIRE(written > kept);
    SECTION("all of it") {
        server.lose_tail(written - kept);
    }
    SECTION("the end, with half of a command") {
        server.lose_tail((written - kept) / 2 + 1);
    }
    server.start();
    // What is lost is made again, as clients do; what is not has leases that end.
    d.await(d.jobs().recover_stale(10));
    const tokens_of after(d, job, message);
    CHECK(after.all_larger_than(before));
}

TEST_CASE("redis: a server that may evict keys is refused, whether its memory has a limit yet or not") {
    NEEDS_REDIS();
    std::vector<std::string> arguments = {"--maxmemory-policy", "allkeys-lru"};
    SECTION("with a limit") {
        arguments.insert(arguments.end(), {"--maxmemory", "50mb"});
    }
    SECTION("without") {}
    SECTION("and says so by INFO alone") {
        arguments.insert(arguments.end(), {"--rename-command", "CONFIG", "SETTINGS"});
    }
    harness::redis_server server({.arguments = arguments});
    asio_runtime on{asio_options{}};
    const auto store = test::redis::open(on, {{"url", server.url()}});
    const auto answer = sync_wait(on, store->prepare());
    REQUIRE(!answer);
    CHECK(answer.error().code == errc::configuration);
    CHECK_THAT(answer.error().message, ContainsSubstring("allkeys-lru"));
    const bool renamed = server.tell("CONFIG SET maxmemory-policy noeviction") != "+OK";
    if (renamed) CHECK(server.tell("SETTINGS SET maxmemory-policy noeviction") == "+OK");
    CHECK(sync_wait(on, store->prepare()).has_value());
}

TEST_CASE("redis: a server whose memory is full refuses writes for a while, and loses nothing") {
    NEEDS_REDIS();
    harness::redis_server server({.arguments = {"--maxmemory", "100mb", "--maxmemory-policy", "noeviction"}});
    desk d(server.url());
    std::vector<identifier> acknowledged;
    for (int i = 0; i < 5; ++i) acknowledged.push_back(d.add(std::string(1u << 20, 'x')));
    CHECK(server.tell("CONFIG SET maxmemory 2mb") == "+OK"); // it has more by now
    const error full = d.refusal(d.jobs().enqueue({d.job()}));
    CHECK(full.code == errc::unavailable);
    CHECK_THAT(full.message, ContainsSubstring("OOM"));
    for (const error& each :
         {d.refusal(d.kept->locks()->try_acquire("r")), d.refusal(d.kept->idempotency()->try_claim("k")),
          d.refusal(d.kept->outbox()->append({{d.ids.next(), "t", "k", {}, {}}}))})
        CHECK(each.code == errc::unavailable);
    for (const identifier& each : acknowledged) CHECK(d.state_of(each) == job_state::pending); // reading goes on
    // What is there may be worked off, as far as that takes no memory.
    const auto early = d.attempt(d.jobs().claim({{"default"}, 1, 1min, "w"}));
    if (!early) CHECK(early.error().code == errc::unavailable);

    CHECK(server.tell("CONFIG SET maxmemory 100mb") == "+OK");
    CHECK(d.claim(200).size() + (early ? early->size() : 0) == acknowledged.size());
    d.add();
    CHECK(d.await(d.kept->locks()->try_acquire("r")).has_value());
}

TEST_CASE("redis: a schema newer than the plugin is refused with both versions") {
    NEEDS_REDIS();
    harness::redis_server server;
    CHECK(server.tell("HSET {newer}:meta schema 77") == ":1");
    asio_runtime on{asio_options{}};
    const auto store = test::redis::open(on, {{"url", server.url()}, {"namespace", "newer"}});
    const auto answer = sync_wait(on, store->prepare());
    REQUIRE(!answer);
    CHECK(answer.error().code == errc::configuration);
    CHECK_THAT(answer.error().message, ContainsSubstring("77"));
    CHECK_THAT(answer.error().message, ContainsSubstring("knows 1"));
}

TEST_CASE("redis: says what it can lose, as the server is set up") {
    NEEDS_REDIS();
    harness::redis_server always({.fsync = "always"});
    harness::redis_server everysec;
    harness::redis_server no({.fsync = "no"});
    harness::redis_server snapshots({.append_only = false});
    harness::redis_server silent({.arguments = {"--rename-command", "CONFIG", ""}});
    CHECK(desk(always.url()).kept->capabilities().writes_survive == survives::power_loss);
    CHECK(desk(everysec.url()).kept->capabilities().writes_survive == survives::process_crash);
    CHECK(desk(no.url()).kept->capabilities().writes_survive == survives::server_crash);
    CHECK(desk(snapshots.url()).kept->capabilities().writes_survive == survives::process_crash);
    CHECK_THAT(desk(silent.url()).kept->capabilities().loses,
               ContainsSubstring("unknown") && !ContainsSubstring("evicts"));
    harness::redis_server mute({.arguments = {"--rename-command", "CONFIG", "", "--rename-command", "INFO", ""}});
    CHECK_THAT(desk(mute.url()).kept->capabilities().loses, ContainsSubstring("whether it evicts"));
}

TEST_CASE("redis: what was acknowledged is there after a kill -9 of the server") {
    NEEDS_REDIS();
    harness::redis_server server({.fsync = "always"});
    desk d(server.url());
    CHECK(d.kept->capabilities().writes_survive == survives::power_loss);
    const identifier claimed = d.add();
    const claimed_job mine = d.claim_one();
    std::vector<identifier> added;
    for (int i = 0; i < 50; ++i) added.push_back(d.add());
    server.kill();
    CHECK(d.refusal(d.jobs().enqueue({d.job()})).code == errc::unavailable);
    CHECK(d.refusal(d.kept->now()).code == errc::unavailable);
    server.start();
    for (const identifier& each : added) CHECK(d.state_of(each) == job_state::pending);
    const settlement done[] = {d.success(mine)};
    CHECK(d.await(d.jobs().settle(done)).at(0).answer == write_answer::done);
    CHECK(d.state_of(claimed) == job_state::succeeded);
}

TEST_CASE("redis: an enqueue whose answer was cut off is unknown, and repeating it is safe") {
    NEEDS_REDIS();
    harness::redis_server server;
    harness::tcp_proxy proxy(server.port());
    desk d(through(proxy));
    const new_job j = d.job();
    for (const std::size_t bytes : {0u, 3u}) {
        proxy.truncate_next_reply(bytes);
        CHECK(d.refusal(d.jobs().enqueue({j})).code == errc::unknown_outcome);
    }
    CHECK(proxy.truncated() == 2);
    CHECK(d.state_of(j.id) == job_state::pending);
    const enqueued again = d.await(d.jobs().enqueue({j})).at(0);
    CHECK(again.id == j.id);
    CHECK(!again.created);
    const auto claimed = d.await(d.jobs().claim({{"default"}, 10, 1min, "w"}));
    CHECK(claimed.size() == 1);
}

TEST_CASE("redis: a settlement whose answer was cut off is resolved by reading back") {
    NEEDS_REDIS();
    harness::redis_server server;
    harness::tcp_proxy proxy(server.port());
    desk d(through(proxy));
    const identifier id = d.add();
    const claimed_job mine = d.claim_one();
    const settlement done[] = {d.success(mine)};
    proxy.truncate_next_reply(0);
    CHECK(d.refusal(d.jobs().settle(done)).code == errc::unknown_outcome);
    CHECK(d.await(d.jobs().settle(done)).at(0).answer == write_answer::stale); // the first one counted
    const auto view = std::get<job_view>(d.await(d.jobs().get(id)));
    CHECK(view.state == job_state::succeeded);
    CHECK(view.history.size() == 1);
    CHECK(view.history.at(0).token == mine.lease.token());
}

TEST_CASE("redis: a read whose answer was cut off is made again") {
    NEEDS_REDIS();
    harness::redis_server server;
    harness::tcp_proxy proxy(server.port());
    desk d(through(proxy));
    const identifier id = d.add();
    proxy.truncate_next_reply(5);
    CHECK(d.state_of(id) == job_state::pending);
    CHECK(proxy.truncated() == 1);
}

TEST_CASE("redis: connections that were cut while idle hurt nobody") {
    NEEDS_REDIS();
    harness::redis_server server;
    harness::tcp_proxy proxy(server.port());
    desk d(through(proxy));
    const identifier id = d.add();
    proxy.cut();
    for (int i = 0; i < 100 && proxy.connections() > 0; ++i) std::this_thread::sleep_for(1ms);
    std::this_thread::sleep_for(5ms); // until the end has come through
    const identifier other = d.add();
    CHECK(d.state_of(id) == job_state::pending);
    CHECK(d.state_of(other) == job_state::pending);
}

TEST_CASE(
    "redis: a server that does not answer in time leaves the outcome unknown, one that cannot be reached does not") {
    NEEDS_REDIS();
    harness::redis_server server;
    harness::tcp_proxy proxy(server.port());
    desk d(through(proxy), {});
    const new_job j = d.job();
    proxy.drop_replies(true);
    CHECK(d.refusal(d.jobs().enqueue({j})).code == errc::unknown_outcome);
    proxy.drop_replies(false);
    CHECK(d.state_of(j.id) == job_state::pending);
    proxy.delay(20ms);
    CHECK(d.claim_one().id == j.id);
    server.kill();
    CHECK(d.refusal(d.jobs().enqueue({d.job()})).code != errc::internal);
}

TEST_CASE("redis: settings that are wrong are refused, without the password") {
    NEEDS_REDIS();
    asio_runtime on{asio_options{}};
    for (const char* url : {"http://x", "redis://", "redis://h:0", "redis://h:99999", "redis://h/x"})
        CHECK_THROWS_WITH(test::redis::open(on, {{"url", url}}), ContainsSubstring("url"));
    CHECK_THROWS_WITH(test::redis::open(on, {{"url", "redis://h"}, {"namespace", "a{b"}}),
                      ContainsSubstring("namespace"));
    CHECK_THROWS_WITH(test::redis::open(on, {}), ContainsSubstring("url"));
    harness::redis_server server({.arguments = {"--requirepass", "s3cret-right"}});
    const auto at = [&](const std::string& login) {
        return "redis://" + login + "127.0.0.1:" + std::to_string(server.port());
    };
    const auto wrong = test::redis::open(on, {{"url", at(":s3cret-wrong@")}});
    const auto answer = sync_wait(on, wrong->prepare());
    REQUIRE(!answer);
    CHECK(answer.error().code == errc::configuration);
    CHECK(answer.error().message.find("s3cret") == std::string::npos);
    const auto right = test::redis::open(on, {{"url", at(":s3cret%2Dright@")}});
    CHECK(sync_wait(on, right->prepare()).has_value());
    const auto nobody = test::redis::open(on, {{"url", at("")}});
    CHECK(!sync_wait(on, nobody->prepare()));
}

TEST_CASE("redis: what a script was refused for passes, however the server says it") {
    const redis::address where;
    for (const char* said :
         {"OOM command not allowed when used memory > 'maxmemory'. script: f_1, on @user_script:1.",
          "ERR Error running script (call to f_1): @user_script:7: @user_script: 7: -OOM command not "
          "allowed when used memory > 'maxmemory'."})
        CHECK(redis::to_error(said, where, 1).code == errc::unavailable);
    CHECK(redis::to_error("ERR Error running script (call to f_1): @user_script:7: attempt to index nil", where, 1)
              .code == errc::internal);
}
