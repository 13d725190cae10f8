#include "catch.hpp"

#include <cstdlib>

#include <unistd.h>

#include <holdfast/plugin_library.hpp>

#include "support.hpp"

using namespace support;
using namespace holdfast;

namespace {

class environment_variable {
public:
    environment_variable(const char* name, const std::string& value) : name_(name) {
        if (const char* before = std::getenv(name)) before_ = before;
        ::setenv(name, value.c_str(), 1);
    }
    ~environment_variable() {
        if (before_) ::setenv(name_, before_->c_str(), 1);
        else ::unsetenv(name_);
    }
    environment_variable(const environment_variable&) = delete;
    environment_variable& operator=(const environment_variable&) = delete;

private:
    const char* name_;
    std::optional<std::string> before_;
};

result<loaded_plugin> find(const std::vector<fs::path>& folders, std::string_view name, logger& log,
                           plugin_kind kind = plugin_kind::runtime) {
    return find_plugin(list_plugins(folders), kind, name, log);
}

} // namespace

TEST_CASE("the search path is what was given, then the environment, then the executable's folders, each once") {
    const temporary_folder a, b, c;
    const environment_variable path("HOLDFAST_PLUGIN_PATH", b.text() + "::" + c.text() + ":" + b.text());
    const auto folders = plugin_search_path({a.path(), c.path()});
    REQUIRE(folders.size() > 3);
    CHECK(folders[0] == a.path());
    CHECK(folders[1] == c.path());
    CHECK(folders[2] == b.path());
    const fs::path bin = fs::read_symlink("/proc/self/exe").parent_path();
    CHECK(std::ranges::count(folders, bin / "plugins") == 1);
    CHECK(std::ranges::count(folders, b.path()) == 1);
}

TEST_CASE("a folder lists its libraries by name, the refused ones too, and nothing else") {
    const temporary_folder folder;
    folder.plugin("good_runtime", "b");
    folder.plugin("other_abi", "a");
    folder.write("readme.txt", "hello");
    const auto listed = list_plugins({folder.path()});
    REQUIRE(listed.size() == 1);
    CHECK_FALSE(listed[0].problem);
    REQUIRE(listed[0].files.size() == 2);
    CHECK(listed[0].files[0].file == folder.path() / "a.so");
    CHECK_FALSE(listed[0].files[0].loaded);
    CHECK(listed[0].files[1].loaded);
}

TEST_CASE("a plugin is found by its own name, whatever its file is called") {
    const temporary_folder folder;
    null_logger log;
    folder.plugin("good_runtime", "whatever");
    const auto found = find({folder.path()}, "simple", log);
    REQUIRE(found);
    CHECK(found->file() == folder.path() / "whatever.so");
}

TEST_CASE("of two plugins with the same name the first in the path wins, with a warning") {
    const temporary_folder first, second;
    kept_log log;
    first.plugin("good_runtime");
    second.plugin("good_runtime");
    const auto found = find({first.path(), second.path()}, "simple", log);
    REQUIRE(found);
    CHECK(found->file() == first.path() / "good_runtime.so");
    CHECK(log.lines() ==
          std::vector<std::string>{"warning " + second.text() +
                                   "/good_runtime.so: ignored: the runtime plugin \"simple\" is taken from " +
                                   first.text() + "/good_runtime.so"});
}

TEST_CASE("a plugin that is not there: the message has every folder and what was in it") {
    const temporary_folder full, empty;
    null_logger log;
    full.plugin("good_runtime");
    full.plugin("good_application");
    full.plugin("no_symbol");
    const fs::path absent = empty.path() / "absent";
    const auto found = find({full.path(), empty.path(), absent}, "simpel", log);
    REQUIRE_FALSE(found);
    CHECK(found.error().code == errc::plugin);
    CHECK(
        found.error().message ==
        "there is no runtime plugin \"simpel\"; did you mean \"simple\"? Looked in " + full.text() +
            ": desk (application), simple (runtime), no_symbol.so (refused: not a Holdfast plugin: it does not export "
            "holdfast_plugin); " +
            empty.text() + ": no plugins; " + absent.string() + ": there is no such folder");
}

TEST_CASE("a plugin of another kind is not found, and not suggested") {
    const temporary_folder folder;
    null_logger log;
    folder.plugin("good_application");
    const auto found = find({folder.path()}, "desk", log);
    REQUIRE_FALSE(found);
    CHECK(found.error().message ==
          "there is no runtime plugin \"desk\". Looked in " + folder.text() + ": desk (application)");
}

TEST_CASE("a folder that anyone may write to is refused, with the command that mends it") {
    const temporary_folder folder;
    folder.plugin("good_runtime");
    fs::permissions(folder.path(), fs::perms::others_write, fs::perm_options::add);
    const auto listed = list_plugins({folder.path()});
    REQUIRE(listed[0].problem);
    CHECK(listed[0].problem->message ==
          folder.text() + ": anyone may write to this folder; refused until: chmod o-w " + folder.text());
    CHECK(listed[0].files.empty());
    fs::permissions(folder.path(), fs::perms::others_write, fs::perm_options::remove);
    CHECK_FALSE(list_plugins({folder.path()})[0].problem);
}

TEST_CASE("a file that anyone may write to is refused, also behind a link, with the command that mends it") {
    const temporary_folder folder;
    const fs::path file = folder.plugin("good_runtime");
    const fs::path link = folder.path() / "link.so";
    fs::create_symlink(file, link);
    fs::permissions(file, fs::perms::others_write, fs::perm_options::add);
    for (const fs::path& each : {file, link}) {
        const auto loaded = load_plugin(each);
        REQUIRE_FALSE(loaded);
        CHECK(loaded.error().message ==
              each.string() + ": anyone may write to this file; refused until: chmod o-w " + each.string());
    }
}

TEST_CASE("a file in a folder that anyone may write to is refused, also when a link leads there") {
    const temporary_folder open, closed;
    const fs::path file = open.plugin("good_runtime");
    const fs::path link = closed.path() / "link.so";
    fs::create_symlink(file, link);
    fs::permissions(open.path(), fs::perms::others_write, fs::perm_options::add);
    for (const fs::path& each : {file, link}) {
        const auto loaded = load_plugin(each);
        REQUIRE_FALSE(loaded);
        CHECK(loaded.error().message == fs::canonical(open.path()).string() +
                                            ": anyone may write to this folder; refused until: chmod o-w " +
                                            fs::canonical(open.path()).string());
    }
    fs::permissions(open.path(), fs::perms::sticky_bit, fs::perm_options::add); // only owners may replace files
    CHECK(load_plugin(file));
}

TEST_CASE("a file that a strange group may write to is refused, our own group may") {
    const temporary_folder folder;
    const fs::path file = folder.plugin("good_runtime");
    fs::permissions(file, fs::perms::group_write, fs::perm_options::add);
    REQUIRE(::chown(file.c_str(), static_cast<uid_t>(-1), ::getegid()) == 0);
    CHECK(load_plugin(file));
    if (::geteuid() != 0) SKIP("only root can give a file to a group that it is not in");
    REQUIRE(::chown(file.c_str(), static_cast<uid_t>(-1), 54321) == 0);
    const auto loaded = load_plugin(file);
    REQUIRE_FALSE(loaded);
    CHECK(loaded.error().message ==
          file.string() + ": group 54321 may write to this file; refused until: chmod g-w " + file.string());
}
