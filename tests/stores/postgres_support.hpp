// PostgreSQL stores on a server that all cases of the program share.
#pragma once

#include <csignal>
#include <stdexcept>
#include <string>

#include "catch.hpp"
#include "harness/postgres_server.hpp"
#include "stores/support.hpp"

// Ends the case when there is no PostgreSQL on this machine.
#define NEEDS_POSTGRES()                                                                                               \
    if (!holdfast::harness::postgres_binaries()) SKIP("PostgreSQL is not installed (no initdb and postgres found)")

namespace holdfast::test::postgres {

using test::fresh_namespace;
using test::text_settings;

// Without fsync, for what does not crash it.
inline harness::postgres_server& shared_server() {
    static harness::postgres_server server({.fsync = false});
    return server;
}

inline std::unique_ptr<store> open(runtime& on, const text_settings& with) {
    return open_store("postgres", on, with);
}

// One store with a namespace of its own, removed at the end.
struct desk : store_desk {
    explicit desk(harness::postgres_server& at = shared_server(), text_settings more = {}) : server(at) {
        with = std::move(more);
        with.emplace_back("url", server.url());
        with.emplace_back("namespace", space);
        kept = open(on, with);
        await(kept->prepare());
    }
    ~desk() { (void)sync_wait(on, kept->destroy()); }

    // Another instance on the same data, prepared.
    std::unique_ptr<store> another() {
        auto more = open(on, with);
        await(more->prepare());
        return more;
    }
    std::string sql(const std::string& text) { return server.psql(text); }

    harness::postgres_server& server;
    std::string space = fresh_namespace();
};

// The server process of the one connection that listens, stopped while this lives: nothing reaches whom it serves, and the
// lock that says so is held.
class deaf_while {
public:
    explicit deaf_while(desk& d) {
        const std::string found =
            d.sql("SELECT string_agg(DISTINCT pid::text, ', ') FROM pg_locks WHERE locktype = 'advisory' AND granted");
        id_ = std::stoi("0" + found);
        if (found != std::to_string(id_)) throw std::runtime_error("one should listen, and these do: " + found);
        ::kill(id_, SIGSTOP);
    }
    ~deaf_while() { ::kill(id_, SIGCONT); }
    deaf_while(const deaf_while&) = delete;
    deaf_while& operator=(const deaf_while&) = delete;

private:
    pid_t id_ = 0;
};

} // namespace holdfast::test::postgres
