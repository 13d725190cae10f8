// Redis behind TLS, and builds that have none.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include <holdfast/redis/client.hpp>

#include "stores/host_support.hpp"
#include "stores/redis_support.hpp"

// Ends the case where it cannot run.
#define NEEDS_TLS()                                                                                                    \
    NEEDS_REDIS();                                                                                                     \
    if (!redis::client_has_tls()) SKIP("the plugin was built with " << redis::client_name() << ", which has no TLS");  \
    if (!harness::openssl_binary()) SKIP("openssl is not installed, so there are no certificates")

using namespace holdfast;
using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;
using test::text_settings;
using test::redis::desk;

namespace {

// What a client must show and know.
text_settings files_of(const harness::redis_server& server) {
    return {{"tls_ca", server.tls_file("ca.crt")},
            {"tls_certificate", server.tls_file("client.crt")},
            {"tls_key", server.tls_file("client.key")}};
}

// Why a store does not get ready.
error refusal(std::string url, text_settings with) {
    asio_runtime on{asio_options{}};
    with.emplace_back("url", std::move(url));
    with.emplace_back("timeout", "2s");
    const auto store = test::redis::open(on, with);
    const auto answer = sync_wait(on, store->prepare());
    if (answer) throw std::runtime_error("expected a refusal");
    return answer.error();
}

struct watched {
    explicit watched(desk& at) : on(at.jobs().watch({"default"}, [this] { ++count; })) {}
    bool hears(int before) const {
        for (int i = 0; i < 20'000 && count <= before; ++i) std::this_thread::sleep_for(1ms);
        return count > before;
    }
    std::atomic<int> count = 0;
    std::unique_ptr<job_watch> on;
};

} // namespace

TEST_CASE("redis: a build without TLS refuses a url that asks for it, and says what to do") {
    if (redis::client_has_tls()) SKIP("the plugin was built with " << redis::client_name());
    CHECK_THAT(test::start_refusal("[store]\nplugin = 'redis'\nurl = 'rediss://127.0.0.1'\n"),
               ContainsSubstring("url: TLS is asked for (rediss://), but this plugin was built with ") &&
                   ContainsSubstring("; use redis://, or a plugin built with redis-plus-plus and TLS"));
}

TEST_CASE("redis: jobs and hints go through TLS, and nothing beside it") {
    NEEDS_TLS();
    const harness::redis_server server({.tls = true});
    desk d(server.tls_url(), files_of(server));
    desk other(server.tls_url(), files_of(server), d.space());
    watched w(d);
    REQUIRE(w.hears(0));
    const int before = w.count;
    const identifier id = other.add(std::string(1'000'000, 'x'));
    CHECK(w.hears(before));
    const claimed_job got = d.claim_one();
    CHECK(got.what.body.size() == 1'000'000);
    CHECK(d.settle(got.lease).answer == write_answer::done);
    CHECK(other.state_of(id) == job_state::succeeded);

    const std::string port = std::to_string(server.tls_port());
    const auto clients = server.lines("CLIENT LIST");
    const auto with_tls = std::ranges::count_if(
        clients, [&](const std::string& each) { return each.find(" laddr=127.0.0.1:" + port + " ") != each.npos; });
    CHECK(with_tls >= 3);
    CHECK(static_cast<std::size_t>(with_tls) + 1 == clients.size()); // the one that asks
}

TEST_CASE("redis: a server that was killed and comes back is found again through TLS") {
    NEEDS_TLS();
    harness::redis_server server({.fsync = "always", .tls = true});
    desk d(server.tls_url(), files_of(server));
    watched w(d);
    REQUIRE(w.hears(0));
    const identifier id = d.add();
    server.kill();
    CHECK(d.refusal(d.jobs().enqueue({d.job()})).code == errc::unavailable);
    const int before = w.count;
    server.start();
    CHECK(w.hears(before));
    CHECK(d.claim_one().id == id);
}

TEST_CASE("redis: an answer that was lost on its way through TLS is an unknown outcome") {
    NEEDS_TLS();
    const harness::redis_server server({.tls = true});
    harness::tcp_proxy proxy(server.tls_port());
    desk d("rediss://127.0.0.1:" + std::to_string(proxy.port()), files_of(server));
    const new_job j = d.job();
    proxy.truncate_next_reply(3);
    const auto answer = d.attempt(d.jobs().enqueue({j}));
    REQUIRE(proxy.truncated() == 1);
    // The word that was cut may have been the one before: whether the connection lives.
    if (!answer) CHECK(answer.error().code == errc::unknown_outcome);
    const int before = proxy.truncated();
    d.await(d.jobs().enqueue({j}));
    proxy.drop_replies(true);
    CHECK(d.refusal(d.jobs().enqueue({d.job()})).code != errc::internal);
    proxy.drop_replies(false);
    CHECK(d.claim_one().id == j.id);
    CHECK(proxy.truncated() == before);
}

TEST_CASE("redis: hints come through TLS on a slow line too") {
    NEEDS_TLS();
    const harness::redis_server server({.tls = true});
    harness::tcp_proxy proxy(server.tls_port());
    desk near(server.tls_url(), files_of(server));
    desk d("rediss://127.0.0.1:" + std::to_string(proxy.port()), files_of(server), near.space());
    proxy.delay(120ms);
    watched w(d);
    REQUIRE(w.hears(0));
    const int before = w.count;
    near.add();
    CHECK(w.hears(before));
}

TEST_CASE("redis: a server whose certificate nobody vouches for is refused at once") {
    NEEDS_TLS();
    const harness::redis_server server({.tls = true});
    auto with = files_of(server);
    const std::string stranger = server.tls_file("other.crt");
    with.front().second = stranger;
    const error other_ca = refusal(server.tls_url(), with);
    CHECK(other_ca.code == errc::configuration);
    CHECK_THAT(other_ca.message, ContainsSubstring("its certificate is not trusted") &&
                                     ContainsSubstring("what tls_ca names, " + stranger));
    with.erase(with.begin());
    const error no_ca = refusal(server.tls_url(), with);
    CHECK(no_ca.code == errc::configuration);
    CHECK_THAT(no_ca.message, ContainsSubstring("its certificate is not trusted") && ContainsSubstring("tls_ca"));
    CHECK_THAT(test::start_refusal("[store]\nplugin = 'redis'\nurl = '" + server.tls_url() + "'\ntls_ca = '" +
                                   stranger + "'\n"),
               ContainsSubstring("its certificate is not trusted"));
}

TEST_CASE("redis: a server that does not trust us is told from one that is away") {
    NEEDS_TLS();
    const harness::redis_server server({.tls = true});
    const std::string ca = server.tls_file("ca.crt");
    const std::string stranger = server.tls_file("other.crt");
    CHECK_THAT(refusal(server.tls_url(), {{"tls_ca", ca}}).message,
               ContainsSubstring("hung up after the handshake") && ContainsSubstring("tls_certificate, tls_key"));
    CHECK_THAT(refusal(server.tls_url(),
                       {{"tls_ca", ca}, {"tls_certificate", stranger}, {"tls_key", server.tls_file("other.key")}})
                   .message,
               ContainsSubstring("hung up after the handshake") && ContainsSubstring(stranger));
    const error plain = refusal("rediss://127.0.0.1:" + std::to_string(server.port()), files_of(server));
    CHECK(plain.code == errc::unavailable);
    CHECK_THAT(plain.message, ContainsSubstring("is TLS on at that port?"));
}

TEST_CASE("redis: files for TLS that are of no use are refused by name") {
    NEEDS_TLS();
    const harness::redis_server server({.tls = true});
    auto with = files_of(server);
    with.front().second = "/nowhere/ca.crt";
    const error missing = refusal(server.tls_url(), with);
    CHECK(missing.code == errc::configuration);
    CHECK_THAT(missing.message, ContainsSubstring("/nowhere/ca.crt"));
    CHECK_THROWS_WITH(refusal(server.tls_url(), {{"tls_certificate", "x"}}), ContainsSubstring("tls_key"));

    settings from("[store]", "desk.toml:1", "/etc/desk");
    from.set("url", "rediss://h");
    from.set("tls_ca", "ca.pem");
    CHECK(redis::options::from(from, "holdfast").where.servers.front().files.ca == "/etc/desk/ca.pem");
}
