// A real PgBouncer that pools transactions: noticed without being told, and worked with by polling.
#include <atomic>
#include <thread>

#include <pqxx/pqxx>

#include <holdfast/host.hpp>

#include "harness/pgbouncer.hpp"
#include "stores/postgres_support.hpp"

using namespace holdfast;
using namespace std::chrono_literals;
using harness::pgbouncer;
using test::postgres::desk;

#define NEEDS_PGBOUNCER()                                                                                              \
    NEEDS_POSTGRES();                                                                                                  \
    if (!harness::pgbouncer_binary()) SKIP("PgBouncer is not installed")

namespace {

struct ping {
    static constexpr job_options options{.name = "ping"};
};

// The same store, reached through the proxy.
std::unique_ptr<store> open_through(const pgbouncer& proxy, desk& d) {
    auto with = d.with;
    for (auto& [key, value] : with)
        if (key == "url") value = proxy.url();
    auto made = test::postgres::open(d.on, with);
    d.await(made->prepare());
    return made;
}

} // namespace

template <>
struct holdfast::codec<ping> {
    static constexpr std::string_view content_type = "text/plain";
    static std::string encode(const ping&) { return {}; }
    static result<ping> decode(std::string_view) { return ping{}; }
};

TEST_CASE("postgres: a PgBouncer that pools transactions is noticed: no hints, and nothing set in shared sessions") {
    NEEDS_PGBOUNCER();
    for (const bool round_robin : {false, true}) {
        desk d;
        const pgbouncer proxy(d.server, {.round_robin = round_robin});
        const auto pooled = open_through(proxy, d);
        std::atomic<int> hints = 0;
        CHECK(pooled->jobs()->watch({"default"}, [&] { ++hints; }) == nullptr);

        const auto watch = d.jobs().watch({"default"}, [&] { ++hints; }); // on a session of its own
        while (hints == 0) std::this_thread::sleep_for(1ms);
        const int before = hints;
        for (int i = 0; i < 20; ++i) d.await(pooled->jobs()->enqueue({d.job()}));
        while (hints == before) std::this_thread::sleep_for(1ms); // hints for others pass the proxy
        CHECK(d.await(pooled->jobs()->claim({{"default"}, 100, 1min, "w"})).size() == 20);

        pqxx::connection raw(proxy.url());
        for (int i = 0; i < 6; ++i) {
            pqxx::nontransaction asking(raw);
            const auto found = asking.exec(
                "SELECT current_setting('statement_timeout'), current_setting('client_min_messages'), "
                "(SELECT count(*) FROM pg_prepared_statements), (SELECT count(*) FROM pg_listening_channels())");
            CHECK(std::string(found[0][0].c_str()) == "0");
            CHECK(std::string(found[0][1].c_str()) == "notice");
            CHECK(std::string(found[0][2].c_str()) == "0");
            CHECK(std::string(found[0][3].c_str()) == "0");
        }
    }
}

TEST_CASE("postgres: behind a PgBouncer that pools transactions a worker polls, and drains") {
    NEEDS_PGBOUNCER();
    const pgbouncer proxy(test::postgres::shared_server(), {.round_robin = true});
    auto host =
        host::from_text("[plugins]\npath = ['" HOLDFAST_BUILD_PLUGIN_DIR "']\n[store]\nplugin = 'postgres'\nurl = '" +
                        proxy.url() + "'\nnamespace = '" + test::fresh_namespace() + "'\n[jobs]\npoll = '20ms'\n");
    std::atomic<int> ran = 0;
    host.add<ping>([&](ping) -> task<void> {
        ++ran;
        co_return;
    });
    host.log_to(std::make_shared<null_logger>()).start();
    for (int round = 1; round <= 3; ++round) {
        const auto made = sync_wait(host.runtime(), host.jobs().enqueue_all(std::vector<ping>(50)));
        REQUIRE(made.has_value());
        const auto give_up = std::chrono::steady_clock::now() + 30s;
        while (ran < 50 * round && std::chrono::steady_clock::now() < give_up) std::this_thread::sleep_for(1ms);
        REQUIRE(ran == 50 * round);
    }
    while (host.worker().succeeded < 150) std::this_thread::sleep_for(1ms);
    const auto removed = sync_wait(host.runtime(), host.store().destroy());
    CHECK(removed.has_value());
}
