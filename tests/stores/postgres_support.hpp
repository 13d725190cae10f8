// PostgreSQL stores from the plugin file, on an Asio runtime and on a server that all cases of the program share.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <dlfcn.h>
#include <unistd.h>

#include <holdfast/asio_runtime.hpp>
#include <holdfast/identifier.hpp>
#include <holdfast/plugin.hpp>
#include <holdfast/store.hpp>
#include <holdfast/sync_wait.hpp>

#include "catch.hpp"
#include "harness/postgres_server.hpp"

// Ends the case when there is no PostgreSQL on this machine.
#define NEEDS_POSTGRES()                                                                                               \
    if (!holdfast::harness::postgres_binaries()) SKIP("PostgreSQL is not installed (no initdb and postgres found)")

namespace holdfast::test::postgres {

using text_settings = std::vector<std::pair<std::string, std::string>>;

// Without fsync, for what does not crash it.
inline harness::postgres_server& shared_server() {
    static harness::postgres_server server({.fsync = false});
    return server;
}

inline std::string fresh_namespace() {
    static int number = 0;
    return "hf_" + std::to_string(::getpid()) + "_" + std::to_string(++number);
}

inline const plugin_descriptor& descriptor() {
    static const plugin_descriptor* found = [] {
        void* file = ::dlopen(HOLDFAST_BUILD_PLUGIN_DIR "/store_postgres.so", RTLD_NOW | RTLD_LOCAL);
        if (file == nullptr) throw std::runtime_error(::dlerror());
        return static_cast<const plugin_descriptor*>(::dlsym(file, "holdfast_plugin"));
    }();
    return *found;
}

struct context final : plugin_context {
    context(holdfast::runtime& runs, const text_settings& with) : on(runs) {
        for (const auto& [key, value] : with) keys.set(key, value, "desk.toml:3");
    }
    holdfast::settings& settings() noexcept override { return keys; }
    logger& log() noexcept override { return quiet; }
    holdfast::runtime* runtime() noexcept override { return &on; }

    holdfast::runtime& on;
    holdfast::settings keys{"[store]"};
    null_logger quiet;
};

// Throws what the plugin says when it refuses its settings.
inline std::unique_ptr<store> open(runtime& on, const text_settings& with) {
    context c(on, with);
    plugin_failure why;
    void* made = descriptor().create(c, why);
    if (made == nullptr) throw std::runtime_error(why.message);
    return std::unique_ptr<store>(static_cast<store*>(made));
}

// A runtime, and one store with a namespace of its own, removed at the end.
struct desk {
    explicit desk(harness::postgres_server& at = shared_server(), text_settings more = {})
        : server(at), with(std::move(more)) {
        with.emplace_back("url", server.url());
        with.emplace_back("namespace", space);
        kept = open(on, with);
        await(kept->prepare());
    }
    ~desk() { (void)sync_wait(on, kept->destroy()); }
    desk(const desk&) = delete;
    desk& operator=(const desk&) = delete;

    job_store& jobs() { return *kept->jobs(); }
    // Another instance on the same data, prepared.
    std::unique_ptr<store> another() {
        auto more = open(on, with);
        await(more->prepare());
        return more;
    }

    // The value, or throws.
    template <class T>
    T await(task<result<T>> call) {
        result<T> answer = sync_wait(on, std::move(call));
        if (!answer) throw failed(answer.error());
        if constexpr (!std::is_void_v<T>) return std::move(*answer);
    }
    template <class T>
    result<T> attempt(task<result<T>> call) {
        return sync_wait(on, std::move(call));
    }
    // The error; the call must not go well.
    template <class T>
    error refusal(task<result<T>> call) {
        auto answer = sync_wait(on, std::move(call));
        if (answer) throw std::runtime_error("expected a refusal");
        return answer.error();
    }

    new_job job(std::string body = "{}") {
        new_job j;
        j.id = ids.next();
        j.what = {"t", 1, "application/json", std::move(body)};
        return j;
    }
    std::vector<identifier> add(int count) {
        std::vector<new_job> all;
        std::vector<identifier> made;
        for (int i = 0; i < count; ++i) made.push_back(all.emplace_back(job()).id);
        await(jobs().enqueue(std::move(all)));
        return made;
    }
    std::vector<claimed_job> claim(int limit, duration lease_for = std::chrono::minutes{1}) {
        return await(jobs().claim({{"default"}, limit, lease_for, "w"}));
    }
    job_view view(const identifier& id) { return std::get<job_view>(await(jobs().get(id))); }
    std::string sql(const std::string& text) { return server.psql(text); }

    harness::postgres_server& server;
    asio_runtime on{asio_options{}};
    identifier_source ids;
    std::string space = fresh_namespace();
    text_settings with;
    std::unique_ptr<store> kept;
};

} // namespace holdfast::test::postgres
