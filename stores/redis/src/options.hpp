// What a configuration says about the server and how to use it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <holdfast/duration.hpp>
#include <holdfast/error.hpp>
#include <holdfast/settings.hpp>

namespace holdfast::redis {

struct address {
    std::string host = "127.0.0.1";
    std::uint16_t port = 6379;
    std::string user;
    std::string password;
    int database = 0;

    // redis://[[user]:password@]host[:port][/database]
    static result<address> parse(std::string_view url);
    // For messages: never the password.
    std::string place() const;
};

struct options {
    address where;
    std::string name = "holdfast"; // every key starts with {name}:
    std::size_t connections = 8;
    duration timeout = std::chrono::seconds{5};
    std::size_t max_payload = 10u << 20;
    duration keep_succeeded = std::chrono::hours{24};
    duration keep_tombstones = std::chrono::hours{24 * 7};

    // Throws failed(errc::configuration).
    static options from(settings& from);
};

} // namespace holdfast::redis
