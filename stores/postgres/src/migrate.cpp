#include "migrate.hpp"

#include <holdfast/version.hpp>

#include "rows.hpp"
#include "schema_sql.hpp"

namespace holdfast::postgres {

namespace {

void lock(core& on, pqxx::transaction_base& in) {
    parameters p;
    p.one(column::int8, advisory_number(on.how().name, "schema"));
    compat::run(in, "SELECT pg_advisory_xact_lock($1::int8)", p.values());
}

void check_server(core& on, pqxx::transaction_base& in) {
    const pqxx::result rows =
        in.exec("SELECT current_setting('server_version_num'), current_setting('server_encoding'), "
                "current_setting('server_version')");
    reader cells(rows, 0);
    const std::int64_t version = cells.integer();
    const std::string encoding = cells.text();
    const std::string version_text = cells.text();
    if (version < 120000)
        throw failed(
            {errc::configuration, on.how().place() + ": needs PostgreSQL 12 or newer, found " + version_text, {}});
    if (encoding != "UTF8")
        throw failed({errc::configuration, on.how().place() + ": needs a database in UTF8, found " + encoding, {}});
}

// 0: there is none.
int installed_version(core& on, pqxx::transaction_base& in) {
    parameters p;
    p.one(column::text, std::string_view(on.how().name));
    const pqxx::result found = compat::run(
        in, "SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = $1::text AND tablename = 'meta'", p.values());
    if (compat::rows(found) == 0) return 0;
    return reader(in.exec(in_namespace("SELECT max(version) FROM {ns}.meta", on.how().name)), 0).small();
}

} // namespace

void migrate(core& on, pqxx::transaction_base& in) {
    const std::string& name = on.how().name;
    check_server(on, in);
    if (installed_version(on, in) == schema_version) return; // the usual case waits for nobody
    lock(on, in);
    const int found = installed_version(on, in);
    if (found > schema_version)
        throw failed({errc::configuration,
                      on.how().place() + ": the schema \"" + name + "\" has version " + std::to_string(found) +
                          ", this plugin (" + version_text + ") knows versions up to " +
                          std::to_string(schema_version) + "; use a newer plugin",
                      {}});
    if (found == schema_version) return;
    // Version 0, nothing, is the only older one so far.
    in.exec(in_namespace("CREATE SCHEMA IF NOT EXISTS {ns}; CREATE TABLE {ns}.meta (version integer NOT NULL, "
                         "plugin text NOT NULL, installed timestamptz NOT NULL DEFAULT now());",
                         name));
    for (const std::string_view part :
         {tables_sql(), job_functions_sql(), upkeep_functions_sql(), other_functions_sql()})
        in.exec(in_namespace(part, name));
    parameters p;
    p.one(column::int4, schema_version).one(column::text, std::string_view(version_text));
    compat::run(in, in_namespace("INSERT INTO {ns}.meta (version, plugin) VALUES ($1::int4, $2::text)", name),
                p.values());
}

void remove_schema(core& on, pqxx::transaction_base& in) {
    lock(on, in);
    in.exec(in_namespace("DROP SCHEMA IF EXISTS {ns} CASCADE", on.how().name));
}

} // namespace holdfast::postgres
