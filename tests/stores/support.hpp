// Stores from their plugin files, on an Asio runtime: what the tests of every store share.
#pragma once

#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <dlfcn.h>
#include <unistd.h>

#include <holdfast/asio_runtime.hpp>
#include <holdfast/identifier.hpp>
#include <holdfast/plugin.hpp>
#include <holdfast/store.hpp>
#include <holdfast/sync_wait.hpp>

namespace holdfast::test {

using text_settings = std::vector<std::pair<std::string, std::string>>;

// From arguments of a program, each KEY=VALUE.
inline text_settings settings_from(int count, char** arguments, int first) {
    text_settings with;
    for (int i = first; i < count; ++i) {
        const std::string text = arguments[i];
        const auto at = text.find('=');
        with.emplace_back(text.substr(0, at), text.substr(at + 1));
    }
    return with;
}

inline std::string fresh_namespace() {
    static int number = 0;
    return "hf_" + std::to_string(::getpid()) + "_" + std::to_string(++number);
}

struct store_context final : plugin_context {
    store_context(holdfast::runtime& runs, const text_settings& with) : on(runs) {
        for (const auto& [key, value] : with) keys.set(key, value, "desk.toml:3");
    }
    holdfast::settings& settings() noexcept override { return keys; }
    logger& log() noexcept override { return quiet; }
    holdfast::runtime* runtime() noexcept override { return &on; }

    holdfast::runtime& on;
    holdfast::settings keys{"[store]"};
    null_logger quiet;
};

// Of the plugin in that file of the build, without its ending.
inline const plugin_descriptor& descriptor_of(const std::string& name) {
    const std::string file = std::string(HOLDFAST_BUILD_PLUGIN_DIR) + "/" + name + ".so";
    void* opened = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (opened == nullptr) throw std::runtime_error(::dlerror());
    return *static_cast<const plugin_descriptor*>(::dlsym(opened, "holdfast_plugin"));
}

// Throws what the plugin says when it refuses its settings. Any thread.
template <class Interface>
std::unique_ptr<Interface> open_plugin(const std::string& name, runtime& on, const text_settings& with) {
    static std::mutex mutex;
    static std::vector<std::unique_ptr<store_context>> contexts; // outlive what was made with them
    auto context = std::make_unique<store_context>(on, with);
    plugin_failure why;
    void* made = descriptor_of(name).create(*context, why);
    if (made == nullptr) throw std::runtime_error(why.message);
    const std::lock_guard lock(mutex);
    contexts.push_back(std::move(context));
    return std::unique_ptr<Interface>(static_cast<Interface*>(made));
}

inline std::unique_ptr<store> open_store(const std::string& plugin, runtime& on, const text_settings& with) {
    return open_plugin<store>("store_" + plugin, on, with);
}

template <class T>
T value_of(result<T> answer) {
    if (!answer) throw failed(answer.error());
    if constexpr (!std::is_void_v<T>) return std::move(*answer);
}

// A runtime and a store on it, which whoever derives from this opens.
struct store_desk {
    store_desk() = default;
    store_desk(const store_desk&) = delete;
    store_desk& operator=(const store_desk&) = delete;

    job_store& jobs() { return *kept->jobs(); }

    // The value, or throws.
    template <class T>
    T await(task<result<T>> call) {
        return value_of(attempt(std::move(call)));
    }
    template <class T>
    result<T> attempt(task<result<T>> call) {
        return sync_wait(on, std::move(call));
    }
    // The error; the call must not go well.
    template <class T>
    error refusal(task<result<T>> call) {
        auto answer = attempt(std::move(call));
        if (answer) throw std::runtime_error("expected a refusal");
        return answer.error();
    }

    new_job job(std::string body = "{}") {
        new_job j;
        j.id = ids.next();
        j.what = {"t", 1, "application/json", std::move(body)};
        return j;
    }
    identifier add(std::string body = "{}") {
        new_job j = job(std::move(body));
        const identifier id = j.id;
        await(jobs().enqueue({std::move(j)}));
        return id;
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
    claimed_job claim_one() {
        auto got = claim(1);
        if (got.size() != 1) throw std::runtime_error("expected a job to claim");
        return std::move(got.front());
    }
    static settlement success(const claimed_job& of) {
        settlement s;
        s.held = &of.lease;
        return s;
    }
    settled settle(const job_lease& held, settlement::kind how = settlement::kind::succeed) {
        const settlement one[] = {{&held, how, {}, {}, {}}};
        return await(jobs().settle(one)).at(0);
    }
    job_view view(const identifier& id) { return std::get<job_view>(await(jobs().get(id))); }
    job_state state_of(const identifier& id) { return view(id).state; }

    asio_runtime on{asio_options{}};
    identifier_source ids;
    text_settings with;
    std::unique_ptr<store> kept;
};

} // namespace holdfast::test
