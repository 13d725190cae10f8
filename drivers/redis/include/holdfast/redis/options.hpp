// What a configuration says about the servers and how to use them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/duration.hpp>
#include <holdfast/error.hpp>
#include <holdfast/settings.hpp>

namespace holdfast::redis {

// Files; empty: the system's certificates, none of our own.
struct tls_files {
    std::string ca;
    std::string certificate;
    std::string key;
};

struct address {
    std::string host = "127.0.0.1";
    std::uint16_t port = 6379;
    std::string user;
    std::string password;
    int database = 0;
    bool tls = false;
    tls_files files;

    bool same_server(const address& other) const noexcept { return host == other.host && port == other.port; }
    // For messages: never the password.
    std::string place() const;
};

// What a URL names: servers that know each other, or sentinels that know where the master is.
struct place_list {
    std::vector<address> servers; // or sentinels; at least one
    std::string master;           // as the sentinels call it; empty: there are none

    // redis://[[user]:password@]host[:port][,host[:port]…][/database], rediss:// with TLS, or
    // redis-sentinel://[[user]:password@]host[:port][,host[:port]…]/master[/database]
    static result<place_list> parse(std::string_view url);
};

// More servers, "host:port,host:port…", with the login, database and TLS of `like`. `key` is what messages call them. Throws
// failed(errc::configuration).
std::vector<address> parse_servers(std::string_view key, std::string_view list, const address& like);

struct options {
    place_list where;
    std::string sentinel_password;
    std::string name; // every key starts with {name}:
    std::size_t connections = 8;
    duration timeout = std::chrono::seconds{5};
    std::size_t max_payload = 10u << 20;

    // Throws failed(errc::configuration).
    static options from(settings& from, const std::string& default_name);
};

} // namespace holdfast::redis
