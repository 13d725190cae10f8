// A Redis server of the tests' own, in a temporary folder, on a free port of 127.0.0.1.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/child_process.hpp"
#include "harness/temporary_folder.hpp"

namespace holdfast::harness {

struct redis_options {
    bool append_only = true;
    std::string fsync = "everysec";
    std::vector<std::string> arguments{}; // more of the command line: "--maxmemory", "10mb"
    bool tls = false;                     // a second port, with TLS, where clients must show a certificate
};

// Nothing when Redis is not installed.
std::optional<std::filesystem::path> redis_binary();
// What makes the certificates of a server with TLS; nothing when it is not installed.
std::optional<std::filesystem::path> openssl_binary();
// One command to whatever speaks the protocol at that port of 127.0.0.1: the texts and numbers of the whole answer, one
// of several lines taken apart. Nothing when it does not answer.
std::optional<std::vector<std::string>> redis_lines(std::uint16_t port, const std::string& command);

// One thread at a time. Whatever fails throws std::runtime_error with the end of the server's log.
class redis_server {
public:
    explicit redis_server(redis_options options = {});
    ~redis_server();
    redis_server(const redis_server&) = delete;
    redis_server& operator=(const redis_server&) = delete;

    std::string url() const { return "redis://127.0.0.1:" + std::to_string(port_) + "/0"; }
    std::uint16_t port() const noexcept { return port_; }
    std::string tls_url() const { return "rediss://127.0.0.1:" + std::to_string(tls_port_) + "/0"; }
    std::uint16_t tls_port() const noexcept { return tls_port_; }
    // ca.crt has signed the server's certificate and that of client.crt, client.key; other.crt, other.key are signed by
    // themselves, and nobody trusts them.
    std::filesystem::path tls_file(const std::string& name) const { return folder_ / "tls" / name; }
    std::filesystem::path log() const { return folder_ / "log"; }

    void start();  // until it answers, on the data of before
    void stop();   // data is kept
    void kill();   // kill -9
    void freeze(); // connections stay open, nothing is answered, until
    void thaw();
    // Takes that many bytes off the end of what a server that was killed has written, as a machine does that dies.
    void lose_tail(std::uintmax_t bytes) const;
    // Of what it has written; nothing that is in a file that it made when it started.
    std::uintmax_t written() const;
    // One command in the simple form of the protocol, without blanks inside words; the first line of the answer.
    std::string tell(const std::string& command) const;
    // The same, as redis_lines().
    std::vector<std::string> lines(const std::string& command) const;

private:
    void choose_ports();
    void launch();
    std::filesystem::path append_file() const;
    std::string end_of_log() const;

    redis_options options_;
    std::filesystem::path binary_;
    temporary_folder folder_{"hfredis"};
    std::uint16_t port_ = 0;
    std::uint16_t tls_port_ = 0;
    std::unique_ptr<child_process> server_;
};

} // namespace holdfast::harness
