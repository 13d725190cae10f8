// The store of plain files claims that a lock survives a loss of power.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "catch.hpp"
#include "harness/child_process.hpp"
#include "harness/temporary_folder.hpp"

namespace fs = std::filesystem;
using namespace holdfast;

TEST_CASE("the store of plain files syncs every folder on the way to a lock before it writes the lock") {
    const harness::temporary_folder folder("hffiles");
    const fs::path synced = folder / "synced";
    const int code = harness::run(
        {.arguments = {"/usr/bin/env", "LD_PRELOAD=" HOLDFAST_SYNC_RECORDER, "HOLDFAST_SYNCED=" + synced.string(),
                       "HOLDFAST_PLUGIN_PATH=" HOLDFAST_BUILD_PLUGIN_DIR, HOLDFAST_COMMAND, "verify",
                       HOLDFAST_FILE_STORE, "--option", "folder=" + (folder / "made/for/locks").string(), "--clock",
                       "0", "--filter", "resources are any bytes"}, // long ones too: folders
         .output = folder / "output"});
    CHECK(code == 0);

    std::set<fs::path> before;
    std::size_t locks = 0;
    std::size_t deepest = 0;
    std::ifstream lines(synced);
    for (std::string line; std::getline(lines, line);) {
        const fs::path file = line;
        before.insert(file);
        if (file.extension() != ".lock") continue;
        ++locks;
        std::size_t deep = 0;
        for (fs::path each = file.parent_path(); each != folder.path().parent_path(); each = each.parent_path()) {
            INFO(each);
            REQUIRE(before.contains(each));
            ++deep;
        }
        deepest = std::max(deepest, deep);
    }
    CHECK(locks > 0);
    CHECK(deepest > 5); // the folder, made, for, locks, the namespace, and those of long names
}
