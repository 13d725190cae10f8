// A store with one facet: locks, kept in plain files. One file per resource holds the token of its latest holder and the
// time when that one's right ends; flock() lets one process at a time look and write. The files stay when a lock is
// released, for a token must never come twice.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <holdfast/blocking_pool.hpp>
#include <holdfast/plugin.hpp>
#include <holdfast/store.hpp>
#include <holdfast/store_limits.hpp>

namespace {

namespace fs = std::filesystem;
using namespace holdfast;

constexpr std::uint32_t format_version = 1;

// [record]
// What a file holds. `until` is 0 when nobody has the lock.
struct record {
    std::uint32_t version = format_version;
    std::uint32_t reserved = 0;
    std::uint64_t token = 0;
    std::int64_t until = 0; // microseconds on the system's clock, which is this store's clock

    bool held(std::int64_t now) const noexcept { return until > now; }
};

std::int64_t now_us() {
    using namespace std::chrono;
    return duration_cast<microseconds>(system_clock::now().time_since_epoch()).count();
}
// [/record]

[[noreturn]] void refuse(const char* doing, const fs::path& file) {
    throw std::system_error(errno, std::generic_category(), std::string("cannot ") + doing + " " + file.string());
}

// [names]
// Makes the name of a file survive a loss of power, and the names of the folders on the way to it: each of them may be
// new, and made by another process just now.
void keep_names(const fs::path& file) {
    for (fs::path at = file; at != at.root_path(); at = at.parent_path()) {
        const int folder = ::open(at.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (folder < 0 && errno == EACCES) return; // not ours, so what is in it was there before
        const int problem = folder < 0 || ::fsync(folder) != 0 ? errno : 0;
        if (folder >= 0) ::close(folder);
        errno = problem;
        if (problem != 0) refuse("keep", at);
    }
}
// [/names]

// [file]
// The file of a resource, open and locked against other processes and threads until it is closed.
class locked_file {
public:
    locked_file(fs::path file, bool make) : path_(std::move(file)) {
        if (make) fs::create_directories(path_.parent_path());
        handle_ = ::open(path_.c_str(), O_RDWR | O_CLOEXEC | (make ? O_CREAT : 0), 0600);
        if (handle_ < 0 && errno == ENOENT) return; // never locked
        if (handle_ < 0) refuse("open", path_);
        while (::flock(handle_, LOCK_EX) != 0)
            if (errno != EINTR) refuse("lock", path_);
    }
    ~locked_file() {
        if (handle_ >= 0) ::close(handle_);
    }
    locked_file(const locked_file&) = delete;
    locked_file& operator=(const locked_file&) = delete;

    bool exists() const noexcept { return handle_ >= 0; }
    record read() const {
        record r;
        const auto size = ::pread(handle_, &r, sizeof(r), 0);
        if (size < 0) refuse("read", path_);
        if (size != sizeof(r)) return {}; // new, or its first write was cut off: nobody was told of a token
        if (r.version > format_version)
            throw failed({errc::unsupported,
                          path_.string() + " was written in format " + std::to_string(r.version) +
                              ", this plugin knows " + std::to_string(format_version),
                          std::nullopt});
        return r;
    }
    // Durable when it returns.
    void write(const record& r) const {
        if (fs::file_size(path_) == 0) keep_names(path_); // first, so that whatever has a record has a name that stays
        if (::pwrite(handle_, &r, sizeof(r), 0) != sizeof(r) || ::fsync(handle_) != 0) refuse("write", path_);
    }

private:
    fs::path path_;
    int handle_ = -1;
};
// [/file]

// [blocking]
// Files block, so the work is done on threads of our own: those of the runtime's pool are for handlers, who may have all of
// them while a lease has to be renewed. No exception gets past a plugin's boundary.
template <class Function>
task<result<std::invoke_result_t<Function&>>> on_pool(runtime& on, blocking_pool& threads, Function work) {
    using value = std::invoke_result_t<Function&>;
    error why;
    try {
        auto running = run_blocking(on, threads, std::move(work));
        if constexpr (std::is_void_v<value>) {
            co_await std::move(running);
            co_return result<void>{};
        } else {
            co_return co_await std::move(running);
        }
    } catch (const failed& e) {
        why = e.what_failed();
    } catch (const std::exception& e) {
        why = {errc::unavailable, e.what(), std::nullopt};
    }
    co_return std::unexpected(std::move(why));
}
// [/blocking]

class file_locks final : public lock_store {
public:
    file_locks(runtime& on, blocking_pool& threads, fs::path folder)
        : on_(on), threads_(threads), folder_(std::move(folder)) {}

    // [acquire]
    task<result<std::optional<lock_lease>>> try_acquire(std::string resource, duration ttl) override {
        if (auto fine = check(resource, ttl); !fine) co_return std::unexpected(std::move(fine.error()));
        auto taking = on_pool(on_, threads_, [this, resource, ttl]() -> std::optional<lock_lease> {
            const locked_file file(path_of(resource), true);
            record r = file.read();
            const std::int64_t now = now_us();
            if (r.held(now)) return std::nullopt;
            ++r.token; // larger than any before, for the file is never removed
            r.until = end_of(now, ttl);
            file.write(r);
            return lock_lease(resource, r.token);
        });
        co_return co_await std::move(taking);
    }
    // [/acquire]

    task<result<void>> renew(const lock_lease& held, duration ttl) override {
        return renew_it(held.subject(), held.token(), ttl);
    }
    task<result<void>> release(const lock_lease& held) override { return release_it(held.subject(), held.token()); }

private:
    // [renew]
    // The lease may be gone before a task gets its turn, so these take copies.
    task<result<void>> renew_it(std::string resource, std::uint64_t token, duration ttl) {
        if (auto fine = check(resource, ttl); !fine) co_return fine;
        auto renewing = on_pool(on_, threads_, [this, resource, token, ttl] {
            const locked_file file(path_of(resource), false);
            record r = file.exists() ? file.read() : record{};
            const std::int64_t now = now_us();
            if (r.token != token || !r.held(now))
                throw failed({errc::stale_lease, "the lock \"" + resource + "\" was lost", std::nullopt});
            r.until = end_of(now, ttl);
            file.write(r);
        });
        co_return co_await std::move(renewing);
    }
    // [/renew]
    task<result<void>> release_it(std::string resource, std::uint64_t token) {
        auto releasing = on_pool(on_, threads_, [this, resource, token] {
            const locked_file file(path_of(resource), false);
            record r = file.exists() ? file.read() : record{};
            if (r.token != token || r.until == 0) return; // lost already: not an error
            r.until = 0;
            file.write(r);
        });
        co_return co_await std::move(releasing);
    }

    static result<void> check(const std::string& resource, duration ttl) {
        if (auto fine = store_limits::check_key("resource", resource); !fine) return fine;
        if (ttl <= duration::zero()) return fail(errc::invalid_argument, "a lock must last longer than 0");
        return {};
    }
    static std::int64_t end_of(std::int64_t now, duration ttl) {
        const auto us = std::chrono::duration_cast<std::chrono::microseconds>(ttl).count();
        return now + std::clamp<std::int64_t>(us, 1, INT64_MAX - now);
    }
    // A resource is any bytes and may be longer than a file's name: hexadecimal, a folder for every hundred bytes.
    fs::path path_of(const std::string& resource) const {
        constexpr char digits[] = "0123456789abcdef";
        fs::path path = folder_;
        std::string part;
        for (std::size_t i = 0; i < resource.size(); ++i) {
            const auto byte = static_cast<unsigned char>(resource[i]);
            part += {digits[byte >> 4], digits[byte & 15]};
            if (i % 100 != 99 || i + 1 == resource.size()) continue;
            path /= part;
            part.clear();
        }
        return path / (part + ".lock");
    }

    runtime& on_;
    blocking_pool& threads_;
    const fs::path folder_;
};

// [store]
class file_store final : public store {
public:
    file_store(runtime& on, fs::path folder) : on_(on), folder_(std::move(folder)), locks_(on, threads_, folder_) {}

    std::string_view name() const noexcept override { return "files"; }
    store_capabilities capabilities() const override {
        return {.writes_survive = survives::power_loss, .loses = "nothing acknowledged", .shared = true};
    }
    lock_store* locks() noexcept override { return &locks_; }

    task<result<void>> prepare() override {
        return on_pool(on_, threads_, [folder = folder_] { fs::create_directories(folder); });
    }
    task<result<store_time>> now() override {
        co_return store_time(std::chrono::microseconds(now_us())); // one machine, one clock
    }
    task<result<void>> destroy() override {
        return on_pool(on_, threads_, [folder = folder_] { fs::remove_all(folder); });
    }

private:
    runtime& on_;
    const fs::path folder_;
    blocking_pool threads_{4, 10'000}; // at most: threads, calls that wait for one
    file_locks locks_;
};

std::unique_ptr<store> make_file_store(plugin_context& context) {
    const fs::path folder = context.settings().required_text("folder");
    const std::string part = context.settings().text("namespace", "holdfast");
    return std::make_unique<file_store>(*context.runtime(), fs::absolute(folder) / part);
}

} // namespace

HOLDFAST_STORE_PLUGIN("files", "1.0.0", "locks in plain files", &make_file_store)
// [/store]
