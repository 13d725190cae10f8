// Redis stores from the plugin file, on an Asio runtime.
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
#include "harness/redis_server.hpp"
#include "harness/tcp_proxy.hpp"

// Ends the case when there is no Redis on this machine.
#define NEEDS_REDIS()                                                                                                  \
    if (!holdfast::harness::redis_binary()) SKIP("Redis is not installed (no redis-server found)")

namespace holdfast::test::redis {

using text_settings = std::vector<std::pair<std::string, std::string>>;

inline std::string fresh_namespace() {
    static int number = 0;
    return "hf_" + std::to_string(::getpid()) + "_" + std::to_string(++number);
}

inline const plugin_descriptor& descriptor() {
    static const plugin_descriptor* found = [] {
        void* file = ::dlopen(HOLDFAST_BUILD_PLUGIN_DIR "/store_redis.so", RTLD_NOW | RTLD_LOCAL);
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

// A runtime, and one prepared store with a namespace of its own.
struct desk {
    explicit desk(std::string url, text_settings more = {}) : with(std::move(more)) {
        with.emplace_back("url", std::move(url));
        with.emplace_back("namespace", fresh_namespace());
        with.emplace_back("timeout", "2s");
        kept = open(on, with);
        await(kept->prepare());
    }

    // The value, or throws.
    template <class T>
    T await(task<result<T>> call) {
        result<T> answer = sync_wait(on, std::move(call));
        if (!answer) throw failed(answer.error());
        if constexpr (!std::is_void_v<T>) return std::move(*answer);
    }
    // The error; the call must not go well.
    template <class T>
    error refusal(task<result<T>> call) {
        auto answer = sync_wait(on, std::move(call));
        if (answer) throw std::runtime_error("expected a refusal");
        return answer.error();
    }

    job_store& jobs() { return *kept->jobs(); }
    new_job job() {
        new_job j;
        j.id = ids.next();
        j.what = {"t", 1, "application/json", "{}"};
        return j;
    }
    identifier add() {
        const new_job j = job();
        await(jobs().enqueue({j}));
        return j.id;
    }
    claimed_job claim_one() {
        auto got = await(jobs().claim({{"default"}, 1, std::chrono::minutes{1}, "w"}));
        if (got.size() != 1) throw std::runtime_error("expected a job to claim");
        return std::move(got.front());
    }
    settlement success(const claimed_job& of) {
        settlement s;
        s.held = &of.lease;
        return s;
    }
    job_state state_of(const identifier& id) { return std::get<job_view>(await(jobs().get(id))).state; }

    asio_runtime on{asio_options{}};
    identifier_source ids;
    text_settings with;
    std::unique_ptr<store> kept;
};

} // namespace holdfast::test::redis
