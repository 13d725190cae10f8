#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <thread>

#include "harness/postgres_server.hpp"
#include "stores_driver.hpp"
#include "stores_each.hpp"

namespace bench {

namespace {

using namespace std::chrono_literals;
using holdfast::due;
using holdfast::harness::postgres_server;
using std::chrono::steady_clock;

constexpr int batch = 500;
constexpr int lanes = 3;

// A queue as one would write it without a library: one table, one index of what can be taken.
constexpr const char* plain_queue = R"sql(
CREATE TABLE plain (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), queue text NOT NULL DEFAULT 'default',
    type text NOT NULL DEFAULT 'bench.job', priority integer NOT NULL DEFAULT 0, due timestamptz NOT NULL DEFAULT now(),
    state smallint NOT NULL DEFAULT 0, attempts integer NOT NULL DEFAULT 0, worker text, leased_until timestamptz,
    body bytea NOT NULL DEFAULT repeat('x', 200)::bytea);
CREATE INDEX ON plain (queue, priority DESC, due) WHERE state = 0;
)sql";

constexpr const char* plain_insert = "INSERT INTO plain (queue) VALUES ('default');\n";

// The row that the store writes, into its table.
constexpr const char* same_insert =
    "INSERT INTO holdfast.jobs (id, queue, type, version, content_type, priority, created, due, state, max_attempts, "
    "max_crashes, may_restart, keep_for, body) SELECT gen_random_uuid(), 'default', 'bench.job', 1, "
    "'application/json', 0, c.now, c.now, 1, 3, 3, true, 0, repeat('x', 200)::bytea FROM (SELECT holdfast.clock() AS "
    "now OFFSET 0) c;\n";

constexpr const char* plain_claim_and_delete = R"sql(
WITH c AS (UPDATE plain SET state = 1, attempts = attempts + 1, worker = 'w', leased_until = now() + interval '1 min' WHERE id IN (SELECT id FROM plain WHERE state = 0 AND queue = 'default' AND due <= now() ORDER BY queue, priority DESC, due LIMIT 500 FOR UPDATE SKIP LOCKED) RETURNING id, body) SELECT coalesce(array_agg(id), '{}') AS ids, count(body) AS n FROM c \gset
DELETE FROM plain WHERE id = ANY (:ids::uuid[]) AND state = 1;
)sql";

// What the store itself sends, as far as the work of the server goes.
constexpr const char* same_claim_and_settle = R"sql(
SELECT coalesce(array_agg(id ORDER BY id), '{}') AS ids, coalesce(array_agg(token ORDER BY id), '{}') AS tokens, count(body) AS n FROM holdfast.claim('{default}', 500, 60000000, 'w') \gset
SELECT count(*) FROM holdfast.settle(:ids::uuid[], :tokens::bigint[], array_fill(0::smallint, ARRAY[:n::int]), array_fill(false, ARRAY[:n::int]), array_fill(0::bigint, ARRAY[:n::int]), array_fill(NULL::bytea, ARRAY[:n::int]), array_fill(NULL::bytea, ARRAY[:n::int]), array_fill(NULL::bytea, ARRAY[:n::int]), 86400000000);
)sql";

// The same rows as the store writes, with ids that grow, as its own do.
std::string insert_select(int first, int rows, int state, const std::string& due, bool kept) {
    const std::string i = "lpad(to_hex(i), 12, '0')";
    return "INSERT INTO holdfast.jobs (id, queue, type, version, content_type, priority, created, due, state, ended, "
           "max_attempts, max_crashes, may_restart, keep_for, body) SELECT (" +
           i +
           " || md5(i::text))::char(32)::uuid, 'default', 'bench.job', 1, 'application/json', 0, holdfast.clock(), " +
           due + ", " + std::to_string(state) + ", " + (state >= 4 ? "holdfast.clock()" : "NULL") + ", 3, 3, true, " +
           (kept ? "NULL" : "0") + ", repeat('x', 200)::bytea FROM generate_series(" + std::to_string(first) + ", " +
           std::to_string(first + rows - 1) + ") i";
}

