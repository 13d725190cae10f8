// What one call works with: a connection, its prepared statements, and the store's clock.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "database.hpp"
#include "sql.hpp"

namespace holdfast::sqlite {

// The store's clock is the clock of the host that the file is on; SQLite files are not shared between hosts.
inline store_time host_clock() noexcept {
    return std::chrono::time_point_cast<std::chrono::microseconds>(std::chrono::system_clock::now());
}

// Borrows the connection. One thread at a time.
class session {
public:
    // Where a job has become claimable since this was last cleared.
    struct awakening {
        std::vector<std::string> queues;
        bool anywhere = false; // in a queue that is not known

        void note(const std::string& queue) {
            if (queues.empty() || queues.back() != queue) queues.push_back(queue);
        }
    };
    awakening woken;
    // Jobs that succeeded were not kept, the last time: a guess for the next ones.
    bool successes_go;

    session(sqlite3* db, const statements& texts, const options& how) noexcept
        : successes_go(how.keep_succeeded <= duration::zero()), db_(db), texts_(texts), how_(how) {}

    template <class... Value>
    use run(query q, Value&&... values) {
        use made(db_, prepared(q));
        made.bind(std::forward<Value>(values)...);
        return made;
    }
    // Runs it to its end; the number of rows that it changed.
    template <class... Value>
    int exec(query q, Value&&... values) {
        run(q, std::forward<Value>(values)...).finish();
        return changes();
    }
    bool any(use found) { return found.step(); }

    // Larger than any before, for every subject: a thing may be deleted and its tokens still never come back.
    std::uint64_t next_token() {
        auto counter = run(query::next_token);
        if (!counter.step()) throw failed({errc::internal, "sqlite: the file has lost its token counter", {}});
        const auto token = counter.value<std::uint64_t>();
        counter.finish();
        return token;
    }

    // The time of the call. Read while the transaction holds the file, so that it grows with the order of commits.
    store_time now() const noexcept { return now_; }
    void tick() noexcept { now_ = host_clock(); }

    sqlite3* handle() const noexcept { return db_; }
    const statements& texts() const noexcept { return texts_; }
    const options& how() const noexcept { return how_; }
    bool in_transaction() const noexcept { return sqlite3_get_autocommit(db_) == 0; }
    int changes() const noexcept { return sqlite3_changes(db_); } // rows, by the latest statement
    std::int64_t last_row() const noexcept { return sqlite3_last_insert_rowid(db_); }

private:
    sqlite3_stmt* prepared(query q) {
        statement& slot = cache_[static_cast<std::size_t>(q)];
        if (!slot) slot = compile(db_, texts_[q], true);
        return slot.get();
    }

    sqlite3* db_;
    const statements& texts_;
    const options& how_;
    store_time now_{};
    std::array<statement, static_cast<std::size_t>(query::count)> cache_;
};

inline store_time after(store_time t, duration d) noexcept {
    return t + std::chrono::duration_cast<std::chrono::microseconds>(d);
}

} // namespace holdfast::sqlite
