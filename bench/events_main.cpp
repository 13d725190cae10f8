// What an event costs from publishing to its consumer. Prints a table, writes events.json. Fails when a relay gets through
// less than 0.7 of what its store can claim and settle; that is asked of the relay itself, so where the transport costs
// nothing: "memory".
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <holdfast/host.hpp>
#include <holdfast/sync_wait.hpp>
#include <holdfast/when_all.hpp>

#include "harness/postgres_server.hpp"
#include "harness/redis_server.hpp"
#include "harness/temporary_folder.hpp"
#include "options.hpp"

using namespace holdfast;
using namespace std::chrono_literals;
using std::chrono::steady_clock;

namespace {

struct thing_happened {
    static constexpr event_options options{.name = "bench.happened"};
    std::string text;
};

} // namespace

template <>
struct holdfast::codec<thing_happened> {
    static constexpr std::string_view content_type = "text/plain";
    static std::string encode(const thing_happened& e) { return e.text; }
    static result<thing_happened> decode(std::string_view body) { return thing_happened{std::string(body)}; }
};

namespace {

constexpr double least_ratio = 0.7;

struct scale {
    int events = 100'000;
    int bulk = 1000;
    int consumed = 50'000;
    int latencies = 300;
    static scale quick() { return {20'000, 1000, 10'000, 100}; }
};

struct figures {
    std::string store;
    std::string transport;
    double publish_per_s = 0;      // into the outbox, a thousand at a time
    double claim_settle_per_s = 0; // of the outbox alone, called as the relay calls it
    double relay_per_s = 0;        // outbox to transport
    double consume_per_s = 0;      // transport to handler to settled, inbox in the same store
    double latency_p50_ms = 0;     // publish to handler, all idle
    double latency_p99_ms = 0;
    double ratio() const { return claim_settle_per_s > 0 ? relay_per_s / claim_settle_per_s : 0; }
};

double seconds_since(steady_clock::time_point start) {
    return std::chrono::duration<double>(steady_clock::now() - start).count();
}

template <class T>
T get(host& on, task<result<T>> what) {
    auto answer = sync_wait(on.runtime(), std::move(what));
    if (!answer) throw failed(std::move(answer.error()));
    if constexpr (!std::is_void_v<T>) return std::move(*answer);
}

// The sections of a place: what stores, what carries.
struct place {
    std::string store_name;
    std::string store;
    std::string transport_name;
    std::string transport;
};

// `relays`, `consumes`: what this process does beside publishing.
host make_host(const place& at, bool relays, bool consumes) {
    const auto flag = [](bool on) { return std::string(on ? "true" : "false"); };
    return host::from_text("[log]\nlevel = 'warning'\n[store]\n" + at.store + "\n[events]\n" + at.transport +
                           "\n[relay]\nwork = " + flag(relays) + "\n[consumers]\nwork = " + flag(consumes) + "\n");
}

double publish(host& at, int events, int bulk) {
    const auto start = steady_clock::now();
    for (int made = 0; made < events; made += bulk)
        get(at, at.events().publish_all(
                    std::vector<thing_happened>(static_cast<std::size_t>(bulk), {std::string(200, 'x')})));
    return events / seconds_since(start);
}

// One of the relay's lanes, without anywhere to send to.
task<int> claim_and_settle(outbox_store* outbox, int batch, std::string name) {
    int settled = 0;
    for (;;) {
        auto leased = co_await outbox->lease_batch(batch, 30s, name);
        if (!leased) throw failed(std::move(leased.error()));
        if (leased->empty()) co_return settled;
        std::vector<const message_lease*> held;
        for (const leased_message& each : *leased) held.push_back(&each.lease);
        auto marked = co_await outbox->delivered(held);
        if (!marked) throw failed(std::move(marked.error()));
        settled += static_cast<int>(held.size());
    }
}

double claim_settle(host& at) {
    const relay_options how;
    const auto start = steady_clock::now();
    std::vector<task<int>> lanes;
    for (int i = 0; i < how.in_flight; ++i)
        lanes.push_back(claim_and_settle(&at.outbox(), how.batch, "lane " + std::to_string(i)));
    int settled = 0;
    for (const int each : sync_wait(at.runtime(), when_all(std::move(lanes)))) settled += each;
    return settled / seconds_since(start);
}

template <class Count>
void until(const char* what, Count met) {
    for (const auto start = steady_clock::now(); !met(); std::this_thread::sleep_for(2ms))
        if (seconds_since(start) > 120) throw std::runtime_error(std::string("it never ends: ") + what);
}

void relay(const place& at, host& producer, const scale& how, figures& into) {
    publish(producer, how.events, how.bulk);
    const auto relay_start = steady_clock::now();
    auto relaying = make_host(at, true, false);
    relaying.start();
    until("relaying", [&] { return relaying.relay().published >= static_cast<std::uint64_t>(how.events); });
    into.relay_per_s = how.events / seconds_since(relay_start);
    relaying.stop();
}

std::uint64_t handled_by(const host& at) {
    const auto now = at.consumers();
    return now.consumers.empty() ? 0 : now.consumers.front().handled;
}

void consume(const place& at, const scale& how, figures& into) {
    std::atomic<steady_clock::rep> began = 0;
    auto both = make_host(at, true, true);
    both.add_consumer<thing_happened>("bench",
                                      [&](thing_happened) -> task<void> {
                                          began = steady_clock::now().time_since_epoch().count();
                                          began.notify_one();
                                          co_return;
                                      },
                                      {.concurrency = 500});
    both.start();
    until("subscribing", [&] { return !get(both, both.event_transport().subscriptions()).empty(); });
    std::vector<double> ms;
    for (int i = 0; i < how.latencies; ++i) {
        std::this_thread::sleep_for(3ms); // idle again
        began = 0;
        const auto asked = steady_clock::now();
        get(both, both.events().publish(thing_happened{"x"}));
        began.wait(0);
        const steady_clock::time_point start{steady_clock::duration{began.load()}};
        ms.push_back(std::chrono::duration<double, std::milli>(start - asked).count());
    }
    std::ranges::sort(ms);
    into.latency_p50_ms = ms[ms.size() / 2];
    into.latency_p99_ms = ms[ms.size() * 99 / 100];

    until("idling", [&] { return handled_by(both) >= static_cast<std::uint64_t>(how.latencies); });
    std::vector<envelope> batch;
    const std::uint64_t before = handled_by(both);
    const auto start = steady_clock::now();
    identifier_source ids;
    for (int made = 0; made < how.consumed; made += how.bulk) {
        for (int i = 0; i < how.bulk; ++i)
            batch.push_back(
                {ids.next(), "bench.happened", "", {"bench.happened", 1, "text/plain", std::string(200, 'x')}, {}});
        for (auto sent = sync_wait(both.runtime(), both.event_transport().publish(batch)); !sent;
             sent = sync_wait(both.runtime(), both.event_transport().publish(batch)))
            std::this_thread::sleep_for(5ms); // it has enough for the moment
        batch.clear();
    }
    until("consuming", [&] { return handled_by(both) >= before + static_cast<std::uint64_t>(how.consumed); });
    into.consume_per_s = how.consumed / seconds_since(start);
}

figures measure(const place& at, const scale& how) {
    figures f{.store = at.store_name, .transport = at.transport_name};
    std::printf("%s through %s\n", f.store.c_str(), f.transport.c_str());
    std::fflush(stdout);
    auto producer = make_host(at, false, false);
    producer.start();
    f.publish_per_s = publish(producer, how.events, how.bulk);
    f.claim_settle_per_s = claim_settle(producer);
    relay(at, producer, how, f);
    producer.stop();
    consume(at, how, f);
    return f;
}

std::vector<figures> measure_all(const scale& how, std::string_view only) {
    std::vector<figures> all;
    const auto slash = std::min(only.find('/'), only.size());
    const auto of_store = only.substr(0, slash);
    const auto of_transport = only.substr(std::min(slash + 1, only.size()));
    const auto wanted = [&](std::string_view store) { return of_store.empty() || of_store == store; };
    const auto carried = [&](std::string_view transport) { return of_transport.empty() || of_transport == transport; };
    const std::string memory = "plugin = 'memory'\nmax_backlog = 10000000";
    std::optional<harness::postgres_server> postgres;
    std::optional<harness::redis_server> redis;
    if (harness::postgres_binaries() && (wanted("postgres") || wanted("sqlite"))) postgres.emplace();
    if (harness::redis_binary() && (wanted("redis") || wanted("sqlite"))) redis.emplace();
    const auto at_postgres = [&] { return "plugin = 'postgres'\nurl = '" + postgres->socket_url() + "'\n"; };
    const auto at_redis = [&] { return "plugin = 'redis'\nurl = '" + redis->url() + "'\n"; };
    int number = 0;
    const auto fresh = [&] { return "namespace = 'bench_" + std::to_string(++number) + "'\n"; };
    const std::string roomy = "max_backlog = 10000000\n";
    if (wanted("sqlite")) {
        const harness::temporary_folder folder("hfbench");
        const auto file = [&] {
            return "plugin = 'sqlite'\nfile = '" + (folder / ("events" + std::to_string(++number) + ".db")).string() +
                   "'";
        };
        if (carried("memory")) all.push_back(measure({"sqlite", file(), "memory", memory}, how));
        if (redis && carried("redis"))
            all.push_back(measure({"sqlite", file(), "redis", at_redis() + fresh() + roomy}, how));
        if (postgres && carried("postgres"))
            all.push_back(measure({"sqlite", file(), "postgres", at_postgres() + fresh() + roomy}, how));
    }
    if (wanted("postgres") && postgres) {
        if (carried("memory")) all.push_back(measure({"postgres", at_postgres() + fresh(), "memory", memory}, how));
        if (carried("postgres"))
            all.push_back(
                measure({"postgres", at_postgres() + fresh(), "postgres", at_postgres() + fresh() + roomy}, how));
    }
    if (wanted("redis") && redis) {
        if (carried("memory")) all.push_back(measure({"redis", at_redis() + fresh(), "memory", memory}, how));
        if (carried("redis"))
            all.push_back(measure({"redis", at_redis() + fresh(), "redis", at_redis() + fresh() + roomy}, how));
    }
    return all;
}

void print(const std::vector<figures>& all) {
    std::printf("\n%-10s %-10s %12s %14s %12s %6s %12s %9s %9s\n", "store", "transport", "publish", "claim, settle",
                "relay", "ratio", "consume", "p50 ms", "p99 ms");
    for (const figures& f : all)
        std::printf("%-10s %-10s %10.0f/s %12.0f/s %10.0f/s %6.2f %10.0f/s %9.2f %9.2f\n", f.store.c_str(),
                    f.transport.c_str(), f.publish_per_s, f.claim_settle_per_s, f.relay_per_s, f.ratio(),
                    f.consume_per_s, f.latency_p50_ms, f.latency_p99_ms);
}

void write_json(const std::vector<figures>& all, const std::filesystem::path& file) {
    std::ofstream to(file);
    to << "[";
    for (const figures& f : all) {
        to << (&f == all.data() ? "\n" : ",\n") << "  {\"store\": \"" << f.store << "\", \"transport\": \""
           << f.transport << "\", \"publish_per_s\": " << f.publish_per_s
           << ", \"claim_settle_per_s\": " << f.claim_settle_per_s << ", \"relay_per_s\": " << f.relay_per_s
           << ", \"ratio\": " << f.ratio() << ", \"consume_per_s\": " << f.consume_per_s
           << ", \"latency_ms\": {\"p50\": " << f.latency_p50_ms << ", \"p99\": " << f.latency_p99_ms << "}}";
    }
    to << "\n]\n";
    if (!to) throw std::runtime_error("cannot write " + file.string());
    std::printf("\nwritten: %s\n", file.c_str());
}

// Whether every relay that only had to hand over got through enough.
bool good(const std::vector<figures>& all) {
    bool kept = true;
    for (const figures& f : all) {
        if (f.transport != "memory" || f.ratio() >= least_ratio) continue;
        std::printf(
            "NOT KEPT: the relay of %s gets through %.2f of what its store can claim and settle, less than %.1f\n",
            f.store.c_str(), f.ratio(), least_ratio);
        kept = false;
    }
    return kept;
}

} // namespace

int main(int argc, char** argv) {
    std::optional<std::filesystem::path> out;
    std::string_view only;
    scale how;
    const auto ended =
        bench::options(
            "Measures outbox, relay and consumers through the host, on servers of its own. The exit code is 1 when\n"
            "a relay gets through less than it promises of what its store can claim and settle.")
            .add("--out", "FOLDER", "write FOLDER/events.json", [&](auto folder) { out = folder; })
            .add("--only", "STORE[/TRANSPORT]", "one outbox, or one pair", [&](auto pair) { only = pair; })
            .add("--quick", "", "fewer events", [&](auto) { how = scale::quick(); })
            .read(argc, argv);
    if (ended) return *ended;
    try {
        const auto all = measure_all(how, only);
        if (all.empty()) throw std::runtime_error("there is nothing to measure: no such store, or no server for it");
        print(all);
        if (out) {
            std::filesystem::create_directories(*out);
            write_json(all, *out / "events.json");
        }
        return good(all) ? 0 : 1;
    } catch (const std::exception& e) {
        std::fprintf(stderr, "error: %s\n", e.what());
        return 1;
    }
}