class server_under_test {
public:
    postgres_server& operator*() noexcept { return server_; }
    std::string psql(const std::string& sql) const { return server_.psql(sql); }
    double number(const std::string& sql) const { return std::strtod(psql(sql).c_str(), nullptr); }
    double seconds(const std::string& sql) const {
        const auto start = steady_clock::now();
        psql(sql);
        return seconds_since(start);
    }
    void settle_down() const {
        psql("VACUUM ANALYZE");
        psql("CHECKPOINT");
    }

    // Transactions per second of pgbench. How long: "-T 3", or how many: "-t 100".
    double pgbench(const std::string& script, int clients, const std::string& how_long, const std::string& amount) {
        const auto file = folder_ / "script.sql";
        const auto answer = folder_ / "answer";
        std::ofstream(file) << script;
        std::filesystem::remove(answer); // the harness writes at its end
        const auto program = *holdfast::harness::postgres_binaries() / "pgbench";
        const int code = holdfast::harness::run(
            {.arguments = {program.string(), "-n", "-M", "prepared", "-c", std::to_string(clients), "-j",
                           std::to_string(std::min(clients, 2)), how_long, amount, "-f", file.string(), server_.url()},
             .output = answer});
        std::ifstream in(answer);
        for (std::string line; code == 0 && std::getline(in, line);)
            if (line.starts_with("tps = ")) return std::strtod(line.c_str() + 6, nullptr);
        throw std::runtime_error("pgbench ended with " + std::to_string(code) + " and told no rate");
    }

private:
    postgres_server server_{{.settings = {"shared_buffers = 256MB", "max_wal_size = 4GB"}}};
    holdfast::harness::temporary_folder folder_{"hfbench"};
};

void enqueueing(store_report& report, const store_scale& scale, server_under_test& server, driven_store& store) {
    const auto empty = [&] {
        server.psql("TRUNCATE holdfast.jobs, plain");
        server.settle_down();
    };
    const auto [ours, raw] = best_of(
        scale.rounds,
        [&] {
            empty();
            return store.enqueue_in_bulk(scale.jobs, 2000, due::now(), 0s);
        },
        [&] {
            empty();
            return scale.jobs / server.seconds(insert_select(1, scale.jobs, 1, "holdfast.clock()", false));
        });
    report.add({"postgres", "enqueue in bulk", ours, "jobs/s", "INSERT ... SELECT of the rows", raw, 0.6, 0});
    for (const int clients : {1, 16}) {
        empty();
        const std::string seconds = std::to_string(std::max<long>(1, scale.singles.count() / 1000));
        const auto [single, same] = middle_of(
            scale.single_rounds,
            [&] {
                return clients == 1 ? store.enqueue_by_a_thread(scale.singles)
                                    : store.enqueue_one_by_one(clients, scale.singles);
            },
            [&] { return server.pgbench(same_insert, clients, "-T", seconds); });
        const std::string who = ", " + std::to_string(clients) + (clients == 1 ? " client" : " clients");
        report.add({"postgres", "enqueue one by one" + who, single, "jobs/s", "pgbench, the same row", same, 0.9, 0});
        if (clients == 1)
            report.add({"postgres", "the same in a coroutine", store.enqueue_one_by_one(1, scale.singles), "jobs/s"});
        report.add({"postgres", "a plain queue by pgbench, insert" + who,
                    server.pgbench(plain_insert, clients, "-T", seconds), "jobs/s"});
    }
}

struct costs {
    double wal, commits, dead;
};

costs costs_so_far(const server_under_test& server) {
    std::this_thread::sleep_for(100ms); // for what sessions tell when they end
    return {server.number("SELECT pg_current_wal_lsn() - '0/0'::pg_lsn"),
            server.number("SELECT sum(xact_commit) FROM pg_stat_database"),
            server.number("SELECT sum(n_tup_upd + n_tup_del) FROM pg_stat_user_tables WHERE schemaname = 'holdfast'")};
}

