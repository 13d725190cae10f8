// A PostgreSQL server of the tests' own, in a temporary folder, on a free port of 127.0.0.1 and on a socket.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/child_process.hpp"
#include "harness/temporary_folder.hpp"

namespace holdfast::harness {

struct postgres_options {
    bool fsync = true; // off: quick, for tests of the contract alone
    int max_connections = 60;
    std::vector<std::string> settings{}; // more lines for postgresql.conf
};

// The folder with initdb and postgres, newest version first; nothing when PostgreSQL is not installed.
std::optional<std::filesystem::path> postgres_binaries();

// One thread at a time. Whatever fails throws std::runtime_error with the end of the server's log.
class postgres_server {
public:
    explicit postgres_server(postgres_options options = {});
    ~postgres_server();
    postgres_server(const postgres_server&) = delete;
    postgres_server& operator=(const postgres_server&) = delete;

    // For a superuser over TCP, with a password.
    std::string url() const;
    // The same over the socket.
    std::string socket_url() const;
    std::uint16_t port() const noexcept { return port_; }
    const std::string& password() const noexcept { return password_; }
    std::filesystem::path log() const { return folder_ / "log"; }
    pid_t id() const noexcept { return server_ ? server_->id() : -1; }

    void start(); // until it accepts connections
    void stop();  // clients are thrown out, data is kept
    void kill();  // kill -9 of the server; its data goes through recovery at the next start
    void restart() {
        stop();
        start();
    }
    // Runs SQL with psql; what it prints, without the last line end.
    std::string psql(const std::string& sql) const;

private:
    bool accepts() const;
    std::string end_of_log() const;
    void launch();

    std::filesystem::path binaries_;
    temporary_folder folder_{"hfpg"};
    std::optional<user> user_;
    std::string password_;
    std::uint16_t port_ = 0;
    std::unique_ptr<child_process> server_;
};

} // namespace holdfast::harness
