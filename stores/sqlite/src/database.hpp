// A connection to SQLite and the use of a prepared statement, as owned things that report failures as
// holdfast::failed. One thread at a time. (Debian's SQLiteCpp copies every text and blob that it binds, and hides
// sqlite3_prepare_v3 and the extended result codes that the errors here are made from.)
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <sqlite3.h>

#include <holdfast/error.hpp>
#include <holdfast/identifier.hpp>
#include <holdfast/lease.hpp>

#include "options.hpp"

namespace holdfast::sqlite {

// `doing` begins the message: "cannot commit". A result code of SQLite's as an error of ours.
error error_of(sqlite3* db, int code, std::string_view doing);
[[noreturn]] void raise(sqlite3* db, int code, std::string_view doing);

// Bytes that are bound as a BLOB; a std::string_view is bound as TEXT. Neither is copied: both outlive the use.
struct bytes {
    std::string_view view;
};

struct statement_deleter {
    void operator()(sqlite3_stmt* s) const noexcept { sqlite3_finalize(s); }
};
using statement = std::unique_ptr<sqlite3_stmt, statement_deleter>;
// `keep`: it will be used many times.
statement compile(sqlite3* db, std::string_view text, bool keep);

// One run of a prepared statement. Parameters are bound in order from ?1; columns are read in order from the first.
class use {
public:
    use(sqlite3* db, sqlite3_stmt* what) noexcept : db_(db), what_(what) {}
    use(use&& other) noexcept
        : db_(other.db_), what_(std::exchange(other.what_, nullptr)), parameter_(other.parameter_),
          column_(other.column_) {}
    use& operator=(use&&) = delete;
    ~use() {
        if (what_ != nullptr) sqlite3_reset(what_);
    }

    template <class... Value>
    use& bind(Value&&... values) {
        (put(std::forward<Value>(values)), ...);
        return *this;
    }
    // True: there is a row to read.
    bool step() {
        const int code = sqlite3_step(what_);
        column_ = 0;
        if (code == SQLITE_ROW) return true;
        if (code != SQLITE_DONE) raise(db_, code, "cannot run a statement");
        return false;
    }
    void finish() {
        while (step()) {
        }
    }
    template <class... Value>
    use& read(Value&... values) {
        (get(values), ...);
        return *this;
    }
    template <class T>
    T value() {
        T v{};
        get(v);
        return v;
    }

private:
    void check(int code) {
        if (code != SQLITE_OK) raise(db_, code, "cannot bind a value");
    }
    void put(std::nullptr_t) { check(sqlite3_bind_null(what_, ++parameter_)); }
    void put(std::int64_t v) { check(sqlite3_bind_int64(what_, ++parameter_, v)); }
    void put(int v) { put(static_cast<std::int64_t>(v)); }
    void put(bool v) { put(static_cast<std::int64_t>(v)); }
    void put(std::uint64_t v) { put(static_cast<std::int64_t>(v)); }
    void put(store_time v) { put(static_cast<std::int64_t>(v.time_since_epoch().count())); }
    void put(std::string_view v) {
        check(sqlite3_bind_text64(what_, ++parameter_, v.data() == nullptr ? "" : v.data(), v.size(), SQLITE_STATIC,
                                  SQLITE_UTF8));
    }
    void put(const std::string& v) { put(std::string_view(v)); }
    void put(std::string&&) = delete;
    void put(bytes v) {
        check(sqlite3_bind_blob64(what_, ++parameter_, v.view.data() == nullptr ? "" : v.view.data(), v.view.size(),
                                  SQLITE_STATIC));
    }
    void put(const identifier& v) {
        check(sqlite3_bind_blob(what_, ++parameter_, v.bytes.data(), static_cast<int>(v.bytes.size()), SQLITE_STATIC));
    }
    void put(identifier&&) = delete;
    template <class T>
    void put(const std::optional<T>& v) {
        if (v) put(*v);
        else put(nullptr);
    }
    template <class T>
    void put(std::optional<T>&& v) {
        static_assert(std::is_trivially_copyable_v<T> && !std::is_same_v<T, identifier>);
        if (v) put(T(*v));
        else put(nullptr);
    }

    bool null() const noexcept { return sqlite3_column_type(what_, column_) == SQLITE_NULL; }
    void get(std::int64_t& v) { v = sqlite3_column_int64(what_, column_++); }
    void get(int& v) { v = static_cast<int>(sqlite3_column_int64(what_, column_++)); }
    void get(bool& v) { v = sqlite3_column_int64(what_, column_++) != 0; }
    void get(std::uint64_t& v) { v = static_cast<std::uint64_t>(sqlite3_column_int64(what_, column_++)); }
    void get(store_time& v) { v = store_time(std::chrono::microseconds{sqlite3_column_int64(what_, column_++)}); }
    void get(std::string& v) {
        const void* at = sqlite3_column_blob(what_, column_); // of a TEXT: its bytes
        const auto size = static_cast<std::size_t>(sqlite3_column_bytes(what_, column_++));
        v.assign(static_cast<const char*>(at), at == nullptr ? 0 : size);
    }
    void get(identifier& v);
    template <class T>
    void get(std::optional<T>& v) {
        if (null()) {
            v.reset();
            ++column_;
        } else {
            get(v.emplace());
        }
    }

    sqlite3* db_;
    sqlite3_stmt* what_;
    int parameter_ = 0;
    int column_ = 0;
};

enum class access : unsigned char { create, write, read };

// An open file in WAL mode, with the settings of `how` applied.
class connection {
public:
    connection(const options& how, access wanted);
    sqlite3* handle() const noexcept { return db_.get(); }
    // The file was deleted or replaced under us: what we write goes nowhere.
    bool moved() const noexcept;

private:
    struct closer {
        void operator()(sqlite3* db) const noexcept { sqlite3_close_v2(db); }
    };
    static int wait_when_busy(void* self, int times) noexcept;
    void pragma(std::string_view text);
    void switch_to_wal();

    std::int64_t busy_microseconds_;
    std::int64_t waited_ = 0;
    std::unique_ptr<sqlite3, closer> db_;
};

// Runs statements that give no rows.
void execute(sqlite3* db, const std::string& text, std::string_view doing);

} // namespace holdfast::sqlite
