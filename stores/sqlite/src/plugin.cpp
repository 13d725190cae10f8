// The embedded default: one file in WAL mode, for one process or for several on one host.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include <holdfast/plugin.hpp>
#include <holdfast/store.hpp>
#include <holdfast/version.hpp>

#include "facets.hpp"
#include "schema.hpp"
#include "unit.hpp"

namespace holdfast::sqlite {

namespace {

class sqlite_store final : public store {
public:
    sqlite_store(options how, runtime& on) : core_(std::make_shared<core>(std::move(how), on)) {}
    ~sqlite_store() override {
        core_->others.close();
        core_->reads.close();
        core_->writes.close();
    }

    std::string_view name() const noexcept override { return "sqlite"; }
    store_capabilities capabilities() const override {
        store_capabilities c;
        const bool full = core_->how.full_sync;
        c.writes_survive = full ? survives::power_loss : survives::process_crash;
        c.loses = full ? "nothing, as long as the disk keeps what it has flushed; everything, if the file is lost"
                       : "the latest writes when the machine crashes or loses power; everything, if the file is lost";
        c.shared = true; // by processes on one host
        c.units_of_work = true;
        c.joins_transactions = true;
        return c;
    }

    idempotency_store* idempotency() noexcept override { return &idempotency_; }
    lock_store* locks() noexcept override { return &locks_; }
    outbox_store* outbox() noexcept override { return &outbox_; }
    job_store* jobs() noexcept override { return &jobs_; }

    task<result<void>> prepare() override {
        core_->writes.may_create();
        co_return co_await write(*core_, nullptr, [](session& s) { migrate(s); });
    }
    task<result<void>> destroy() override {
        core_->writes.may_create();
        co_return co_await write(*core_, nullptr, [](session& s) { remove_schema(s); });
    }
    task<result<store_time>> now() override { co_return host_clock(); }

    task<result<std::unique_ptr<unit_of_work>>> begin() override { return begin_unit(core_); }
    task<result<std::unique_ptr<unit_of_work>>> join(native_transaction with) override {
        auto* db = with.as<sqlite3>();
        if (db == nullptr)
            co_return fail(errc::invalid_argument, "sqlite: join() takes a native_transaction::of(*sqlite3)");
        co_return join_unit(core_, db);
    }

private:
    std::shared_ptr<core> core_;
    idempotency_facet idempotency_{*core_};
    lock_facet locks_{*core_};
    outbox_facet outbox_{*core_};
    job_facet jobs_{*core_};
};

[[noreturn]] void refuse(std::string message) {
    throw failed({errc::configuration, std::move(message), std::nullopt});
}

bool is_namespace(std::string_view text) {
    const auto allowed = [](char c) {
        return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    };
    return !text.empty() && text.size() <= 40 && std::ranges::all_of(text, allowed) && !text.starts_with("sqlite");
}

options read_options(settings& from) {
    options how;
    const std::string file = from.required_text("file");
    if (file.empty() || file.starts_with(":") || file.find('\0') != std::string::npos)
        refuse("sqlite: \"" + file + "\" does not name a file");
    how.file = std::filesystem::absolute(from.required_path("file")).lexically_normal().string();
    const std::string synchronous = from.text("synchronous", "full");
    if (synchronous != "full" && synchronous != "normal")
        refuse("sqlite: synchronous is \"full\" or \"normal\", not \"" + synchronous + "\"");
    how.full_sync = synchronous == "full";
    how.secure_delete = from.flag("secure_delete", how.secure_delete);
    how.prefix = from.text("namespace", how.prefix);
    if (!is_namespace(how.prefix))
        refuse("sqlite: the namespace \"" + how.prefix +
               "\" must have 1 to 40 letters, digits and underscores, and not begin with \"sqlite\"");
    how.busy_timeout = from.time("busy_timeout", how.busy_timeout);
    how.group_commit_window = from.time("group_commit_window", how.group_commit_window);
    how.keep_succeeded = from.time("keep_succeeded", how.keep_succeeded);
    how.keep_tombstones = from.time("keep_tombstones", how.keep_tombstones);
    how.max_payload = static_cast<std::size_t>(
        from.integer("max_payload", static_cast<std::int64_t>(how.max_payload), 1, 500'000'000));
    return how;
}

std::unique_ptr<store> make_store(plugin_context& context) {
    options how = read_options(context.settings());
    if (context.runtime() == nullptr) refuse("sqlite: a store needs a runtime");
    return std::make_unique<sqlite_store>(std::move(how), *context.runtime());
}

} // namespace

} // namespace holdfast::sqlite

HOLDFAST_STORE_PLUGIN("sqlite", holdfast::version_text, "a file, by SQLite: WAL, group commit, several processes",
                      &holdfast::sqlite::make_store)
