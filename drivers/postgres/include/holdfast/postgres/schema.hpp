// Creating, migrating and removing a schema, and what the server promises for it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <holdfast/postgres/pool.hpp>
#include <holdfast/store.hpp>

namespace holdfast::postgres {

// What a plugin keeps in its namespace. `{ns}` stands for the namespace in every text.
struct schema {
    std::string_view meta;                            // the table that tells its version
    std::vector<std::vector<std::string_view>> steps; // each from one version to the next; the first from nothing
};

// What the server said of itself; until then, the usual.
struct durability {
    bool fsync = true;
    bool full_page_writes = true;
    std::string synchronous_commit = "on";

    survives writes_survive() const noexcept;
    std::string loses() const;
};

// One transaction under an advisory lock: whole or not at all, and one at a time. errc::configuration for a schema that
// is newer than this plugin or of another kind of plugin, and for a server that cannot hold it.
task<result<durability>> prepare(pool& on, schema what);
task<result<void>> remove_schema(pool& on);

} // namespace holdfast::postgres
