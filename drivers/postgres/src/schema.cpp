#include <holdfast/postgres/schema.hpp>

#include <holdfast/postgres/naming.hpp>
#include <holdfast/postgres/reader.hpp>
#include <holdfast/version.hpp>

namespace holdfast::postgres {

namespace {

void lock(const options& how, pqxx::transaction_base& in) {
    parameters p;
    p.one(column::int8, advisory_number(how.name, "schema"));
    compat::run(in, "SELECT pg_advisory_xact_lock($1::int8)", p.values());
}

void check_server(const options& how, pqxx::transaction_base& in) {
    const pqxx::result rows =
        in.exec("SELECT current_setting('server_version_num'), current_setting('server_encoding'), "
                "current_setting('server_version')");
    reader cells(rows, 0);
    const std::int64_t version = cells.integer();
    const std::string encoding = cells.text();
    const std::string version_text = cells.text();
    if (version < 120000)
        throw failed({errc::configuration, how.place() + ": needs PostgreSQL 12 or newer, found " + version_text, {}});
    if (encoding != "UTF8")
        throw failed({errc::configuration, how.place() + ": needs a database in UTF8, found " + encoding, {}});
}

// 0: there is none.
std::size_t installed_version(const options& how, const schema& what, pqxx::transaction_base& in) {
    parameters p;
    p.one(column::text, std::string_view(how.name));
    const pqxx::result found =
        compat::run(in,
                    "SELECT tablename FROM pg_catalog.pg_tables WHERE schemaname = $1::text AND tablename IN ('meta', "
                    "'events_meta')",
                    p.values());
    if (compat::rows(found) == 0) return 0;
    if (compat::cells(found, 0).next() != what.meta)
        throw failed(
            {errc::configuration,
             how.place() + ": the schema \"" + how.name + "\" is of another kind of plugin; choose another namespace",
             {}});
    const std::string sql = "SELECT max(version) FROM {ns}." + std::string(what.meta);
    return static_cast<std::size_t>(reader(in.exec(in_namespace(sql, how.name)), 0).integer());
}

void migrate(const options& how, const schema& what, pqxx::transaction_base& in) {
    const std::string& name = how.name;
    const std::size_t newest = what.steps.size();
    check_server(how, in);
    if (installed_version(how, what, in) == newest) return; // the usual case waits for nobody
    lock(how, in);
    const std::size_t found = installed_version(how, what, in);
    if (found > newest)
        throw failed({errc::configuration,
                      how.place() + ": the schema \"" + name + "\" has version " + std::to_string(found) +
                          ", this plugin (" + version_text + ") knows versions up to " + std::to_string(newest) +
                          "; use a newer plugin",
                      {}});
    if (found == newest) return;
    const std::string meta(what.meta);
    if (found == 0)
        in.exec(in_namespace("CREATE SCHEMA IF NOT EXISTS {ns}; CREATE TABLE {ns}." + meta +
                                 " (version integer NOT NULL, plugin text NOT NULL, "
                                 "installed timestamptz NOT NULL DEFAULT now());",
                             name));
    for (std::size_t i = found; i < newest; ++i)
        for (const std::string_view part : what.steps[i]) in.exec(in_namespace(part, name));
    parameters p;
    p.one(column::int4, static_cast<std::int64_t>(newest)).one(column::text, std::string_view(version_text));
    compat::run(in, in_namespace("INSERT INTO {ns}." + meta + " (version, plugin) VALUES ($1::int4, $2::text)", name),
                p.values());
}

durability read_durability(pqxx::transaction_base& in) {
    const pqxx::result rows = in.exec("SELECT current_setting('fsync'), current_setting('full_page_writes'), "
                                      "current_setting('synchronous_commit')");
    reader cells(rows, 0);
    durability found;
    found.fsync = cells.text() == "on";
    found.full_page_writes = cells.text() == "on";
    found.synchronous_commit = cells.text();
    return found;
}

result<durability> prepare_now(pool& on, const schema& what, slot with) {
    for (int tries = 0;; ++tries) {
        const auto opened = with.open();
        if (!opened) return std::unexpected(opened.error());
        try {
            const pool::watch watched(on, **opened);
            pqxx::work transaction((*opened)->session());
            migrate(on.how(), what, transaction);
            durability found = read_durability(transaction);
            transaction.commit();
            return found;
        } catch (const failed& e) {
            return std::unexpected(e.what_failed());
        } catch (...) {
            const compat::fault trouble = compat::current_fault();
            const bool lost = !(*opened)->session().is_open();
            if (lost) with.drop();
            // Safe to do again whatever became of it.
            if (tries < 3 && (lost || trouble.what == compat::fault::kind::rolled_back)) continue;
            return std::unexpected(to_error(trouble, on.how(), false));
        }
    }
}

result<void> remove_now(pool& on, slot with) {
    const auto opened = with.open();
    if (!opened) return std::unexpected(opened.error());
    try {
        pqxx::work transaction((*opened)->session());
        lock(on.how(), transaction);
        transaction.exec(in_namespace("DROP SCHEMA IF EXISTS {ns} CASCADE", on.how().name));
        transaction.commit();
    } catch (...) {
        return std::unexpected(to_error(compat::current_fault(), on.how(), true));
    }
    return {};
}

} // namespace

survives durability::writes_survive() const noexcept {
    if (!fsync || !full_page_writes) return survives::server_crash;
    return synchronous_commit == "off" ? survives::process_crash : survives::power_loss;
}

std::string durability::loses() const {
    if (!fsync || !full_page_writes)
        return "everything, when the machine loses power: the server runs with fsync or full_page_writes off";
    if (synchronous_commit == "off")
        return "the last fraction of a second, when the server crashes: it runs with synchronous_commit off";
    return "nothing acknowledged, while the disk is good; after a failover to an asynchronous replica, what it had not "
           "received";
}

task<result<durability>> prepare(pool& on, schema what) {
    auto here = [&](slot with) { return prepare_now(on, what, std::move(with)); };
    co_return co_await on.run<durability>(std::move(here));
}

task<result<void>> remove_schema(pool& on) {
    auto here = [&](slot with) { return remove_now(on, std::move(with)); };
    co_return co_await on.run<void>(std::move(here));
}

} // namespace holdfast::postgres
