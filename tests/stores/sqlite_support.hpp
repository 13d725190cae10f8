// SQLite stores in a temporary folder.
#pragma once

#include <stdexcept>
#include <string>

#include <sqlite3.h>

#include "harness/temporary_folder.hpp"
#include "stores/support.hpp"

namespace holdfast::test::sqlite {

using test::text_settings;
using test::value_of;

inline std::unique_ptr<store> open(runtime& on, const text_settings& with) {
    return open_store("sqlite", on, with);
}

// One store on a file of its own.
struct desk : store_desk {
    explicit desk(text_settings more = {}) {
        with = std::move(more);
        with.emplace_back("file", file());
        kept = open(on, with);
        await(kept->prepare());
    }
    ~desk() { kept.reset(); } // before its folder goes

    std::string file() const { return (folder / "store.db").string(); }

    harness::temporary_folder folder{"hfsqlite"};
};

// A connection of the test's own.
class raw_file {
public:
    explicit raw_file(const std::string& file) {
        if (sqlite3_open(file.c_str(), &db_) != SQLITE_OK) throw std::runtime_error("cannot open " + file);
        sqlite3_busy_timeout(db_, 10'000);
    }
    ~raw_file() { sqlite3_close_v2(db_); }
    raw_file(const raw_file&) = delete;
    raw_file& operator=(const raw_file&) = delete;

    sqlite3& handle() const { return *db_; }
    // The first column of the first row.
    std::string run(const std::string& sql) const {
        std::string first;
        char* why = nullptr;
        const auto keep = [](void* into, int, char** values, char**) {
            if (static_cast<std::string*>(into)->empty() && values[0] != nullptr)
                *static_cast<std::string*>(into) = values[0];
            return 0;
        };
        if (sqlite3_exec(db_, sql.c_str(), keep, &first, &why) == SQLITE_OK) return first;
        const std::string message = why == nullptr ? "?" : why;
        sqlite3_free(why);
        throw std::runtime_error(message);
    }

private:
    sqlite3* db_ = nullptr;
};

} // namespace holdfast::test::sqlite
