#include "schema.hpp"

#include "sql.hpp"

namespace holdfast::sqlite {

void migrate(sqlite3* db, const options& how, const std::vector<std::string>& steps) {
    const std::string& prefix = how.prefix;
    const auto newest = static_cast<int>(steps.size());
    const std::string meta = expand(prefix, "{meta}");
    execute(db, "CREATE TABLE IF NOT EXISTS " + meta + "(key TEXT PRIMARY KEY, value INTEGER) WITHOUT ROWID",
            "cannot create the schema");

    int found = 0;
    {
        const statement asked = compile(db, "SELECT value FROM " + meta + " WHERE key='version'", false);
        use version(db, asked.get());
        if (version.step()) version.read(found);
    }
    if (found > newest)
        throw failed({errc::configuration,
                      "sqlite: the schema \"" + prefix + "\" in " + how.file + " has version " + std::to_string(found) +
                          ", this plugin knows versions up to " + std::to_string(newest) + ": use a newer plugin",
                      {}});
    if (found == newest) return;
    for (int step = found; step < newest; ++step)
        execute(db, steps[static_cast<std::size_t>(step)],
                "cannot migrate the schema to version " + std::to_string(step + 1));
    execute(db, "INSERT OR REPLACE INTO " + meta + " VALUES('version', " + std::to_string(newest) + ")",
            "cannot note the schema's version");
}

void migrate(session& s) {
    migrate(s.handle(), s.how(), migrations(s.how().prefix));
}

void remove_schema(session& s) {
    execute(s.handle(), drop_everything(s.how().prefix), "cannot remove the schema");
}

} // namespace holdfast::sqlite
