#include <string>

#include "schema.hpp"

namespace holdfast::sqlite {

void migrate(session& s) {
    const std::string& prefix = s.how().prefix;
    const auto steps = migrations(prefix);
    const auto newest = static_cast<int>(steps.size());
    const std::string meta = expand(prefix, "{meta}");
    execute(s.handle(), "CREATE TABLE IF NOT EXISTS " + meta + "(key TEXT PRIMARY KEY, value INTEGER) WITHOUT ROWID",
            "cannot create the schema");

    int found = 0;
    {
        const statement asked = compile(s.handle(), "SELECT value FROM " + meta + " WHERE key='version'", false);
        use version(s.handle(), asked.get());
        if (version.step()) version.read(found);
    }
    if (found > newest)
        throw failed({errc::configuration,
                      "sqlite: the schema \"" + prefix + "\" in " + s.how().file + " has version " +
                          std::to_string(found) + ", this plugin knows versions up to " + std::to_string(newest) +
                          ": use a newer plugin",
                      {}});
    if (found == newest) return;
    for (int step = found; step < newest; ++step)
        execute(s.handle(), steps[static_cast<std::size_t>(step)],
                "cannot migrate the schema to version " + std::to_string(step + 1));
    execute(s.handle(), "INSERT OR REPLACE INTO " + meta + " VALUES('version', " + std::to_string(newest) + ")",
            "cannot note the schema's version");
}

void remove_schema(session& s) {
    execute(s.handle(), drop_everything(s.how().prefix), "cannot remove the schema");
}

} // namespace holdfast::sqlite
