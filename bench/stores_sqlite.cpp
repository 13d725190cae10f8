#include <memory>
#include <stdexcept>
#include <vector>

#include <sqlite3.h>

#include "harness/temporary_folder.hpp"
#include "stores_driver.hpp"
#include "stores_each.hpp"

namespace bench {

namespace {

using namespace std::chrono_literals;
using holdfast::due;
using holdfast::identifier;
using std::chrono::steady_clock;

constexpr int batch = 500;

class raw_file {
public:
    explicit raw_file(const std::string& file) {
        sqlite3* opened = nullptr;
        const int code = sqlite3_open(file.c_str(), &opened);
        db_.reset(opened);
        if (code != SQLITE_OK) throw std::runtime_error("cannot open " + file);
        run("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA cache_size=-16384; PRAGMA secure_delete=0; "
            "PRAGMA busy_timeout=5000");
    }
    void run(const std::string& sql) const {
        if (sqlite3_exec(db_.get(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
            throw std::runtime_error(sqlite3_errmsg(db_.get()));
    }

protected:
    struct closer {
        void operator()(sqlite3* db) const noexcept { sqlite3_close_v2(db); }
        void operator()(sqlite3_stmt* s) const noexcept { sqlite3_finalize(s); }
    };
    using statement = std::unique_ptr<sqlite3_stmt, closer>;

    statement prepare(const char* sql) const {
        sqlite3_stmt* made = nullptr;
        if (sqlite3_prepare_v3(db_.get(), sql, -1, SQLITE_PREPARE_PERSISTENT, &made, nullptr) != SQLITE_OK)
            throw std::runtime_error(sqlite3_errmsg(db_.get()));
        return statement(made);
    }
    void finish(sqlite3_stmt* s) const {
        if (sqlite3_step(s) != SQLITE_DONE) throw std::runtime_error(sqlite3_errmsg(db_.get()));
        sqlite3_reset(s);
    }

private:
    std::unique_ptr<sqlite3, closer> db_;
};

// The plainest queue that keeps what ours keeps: what is due by an index, a lease with a token, the end of each attempt.
class raw_queue : raw_file {
public:
    explicit raw_queue(const std::string& file) : raw_file(file) {
        run("CREATE TABLE jobs(seq INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, queue TEXT NOT NULL, type TEXT NOT "
            "NULL, "
            "priority INTEGER NOT NULL, due INTEGER NOT NULL, state INTEGER NOT NULL, token INTEGER NOT NULL DEFAULT "
            "0, "
            "attempts INTEGER NOT NULL DEFAULT 0, worker TEXT, leased INTEGER, ended INTEGER, body BLOB NOT NULL);"
            "CREATE INDEX due ON jobs(queue, priority DESC, due) WHERE state=0;"
            "CREATE INDEX leased ON jobs(leased) WHERE state=1;"
            "CREATE INDEX ended ON jobs(state, ended) WHERE state>1;"
            "CREATE TABLE attempts(job INTEGER, token INTEGER, worker TEXT, started INTEGER, ended INTEGER, outcome "
            "TEXT, "
            "PRIMARY KEY(job, token)) WITHOUT ROWID");
        insert_ = prepare("INSERT INTO jobs(id, queue, type, priority, due, state, body) "
                          "VALUES(?1,'default','bench.job',0,?2,0,?3)");
        due_ = prepare("SELECT seq, id, body FROM jobs WHERE state=0 AND queue='default' AND priority=0 AND due<=?1 "
                       "ORDER BY due LIMIT ?2");
        take_ =
            prepare("UPDATE jobs SET state=1, token=token+1, attempts=attempts+1, worker='w', leased=?2 WHERE seq=?1");
        remove_ = prepare("DELETE FROM jobs WHERE id=?1 AND state=1 AND token=1");
        end_ = prepare("UPDATE jobs SET state=2, ended=?2, leased=NULL WHERE id=?1 AND state=1 AND token=1");
        history_ = prepare("INSERT INTO attempts VALUES(?1, 1, 'w', 1, 2, 'succeeded')");
    }

    double add(int rows) {
        holdfast::identifier_source ids;
        const std::string body(body_size, 'x');
        const auto start = steady_clock::now();
        for (int done = 0; done < rows; done += batch) {
            run("BEGIN IMMEDIATE");
            for (int i = 0; i < batch; ++i) {
                const identifier id = ids.next();
                sqlite3_bind_blob(insert_.get(), 1, id.bytes.data(), 16, SQLITE_STATIC);
                sqlite3_bind_int64(insert_.get(), 2, done + i);
                sqlite3_bind_blob(insert_.get(), 3, body.data(), static_cast<int>(body.size()), SQLITE_STATIC);
                finish(insert_.get());
            }
            run("COMMIT");
        }
        return rows / seconds_since(start);
    }
    double drain(bool kept) {
        const auto start = steady_clock::now();
        int total = 0;
        for (int taken = claim(); taken > 0; taken = claim()) {
            run("BEGIN IMMEDIATE");
            for (const job& each : jobs_) settle(each, kept);
            run("COMMIT");
            total += taken;
        }
        return total / seconds_since(start);
    }

private:
    struct job {
        std::int64_t seq;
        identifier id;
        std::string body;
    };
    int claim() {
        jobs_.clear();
        run("BEGIN IMMEDIATE");
        sqlite3_bind_int64(due_.get(), 1, 1'000'000'000);
        sqlite3_bind_int64(due_.get(), 2, batch);
        while (sqlite3_step(due_.get()) == SQLITE_ROW) {
            job& one = jobs_.emplace_back();
            one.seq = sqlite3_column_int64(due_.get(), 0);
            std::copy_n(static_cast<const std::uint8_t*>(sqlite3_column_blob(due_.get(), 1)), 16, one.id.bytes.begin());
            one.body.assign(static_cast<const char*>(sqlite3_column_blob(due_.get(), 2)), body_size);
        }
        sqlite3_reset(due_.get());
        for (const job& each : jobs_) {
            sqlite3_bind_int64(take_.get(), 1, each.seq);
            sqlite3_bind_int64(take_.get(), 2, 60);
            finish(take_.get());
        }
        run("COMMIT");
        return static_cast<int>(jobs_.size());
    }
    void settle(const job& one, bool kept) {
        sqlite3_stmt* end = kept ? end_.get() : remove_.get();
        sqlite3_bind_blob(end, 1, one.id.bytes.data(), 16, SQLITE_STATIC);
        if (kept) sqlite3_bind_int64(end, 2, one.seq);
        finish(end);
        if (!kept) return;
        sqlite3_bind_int64(history_.get(), 1, one.seq);
        finish(history_.get());
    }

    statement insert_, due_, take_, remove_, end_, history_;
    std::vector<job> jobs_;
};

// The rows that the store would have written, ids that grow.
std::string many_rows(int first, int rows, int state, const std::string& due) {
    return "WITH RECURSIVE n(i) AS (SELECT " + std::to_string(first) + " UNION ALL SELECT i+1 FROM n WHERE i<" +
           std::to_string(first + rows - 1) +
           ") INSERT INTO holdfast_jobs(id, queue, priority, state, due, max_attempts, max_crashes, may_restart, "
           "waits, "
           "cancelled_by_parent, large, created, ended, type, version, content_type, body) "
           "SELECT CAST(printf('%016d', i) AS BLOB), 'default', 0, " +
           std::to_string(state) + ", " + due + ", 3, 3, 1, 0, 0, 0, 1, " +
           (state >= 4 ? "4000000000000000+i" : "NULL") + ", 'bench.job', 1, 'application/json', zeroblob(200) FROM n";
}

void history(store_report& report, const store_scale& scale, driven_store& store, const std::string& file) {
    driven_store other("sqlite", {{"file", file + ".empty"}});
    const raw_file raw(file);
    raw.run(many_rows(1, scale.history, 4, "i"));
    raw.run(many_rows(scale.history + 1, scale.history, 0, "4000000000000000+i"));
    raw.run("PRAGMA wal_checkpoint(TRUNCATE)");
    const auto [full, empty] = claim_p99_us(store, other, scale.claims, scale.claim_rounds);
    report.add({"sqlite", "claim p99, " + std::to_string(scale.history) + " finished and future", full, "us",
                "with an empty table", empty, 0, 1.5});
    raw.run("UPDATE holdfast_jobs SET state=6 WHERE state=4");
    const auto [first, last] = store.page_times_us(100, scale.history / 100);
    report.add({"sqlite", "a page of 100 dead letters, far down", last, "us", "the first pages", first, 0, 1.5});
}

} // namespace

void measure_sqlite(store_report& report, const store_scale& scale) {
    const holdfast::harness::temporary_folder folder("hfbench");
    const std::string file = (folder / "store.db").string();
    raw_queue raw((folder / "raw.db").string());
    driven_store store("sqlite", {{"file", file}});
    for (const bool kept : {false, true}) {
        const std::string what = kept ? ", history kept" : "";
        double raw_add = 0;
        double add = 0;
        const auto [done, raw_done] = best_of(
            scale.rounds,
            [&] {
                const auto keep = kept ? std::nullopt : std::optional<holdfast::duration>(0s);
                add = std::max(add, store.enqueue_in_bulk(scale.jobs, batch, due::now(), keep));
                return store.drain(batch, 2);
            },
            [&] {
                raw_add = std::max(raw_add, raw.add(scale.jobs));
                return raw.drain(kept);
            });
        if (!kept) report.add({"sqlite", "enqueue in bulk", add, "jobs/s", "the raw statements", raw_add, 0.7, 0});
        report.add({"sqlite", "claim and settle" + what, done, "jobs/s", "the raw statements", raw_done, 0.7, 0});
    }
    for (const int clients : {1, 16})
        report.add({"sqlite", "enqueue one by one, " + std::to_string(clients) + " clients",
                    store.enqueue_one_by_one(clients, scale.singles / 2), "jobs/s"});
    store.drain(batch, 2);
    history(report, scale, store, file);
}

} // namespace bench