void draining(store_report& report, const store_scale& scale, server_under_test& server, driven_store& store) {
    const auto per_job = [&](double after, double before) { return (after - before) / scale.jobs; };
    const std::string rounds = std::to_string(scale.jobs / batch / lanes);
    for (const bool kept : {false, true}) {
        const std::string what = kept ? ", history kept" : "";
        const auto fill = [&] {
            server.psql("TRUNCATE holdfast.jobs, holdfast.attempts");
            store.enqueue_in_bulk(scale.jobs, 2000, due::now(), kept ? 24h : 0h);
            server.settle_down();
        };
        const auto tell = [&](const std::string& of, const costs& before, const costs& after) {
            report.add({"postgres", "  log written" + of, per_job(after.wal, before.wal), "bytes/job"});
            report.add({"postgres", "  commits" + of, per_job(after.commits, before.commits) * 1000, "/1000"});
            report.add({"postgres", "  dead rows made" + of, per_job(after.dead, before.dead), "/job"});
        };
        costs before{};
        costs after{};
        const auto [ours, same] = best_of(
            scale.rounds,
            [&] {
                fill();
                before = costs_so_far(server);
                double rate = 0;
                {
                    driven_store worker("postgres", {{"url", (*server).url()}});
                    rate = worker.drain(batch, lanes);
                } // its sessions tell the server what they did when they end
                after = costs_so_far(server);
                return rate;
            },
            [&] {
                fill();
                return server.pgbench(same_claim_and_settle, lanes, "-t", rounds) * batch;
            });
        report.add({"postgres", "claim and settle" + what, ours, "jobs/s", "its statements by pgbench", same, 0.7, 0});
        tell(what, before, after);
        if (kept) continue;
        server.psql("TRUNCATE holdfast.jobs, holdfast.attempts");
        server.settle_down();
        before = costs_so_far(server);
        driven_store("postgres", {{"url", (*server).url()}}).enqueue_in_bulk(scale.jobs, 2000, due::now(), 0h);
        tell(", enqueueing in bulk", before, costs_so_far(server));
    }
    server.psql("TRUNCATE plain; INSERT INTO plain (queue) SELECT 'default' FROM generate_series(1, " +
                std::to_string(scale.jobs) + ")");
    server.settle_down();
    report.add({"postgres", "a plain queue by pgbench, claim and delete",
                server.pgbench(plain_claim_and_delete, lanes, "-t", rounds) * batch, "jobs/s"});
}

void history(store_report& report, const store_scale& scale, server_under_test& server, driven_store& store) {
    server.psql("TRUNCATE holdfast.jobs, holdfast.attempts");
    driven_store other("postgres", {{"url", (*server).url()}, {"namespace", "nothing_else"}});
    const int half = scale.history;
    server.psql(insert_select(1, half, 4, "holdfast.clock()", true));
    server.psql(insert_select(half + 1, half, 0, "holdfast.clock() + 86400000000", true));
    server.settle_down();
    const auto [full, empty] = claim_p99_us(store, other, scale.claims, scale.claim_rounds);
    report.add({"postgres", "claim p99, " + std::to_string(half) + " finished and future", full, "us",
                "with an empty table", empty, 0, 1.5});
    server.psql("TRUNCATE holdfast.jobs");
    server.psql(insert_select(1, scale.dead, 6, "holdfast.clock()", true));
    server.settle_down();
    const auto [first, last] = store.page_times_us(100, scale.dead / 100);
    report.add({"postgres", "a page of 100 dead letters, far down", last, "us", "the first pages", first, 0, 1.5});
}

} // namespace

void measure_postgres(store_report& report, const store_scale& scale) {
    if (!holdfast::harness::postgres_binaries()) return report.note("postgres: not installed, left out");
    server_under_test server;
    server.psql(plain_queue);
    driven_store store("postgres", {{"url", (*server).url()}});
    enqueueing(report, scale, server, store);
    draining(report, scale, server, store);
    history(report, scale, server, store);
}

} // namespace bench
