#include "database.hpp"

#include <chrono>
#include <cstring>
#include <thread>

namespace holdfast::sqlite {

namespace {

errc code_of(int code) noexcept {
    switch (code & 0xFF) {
    case SQLITE_TOOBIG: return errc::too_large;
    case SQLITE_CANTOPEN:
    case SQLITE_NOTADB: return errc::configuration;
    case SQLITE_ERROR:
    case SQLITE_MISUSE:
    case SQLITE_CONSTRAINT:
    case SQLITE_RANGE: return errc::internal;
    default: return errc::unavailable;
    }
}

std::string_view hint_of(int code) noexcept {
    switch (code & 0xFF) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED: return "; another transaction held the file for longer than busy_timeout";
    case SQLITE_FULL: return "; the disk is full";
    case SQLITE_READONLY: return "; the file, or its folder, may not be written to";
    case SQLITE_CANTOPEN: return "; does its folder exist, and was prepare() called?";
    case SQLITE_NOTADB: return "; it is not an SQLite file";
    default: return "";
    }
}

} // namespace

error error_of(sqlite3* db, int code, std::string_view doing) {
    const char* file = db == nullptr ? nullptr : sqlite3_db_filename(db, "main");
    const bool current = db != nullptr && (sqlite3_errcode(db) & 0xFF) == (code & 0xFF);
    const std::string_view why = current ? sqlite3_errmsg(db) : sqlite3_errstr(code);
    std::string message = "sqlite: " + std::string(doing);
    if (file != nullptr && *file != '\0') message += " (" + std::string(file) + ")";
    message += ": " + std::string(why);
    if ((code & 0xFF) == SQLITE_ERROR && why.starts_with("no such table"))
        return {errc::configuration, message + "; prepare() makes it", std::nullopt};
    return {code_of(code), message + std::string(hint_of(code)), std::nullopt};
}

void raise(sqlite3* db, int code, std::string_view doing) {
    throw failed(error_of(db, code, doing));
}

statement compile(sqlite3* db, std::string_view text, bool keep) {
    sqlite3_stmt* made = nullptr;
    const unsigned flags = keep ? SQLITE_PREPARE_PERSISTENT : 0;
    const int code = sqlite3_prepare_v3(db, text.data(), static_cast<int>(text.size()), flags, &made, nullptr);
    if (code != SQLITE_OK) raise(db, code, "cannot prepare a statement");
    return statement(made);
}

void use::get(identifier& v) {
    const void* at = sqlite3_column_blob(what_, column_);
    const auto size = static_cast<std::size_t>(sqlite3_column_bytes(what_, column_++));
    if (size != v.bytes.size()) throw failed({errc::internal, "sqlite: an id in the file does not have 16 bytes", {}});
    std::memcpy(v.bytes.data(), at, size);
}

void execute(sqlite3* db, const std::string& text, std::string_view doing) {
    const int code = sqlite3_exec(db, text.c_str(), nullptr, nullptr, nullptr);
    if (code != SQLITE_OK) raise(db, code, doing);
}

connection::connection(const options& how, access wanted)
    : busy_microseconds_(std::chrono::duration_cast<std::chrono::microseconds>(how.busy_timeout).count()) {
    sqlite3* made = nullptr;
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE |
                      (wanted == access::create ? SQLITE_OPEN_CREATE : 0);
    const int code = sqlite3_open_v2(how.file.c_str(), &made, flags, nullptr);
    db_.reset(made);
    if (code != SQLITE_OK) {
        error e = error_of(nullptr, code, "cannot open " + how.file);
        throw failed(std::move(e));
    }
    sqlite3_busy_handler(handle(), &wait_when_busy, this);
    switch_to_wal();
    pragma(how.full_sync ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL");
    pragma("PRAGMA cache_size=-16384");
    pragma("PRAGMA temp_store=MEMORY");
    pragma(how.secure_delete ? "PRAGMA secure_delete=1" : "PRAGMA secure_delete=0");
    pragma("PRAGMA journal_size_limit=67108864");
    pragma(
        "PRAGMA wal_autocheckpoint=4000"); // pages: 16 MB; each checkpoint flushes the file, and a writer waits for it
    if (wanted == access::read) pragma("PRAGMA query_only=1");
}

bool connection::moved() const noexcept {
    int answer = 0;
    return sqlite3_file_control(handle(), "main", SQLITE_FCNTL_HAS_MOVED, &answer) == SQLITE_OK && answer != 0;
}

// SQLite's own handler sleeps up to 100 ms at a time: too long when the holder commits in less than one.
int connection::wait_when_busy(void* self, int times) noexcept {
    auto& c = *static_cast<connection*>(self);
    if (times == 0) c.waited_ = 0;
    if (c.waited_ >= c.busy_microseconds_) return 0;
    const std::int64_t pause = times < 8 ? 250 : times < 64 ? 1000 : 5000;
    const auto start = std::chrono::steady_clock::now();
    std::this_thread::sleep_for(std::chrono::microseconds{pause});
    const auto slept = std::chrono::steady_clock::now() - start;
    c.waited_ += std::chrono::duration_cast<std::chrono::microseconds>(slept).count();
    return 1;
}

void connection::pragma(std::string_view text) {
    use(handle(), compile(handle(), text, false).get()).finish();
}

// Changing the mode takes a moment alone with the file, and SQLite does not call the busy handler for all of it.
void connection::switch_to_wal() {
    for (int times = 0;; ++times) {
        const statement asked = compile(handle(), "PRAGMA journal_mode=WAL", false);
        const int code = sqlite3_step(asked.get());
        if (code == SQLITE_ROW) {
            const std::string_view mode = reinterpret_cast<const char*>(sqlite3_column_text(asked.get(), 0));
            if (mode == "wal" || sqlite3_db_readonly(handle(), "main") == 1) return;
            throw failed({errc::configuration,
                          "sqlite: " + std::string(sqlite3_db_filename(handle(), "main")) +
                              " cannot be put into WAL mode, it stays in " + std::string(mode),
                          {}});
        }
        const bool busy = (code & 0xFF) == SQLITE_BUSY || (code & 0xFF) == SQLITE_LOCKED;
        if (!busy || wait_when_busy(this, times) == 0) raise(handle(), code, "cannot switch to WAL mode");
    }
}

} // namespace holdfast::sqlite
