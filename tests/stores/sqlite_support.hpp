// SQLite stores from the plugin file, on an Asio runtime, in a temporary folder.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <dlfcn.h>
#include <sqlite3.h>

#include <holdfast/asio_runtime.hpp>
#include <holdfast/identifier.hpp>
#include <holdfast/plugin.hpp>
#include <holdfast/store.hpp>
#include <holdfast/sync_wait.hpp>

#include "harness/temporary_folder.hpp"

namespace holdfast::test::sqlite {

using text_settings = std::vector<std::pair<std::string, std::string>>;

inline const plugin_descriptor& descriptor() {
    static const plugin_descriptor* found = [] {
        void* file = ::dlopen(HOLDFAST_BUILD_PLUGIN_DIR "/store_sqlite.so", RTLD_NOW | RTLD_LOCAL);
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

template <class T>
T value_of(result<T> answer) {
    if (!answer) throw failed(answer.error());
    if constexpr (!std::is_void_v<T>) return std::move(*answer);
}

// One store on a file of its own.
struct desk {
    explicit desk(text_settings more = {}) : with(std::move(more)) {
        with.emplace_back("file", file());
        kept = open(on, with);
        await(kept->prepare());
    }

    std::string file() const { return (folder / "store.db").string(); }
    job_store& jobs() { return *kept->jobs(); }

    // The value, or throws.
    template <class T>
    T await(task<result<T>> call) {
        return value_of(sync_wait(on, std::move(call)));
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
    identifier add(std::string body = "{}") {
        auto j = job(std::move(body));
        const auto id = j.id;
        await(jobs().enqueue({std::move(j)}));
        return id;
    }
    std::vector<claimed_job> claim(int limit, duration lease_for = std::chrono::minutes{1}) {
        return await(jobs().claim({{"default"}, limit, lease_for, "w"}));
    }
    settled settle(const job_lease& held, settlement::kind how = settlement::kind::succeed) {
        const settlement one[] = {{&held, how, {}, {}, {}}};
        return await(jobs().settle(one)).at(0);
    }

    harness::temporary_folder folder{"hfsqlite"};
    asio_runtime on{asio_options{}};
    identifier_source ids;
    text_settings with;
    std::unique_ptr<store> kept;
};

// A connection of the test's own.
class raw_file {
public:
    explicit raw_file(const std::string& file) {
        if (sqlite3_open(file.c_str(), &db_) != SQLITE_OK) throw std::runtime_error("cannot open " + file);
        sqlite3_busy_timeout(db_, 10'000);
    }
    ~raw_file() { sqlite3_close_v2(db_); }
    raw_file(const raw_file&) = delete;
    raw_file& operator=(const raw_file&) = delete;

    sqlite3& handle() const { return *db_; }
    // The first column of the first row.
    std::string run(const std::string& sql) const {
        std::string first;
        char* why = nullptr;
        const auto keep = [](void* into, int, char** values, char**) {
            if (static_cast<std::string*>(into)->empty() && values[0] != nullptr)
                *static_cast<std::string*>(into) = values[0];
            return 0;
        };
        if (sqlite3_exec(db_, sql.c_str(), keep, &first, &why) == SQLITE_OK) return first;
        const std::string message = why == nullptr ? "?" : why;
        sqlite3_free(why);
        throw std::runtime_error(message);
    }

private:
    sqlite3* db_ = nullptr;
};

} // namespace holdfast::test::sqlite
