// A PgBouncer of the tests' own, on a free port of 127.0.0.1: every transaction may get another session of the server.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "harness/child_process.hpp"
#include "harness/postgres_server.hpp"
#include "harness/temporary_folder.hpp"

namespace holdfast::harness {

struct pgbouncer_options {
    int sessions = 3;         // with the server, shared by all clients
    bool round_robin = false; // true: never the same session twice in a row; false: the one that was used last
};

// Nothing when PgBouncer is not installed.
std::optional<std::filesystem::path> pgbouncer_binary();

// One thread at a time. The server must outlive it. Whatever fails throws std::runtime_error with its log.
class pgbouncer {
public:
    explicit pgbouncer(const postgres_server& of, pgbouncer_options options = {});
    pgbouncer(const pgbouncer&) = delete;
    pgbouncer& operator=(const pgbouncer&) = delete;

    // For the superuser of the server.
    std::string url() const;

private:
    void start(const postgres_server& of, const pgbouncer_options& options);
    std::string log() const;

    temporary_folder folder_{"hfpool"};
    std::string login_;
    std::uint16_t port_ = 0;
    std::unique_ptr<child_process> process_;
};

} // namespace holdfast::harness
