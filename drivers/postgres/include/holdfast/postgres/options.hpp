// What a configuration says about the server and how to use it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <holdfast/duration.hpp>
#include <holdfast/error.hpp>
#include <holdfast/settings.hpp>

namespace holdfast::postgres {

struct options {
    std::string url; // as libpq takes it: postgresql://… or host=… dbname=…
    std::size_t connections = 8;
    std::string name; // the schema that everything is in
    std::size_t max_payload = 10u << 20;
    duration statement_timeout = std::chrono::seconds{30};
    duration listen_check = std::chrono::seconds{5}; // how often the connection that listens is asked whether it lives
    bool pooler = false;                             // a proxy may give every transaction another session

    // Throws failed(errc::configuration).
    static options from(settings& from, const std::string& default_name);

    // The URL with what we add unless it says otherwise: an application name and a limit on connecting.
    std::string connect_url() const;
    // Host, port and database, for messages.
    std::string place() const;
    // Takes the password out of a message.
    std::string without_secrets(std::string message) const;
};

} // namespace holdfast::postgres
