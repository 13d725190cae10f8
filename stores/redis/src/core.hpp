// What the facets share: how a script reaches the server, and what its refusals mean.
#pragma once

#include <array>
#include <mutex>
#include <string>
#include <utility>

#include <holdfast/runtime.hpp>
#include <holdfast/store.hpp>

#include "arguments.hpp"
#include "hint_listener.hpp"
#include "pool.hpp"
#include "scripts.hpp"

namespace holdfast::redis {

enum class access : unsigned char {
    read,  // called again on another connection when the first was lost
    write, // errc::unknown_outcome then
};

// What the server's configuration says about keeping data.
struct persistence {
    bool known = false;
    bool append_only = false;
    std::string fsync; // always, everysec, no
};

// Any thread.
class core {
public:
    core(options settings, runtime& runs_on)
        : how(std::move(settings)), on(runs_on), places_(how), connections_(how, places_),
          hints_(how, places_, key("hints")) {}

    // The script's answer; never an error reply.
    task<result<reply>> run(script which, arguments with, access a);

    // The rest blocks.
    result<reply> run_now(script which, arguments& with, access a);
    result<void> prepare_now();
    result<void> destroy_now();
    result<store_time> time_now();
    // On a thread that may block.
    template <class T>
    task<result<T>> blocking(result<T> (core::*function)());

    persistence keeps() const;
    bool prepared() const;
    hint_listener& hints() noexcept { return hints_; }

    const options how;
    runtime& on;

private:
    std::string key(std::string_view name) const { return "{" + how.name + "}:" + std::string(name); }
    result<reply> command_now(const command& what) { return connections_.call(what); }
    result<void> check_memory(persistence& into);
    result<void> load_scripts();

    locator places_;
    pool connections_;
    mutable std::mutex mutex_;
    std::string marker_; // names the data that prepare() found; empty before
    std::array<std::string, script_count> hashes_;
    persistence keeps_;
    hint_listener hints_; // the first to go
};

std::string random_marker();

// Pure: what an error reply of the server means. Nothing was written.
error to_error(std::string_view refusal, const address& where);

} // namespace holdfast::redis
