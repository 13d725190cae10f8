// What the facets share: the server and the store's scripts on it.
#pragma once

#include <utility>

#include <holdfast/redis/scripted_server.hpp>

#include "scripts.hpp"
#include "store_options.hpp"

namespace holdfast::redis {

// Any thread.
class core : public scripted_server {
public:
    core(store_options settings, runtime& runs_on)
        : scripted_server(static_cast<const options&>(settings), runs_on, store_scripts()), how(std::move(settings)) {}

    // The script's answer; never an error reply.
    task<result<reply>> run(script which, arguments with, access a) {
        return scripted_server::run(static_cast<std::size_t>(which), std::move(with), a);
    }

    // The same on this thread, which waits for it.
    result<reply> run_here(script which, arguments with, access a) {
        return scripted_server::run_here(static_cast<std::size_t>(which), std::move(with), a);
    }

    const store_options how;
};

} // namespace holdfast::redis
