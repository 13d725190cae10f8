#include "stores_sqlite.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <vector>

#include <sqlite3.h>

#include <holdfast/identifier.hpp>
#include <holdfast/sync_wait.hpp>

namespace bench {

namespace {

using namespace holdfast;
using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr int batch_size = 100;
constexpr std::size_t body_size = 200;

double seconds_since(steady_clock::time_point start) {
    return std::chrono::duration<double>(steady_clock::now() - start).count();
}

// The plainest queue on SQLite: one table, one index of what is due.
class raw_queue {
public:
    explicit raw_queue(const std::string& file) {
        sqlite3* opened = nullptr;
        if (sqlite3_open(file.c_str(), &opened) != SQLITE_OK) throw std::runtime_error("cannot open " + file);
        db_.reset(opened);
        run("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
            "CREATE TABLE jobs(seq INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, queue TEXT NOT NULL, "
            "priority INTEGER NOT NULL, due INTEGER NOT NULL, state INTEGER NOT NULL, worker TEXT, leased INTEGER, "
            "body BLOB NOT NULL);"
            "CREATE INDEX due ON jobs(queue, priority DESC, due) WHERE state=0");
        insert_ = prepare("INSERT INTO jobs(id, queue, priority, due, state, body) VALUES(?1,'default',0,?2,0,?3)");
        claim_ = prepare("UPDATE jobs SET state=1, worker='w', leased=?1 WHERE seq IN (SELECT seq FROM jobs "
                         "WHERE state=0 AND queue='default' AND priority=0 AND due<=?1 ORDER BY due LIMIT 100) "
                         "RETURNING id, body");
        remove_ = prepare("DELETE FROM jobs WHERE id=?1 AND state=1");
    }

    void add(const std::vector<identifier>& ids, const std::string& body) {
        run("BEGIN IMMEDIATE");
        for (const identifier& id : ids) {
            sqlite3_bind_blob(insert_.get(), 1, id.bytes.data(), 16, SQLITE_STATIC);
            sqlite3_bind_int64(insert_.get(), 2, 1);
            sqlite3_bind_blob(insert_.get(), 3, body.data(), static_cast<int>(body.size()), SQLITE_STATIC);
            finish(insert_.get());
        }
        run("COMMIT");
    }
    std::size_t claim_and_remove() {
        std::vector<identifier> ids;
        run("BEGIN IMMEDIATE");
        sqlite3_bind_int64(claim_.get(), 1, 2);
        while (sqlite3_step(claim_.get()) == SQLITE_ROW)
            std::copy_n(static_cast<const std::uint8_t*>(sqlite3_column_blob(claim_.get(), 0)), 16,
                        ids.emplace_back().bytes.begin());
        sqlite3_reset(claim_.get());
        run("COMMIT; BEGIN IMMEDIATE");
        for (const identifier& id : ids) {
            sqlite3_bind_blob(remove_.get(), 1, id.bytes.data(), 16, SQLITE_STATIC);
            finish(remove_.get());
        }
        run("COMMIT");
        return ids.size();
    }

private:
    struct closer {
        void operator()(sqlite3* db) const noexcept { sqlite3_close_v2(db); }
        void operator()(sqlite3_stmt* s) const noexcept { sqlite3_finalize(s); }
    };
    using statement = std::unique_ptr<sqlite3_stmt, closer>;

    void run(const char* sql) const {
        if (sqlite3_exec(db_.get(), sql, nullptr, nullptr, nullptr) != SQLITE_OK)
            throw std::runtime_error(sqlite3_errmsg(db_.get()));
    }
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

    std::unique_ptr<sqlite3, closer> db_;
    statement insert_, claim_, remove_;
};

class driven_store {
public:
    driven_store(store& kept, runtime& on) : jobs_(*kept.jobs()), on_(on) {}

    void add(int count, due when, std::optional<duration> keep_for) {
        std::vector<new_job> batch(static_cast<std::size_t>(count));
        for (new_job& j : batch) {
            j.id = ids_.next();
            j.what = {"t", 1, "application/json", body_};
            j.when = when;
            j.keep_for = keep_for;
        }
        await(jobs_.enqueue(std::move(batch)));
    }
    std::vector<claimed_job> claim(int limit) { return await(jobs_.claim({{"default"}, limit, 1min, "w"})); }
    void settle(const std::vector<claimed_job>& claimed) {
        std::vector<settlement> ends;
        for (const auto& each : claimed) ends.push_back({&each.lease, settlement::kind::succeed, {}, {}, {}});
        await(jobs_.settle(ends));
    }
    double claim_p99_us() {
        std::vector<double> took;
        for (int i = 0; i < 200; ++i) {
            add(10, due::now(), 0s);
            const auto start = steady_clock::now();
            const auto claimed = claim(10);
            took.push_back(seconds_since(start) * 1e6);
            settle(claimed);
        }
        std::ranges::sort(took);
        return took[took.size() * 99 / 100];
    }

private:
    template <class T>
    T await(task<result<T>> call) {
        auto answer = sync_wait(on_, std::move(call));
        if (!answer) throw failed(std::move(answer.error()));
        return std::move(*answer);
    }

    job_store& jobs_;
    runtime& on_;
    identifier_source ids_;
    std::string body_ = std::string(body_size, 'x');
};

} // namespace

sqlite_figures measure_sqlite(store& kept, runtime& on, const std::string& raw_file, int jobs, int history) {
    sqlite_figures found;
    const int batches = jobs / batch_size;
    const auto per_s = [&](steady_clock::time_point start) { return batches * batch_size / seconds_since(start); };

    raw_queue raw(raw_file);
    identifier_source ids;
    const std::string body(body_size, 'x');
    auto start = steady_clock::now();
    for (int i = 0; i < batches; ++i) {
        std::vector<identifier> batch(batch_size);
        for (identifier& id : batch) id = ids.next();
        raw.add(batch, body);
    }
    found.raw_enqueued_per_s = per_s(start);
    start = steady_clock::now();
    while (raw.claim_and_remove() > 0) {
    }
    found.raw_done_per_s = per_s(start);

    driven_store driven(kept, on);
    start = steady_clock::now();
    for (int i = 0; i < batches; ++i) driven.add(batch_size, due::now(), 0s);
    found.enqueued_per_s = per_s(start);
    start = steady_clock::now();
    for (auto claimed = driven.claim(batch_size); !claimed.empty(); claimed = driven.claim(batch_size))
        driven.settle(claimed);
    found.done_per_s = per_s(start);

    found.claim_p99_us = driven.claim_p99_us();
    for (int i = 0; i < history; i += 1000) {
        driven.add(1000, due::now(), std::nullopt);
        driven.settle(driven.claim(1000));
        driven.add(1000, due::after(24h * 365), std::nullopt);
    }
    found.claim_p99_with_history_us = driven.claim_p99_us();
    return found;
}

} // namespace bench
