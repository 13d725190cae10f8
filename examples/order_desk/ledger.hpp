// An application's own SQLite file: the least that the example needs of it.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <sqlite3.h>

// One thread at a time. Members throw std::runtime_error.
class ledger {
public:
    explicit ledger(const std::filesystem::path& file);
    ~ledger();
    ledger(const ledger&) = delete;
    ledger& operator=(const ledger&) = delete;

    // Statements without a result, or with one number.
    void run(const std::string& sql);
    long long number(const std::string& sql);
    // An INSERT with values, each as text.
    void insert(const std::string& sql, const std::vector<std::string>& values);

    sqlite3& handle() { return *db_; }

private:
    sqlite3* db_ = nullptr;
};

// BEGIN, and ROLLBACK unless commit() was called.
class transaction {
public:
    explicit transaction(ledger& in) : in_(in) { in_.run("BEGIN IMMEDIATE"); }
    ~transaction() {
        if (!done_) sqlite3_exec(&in_.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
    }
    transaction(const transaction&) = delete;
    transaction& operator=(const transaction&) = delete;
    void commit() {
        in_.run("COMMIT");
        done_ = true;
    }

private:
    ledger& in_;
    bool done_ = false;
};
