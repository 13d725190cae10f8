#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <thread>

#include "harness/redis_server.hpp"
#include "stores_driver.hpp"
#include "stores_each.hpp"

namespace bench {

namespace {

using namespace std::chrono_literals;
using holdfast::due;
using holdfast::harness::redis_server;

constexpr int batch = 500;
constexpr int lanes = 2;

// One job, taken and done, as one would write it without a library: due order, a lease with a token, its body read.
constexpr const char* comparable_script =
    "local id=redis.call('INCR',KEYS[1])%1000;local key='bench:job:'..id;"
    "redis.call('ZADD','bench:due',id,id);local first=redis.call('ZPOPMIN','bench:due')[1];"
    "redis.call('HSET',key,'state','2','token',id,'worker','w','until',id);redis.call('ZADD','bench:leased',id,first);"
    "local job=redis.call('HMGET',key,'token','body');if job[1]~=tostring(id)then return 0 end;"
    "redis.call('ZREM','bench:leased',first);redis.call('HDEL',key,'state','token');return job[2]";

class server_under_test {
public:
    redis_server& operator*() noexcept { return server_; }

    // Calls per second of redis-benchmark, 50 clients, 16 calls of each on their way at once.
    double redis_benchmark(int calls, const std::vector<std::string>& what) {
        const auto answer = folder_ / "answer";
        const auto program = holdfast::harness::redis_binary()->parent_path() / "redis-benchmark";
        std::vector<std::string> arguments{
            program.string(),      "-p",   std::to_string(server_.port()), "-c", "50", "-P", "16", "-n",
            std::to_string(calls), "--csv"};
        arguments.insert(arguments.end(), what.begin(), what.end());
        std::filesystem::remove(answer); // the harness writes at its end
        const int code = holdfast::harness::run({.arguments = arguments, .output = answer});
        std::ifstream in(answer);
        std::string last;
        for (std::string line; std::getline(in, line);)
            if (line.starts_with('"')) last = line;
        const auto rate = last.find("\",\"");
        if (code != 0 || rate == std::string::npos) throw std::runtime_error("redis-benchmark told no rate");
        return std::strtod(last.c_str() + rate + 3, nullptr);
    }

    // Its hash, for EVALSHA; a text without double quotes.
    std::string load(const std::string& script) const { return server_.lines("SCRIPT LOAD \"" + script + "\"").at(0); }

    // The log is written anew now, and not while something is measured.
    void settle_down() const {
        server_.tell("BGREWRITEAOF");
        const auto under_way = [&] {
            for (const std::string& line : server_.lines("INFO persistence"))
                if (line.contains("aof_rewrite_in_progress:1") || line.contains("aof_rewrite_scheduled:1")) return true;
            return false;
        };
        for (int i = 0; i < 600 && under_way(); ++i) std::this_thread::sleep_for(100ms);
    }

private:
    redis_server server_;
    holdfast::harness::temporary_folder folder_{"hfbench"};
};

} // namespace

void measure_redis(store_report& report, const store_scale& scale) {
    if (!holdfast::harness::redis_binary()) return report.note("redis: not installed, left out");
    server_under_test server;
    driven_store store("redis", {{"url", (*server).url()}});

    const std::string hash = server.load(comparable_script);
    double bulk = 0;
    const auto [done, comparable] = best_of(
        scale.rounds,
        [&] {
            bulk = std::max(bulk, store.enqueue_in_bulk(scale.jobs, 1000, due::now(), 0s));
            return store.drain(batch, lanes);
        },
        [&] { return server.redis_benchmark(scale.jobs, {"evalsha", hash, "1", "bench:next"}); });
    report.add({"redis", "enqueue in bulk", bulk, "jobs/s"});
    report.add({"redis", "claim and settle", done, "jobs/s", "redis-benchmark, a plain script", comparable, 0.7, 0});
    for (const int clients : {1, 16})
        report.add({"redis", "enqueue one by one, " + std::to_string(clients) + " clients",
                    store.enqueue_one_by_one(clients, scale.singles / 2), "jobs/s"});
    store.drain(batch, lanes);

    driven_store other("redis", {{"url", (*server).url()}, {"namespace", "nothing_else"}});
    store.enqueue_in_bulk(scale.history, 1000, due::now(), 24h);
    store.drain(batch, lanes);
    store.enqueue_in_bulk(scale.history, 1000, due::after(24h), 24h);
    server.settle_down();
    const auto [full, empty] = claim_p99_us(store, other, scale.claims, scale.claim_rounds);
    report.add({"redis", "claim p99, " + std::to_string(scale.history) + " finished and future", full, "us",
                "with an empty store", empty, 0, 1.5});
    store.bury(scale.dead, batch);
    server.settle_down();
    const auto [first, last] = store.page_times_us(100, scale.dead / 100);
    report.add({"redis", "a page of 100 dead letters, far down", last, "us", "the first pages", first, 0, 1.5});
}

} // namespace bench
