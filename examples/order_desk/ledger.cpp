#include "ledger.hpp"

#include <memory>
#include <stdexcept>

namespace {

using statement = std::unique_ptr<sqlite3_stmt, decltype(&sqlite3_finalize)>;

[[noreturn]] void fail(sqlite3* db) {
    throw std::runtime_error(sqlite3_errmsg(db));
}

statement prepare(sqlite3* db, const std::string& sql) {
    sqlite3_stmt* made = nullptr;
    if (sqlite3_prepare_v2(db, sql.c_str(), -1, &made, nullptr) != SQLITE_OK) fail(db);
    return {made, &sqlite3_finalize};
}

} // namespace

ledger::ledger(const std::filesystem::path& file) {
    if (sqlite3_open(file.c_str(), &db_) != SQLITE_OK) {
        const std::string why = sqlite3_errmsg(db_);
        sqlite3_close(db_);
        throw std::runtime_error(file.string() + ": " + why);
    }
    sqlite3_busy_timeout(db_, 10'000);
}

ledger::~ledger() {
    sqlite3_close(db_);
}

void ledger::run(const std::string& sql) {
    if (sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) fail(db_);
}

long long ledger::number(const std::string& sql) {
    const statement asked = prepare(db_, sql);
    if (sqlite3_step(asked.get()) != SQLITE_ROW) fail(db_);
    return sqlite3_column_int64(asked.get(), 0);
}

void ledger::insert(const std::string& sql, const std::vector<std::string>& values) {
    const statement filled = prepare(db_, sql);
    for (std::size_t i = 0; i < values.size(); ++i)
        sqlite3_bind_text(filled.get(), static_cast<int>(i) + 1, values[i].c_str(), -1, SQLITE_TRANSIENT);
    if (sqlite3_step(filled.get()) != SQLITE_DONE) fail(db_);
}
