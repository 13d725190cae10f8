// Scripts and the server that runs them: how one reaches it, what its refusals mean, and what the server keeps.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <holdfast/blocking_pool.hpp>
#include <holdfast/redis/arguments.hpp>
#include <holdfast/redis/hint_listener.hpp>
#include <holdfast/redis/pool.hpp>
#include <holdfast/runtime.hpp>
#include <holdfast/store.hpp>

namespace holdfast::redis {

enum class access : unsigned char {
    read,  // called again on another connection when the first was lost
    write, // errc::unknown_outcome then
};

// What the server's configuration says about keeping data.
struct persistence {
    bool known = false;
    bool append_only = false;
    std::string fsync;           // always, everysec, no
    bool evicts_nothing = false; // as the server says

    survives writes_survive() const noexcept;
    std::string loses() const;
};

// What a plugin runs in its namespace. Every text but that of prepare begins with lua::prelude.
struct script_library {
    int schema = 1;                        // version of what it keeps
    std::string_view kind;                 // "store": what else has the namespace is refused
    std::vector<std::string> all;          // by the plugin's own numbers
    std::vector<std::string_view> steps{}; // from version 1 to 2, from 2 to 3, …: one for each version but the first
};

namespace lua {
extern const std::string_view prelude;
std::string prepare(const script_library& of);
} // namespace lua

// Any thread.
class scripted_server {
public:
    // The library must outlive it.
    scripted_server(options settings, runtime& runs_on, const script_library& scripts)
        : how_(std::move(settings)), on_(runs_on), scripts_(scripts), places_(how_), connections_(how_, places_),
          threads_(how_.connections, most_calls_waiting), hints_(how_, places_, key("hints"), on_) {}

    // The script's answer; never an error reply.
    task<result<reply>> run(std::size_t which, arguments with, access a);

    // The rest blocks.
    result<reply> run_here(std::size_t which, arguments with, access a);
    result<void> prepare_now();
    result<void> destroy_now();
    result<store_time> time_now();
    // On a thread that may block.
    template <class T>
    task<result<T>> blocking(result<T> (scripted_server::*function)());

    persistence keeps() const;
    bool prepared() const;
    // The server is no node of a cluster, as far as prepare() was told.
    bool stands_alone() const;
    hint_listener& hints() noexcept { return hints_; }
    std::string key(std::string_view name) const { return "{" + how_.name + "}:" + std::string(name); }

private:
    error refused(std::string_view refusal) const;
    result<command> command_for(std::size_t which, arguments with) const;
    result<reply> run_now(std::size_t which, command& what, std::optional<pool::connection> begun, access a);
    result<reply> command_now(const command& what) { return connections_.call(what); }
    result<void> check_memory(persistence& into);
    result<void> load_scripts();

    static constexpr std::size_t most_calls_waiting = 1'000'000;

    const options how_;
    runtime& on_;
    const script_library& scripts_;
    locator places_;
    pool connections_;
    mutable std::mutex mutex_;
    std::string marker_; // names the data that prepare() found; empty before
    std::vector<std::string> hashes_;
    persistence keeps_;
    bool alone_ = false;
    blocking_pool
        threads_; // those of the runtime may all be taken by handlers, whose leases have to be renewed all the same
    hint_listener hints_; // the first to go
};

std::string random_marker();

// Pure: what an error reply of the server means. Nothing was written.
error to_error(std::string_view refusal, const address& where, int schema);

} // namespace holdfast::redis
