#include "catch.hpp"

#include <holdfast/plugin_library.hpp>

#include "support.hpp"

using namespace support;
using namespace holdfast;

namespace {

// What the host says of a file, without the file's name, which it must begin with.
std::string refusal_of(const fs::path& file) {
    const auto loaded = load_plugin(file);
    if (loaded) return "loaded";
    const std::string prefix = file.string() + ": ";
    if (!loaded.error().message.starts_with(prefix)) return "does not name the file: " + loaded.error().message;
    return loaded.error().message.substr(prefix.size());
}

std::string this_build() {
    return "ABI " + std::to_string(plugin_abi) + " (" HOLDFAST_TOOLCHAIN ")";
}

std::string create_refusal(const fs::path& file, settings with = settings("[runtime]")) {
    null_logger log;
    const auto plugin = load_plugin(file);
    if (!plugin) return "not loaded: " + plugin.error().message;
    const auto made = create_runtime(*plugin, std::move(with), log);
    return made ? "created" : made.error().message;
}

} // namespace

TEST_CASE("a good plugin is loaded and tells what it is") {
    const auto plugin = load_plugin(fixture("good_runtime"));
    REQUIRE(plugin);
    CHECK(plugin->kind() == plugin_kind::runtime);
    CHECK(plugin->name() == "simple");
    CHECK(plugin->version() == "1.2.3");
    CHECK(plugin->summary() == "one thread for everything");
}

TEST_CASE("a library that exports no descriptor is refused") {
    CHECK(refusal_of(fixture("no_symbol")) == "not a Holdfast plugin: it does not export holdfast_plugin");
}

TEST_CASE("a plugin of another ABI is refused with both builds") {
    CHECK(refusal_of(fixture("other_abi")) == "built for ABI " + std::to_string(plugin_abi + 1) +
                                                  " (gcc 99, libstdc++ 99), this host needs " + this_build() +
                                                  "; rebuild it against holdfast 0.1");
}

TEST_CASE("a plugin of another toolchain is refused with both builds") {
    CHECK(refusal_of(fixture("other_toolchain")) == "built for ABI " + std::to_string(plugin_abi) +
                                                        " (gcc 99, libstdc++ 99), this host needs " + this_build() +
                                                        "; rebuild it against holdfast 0.1");
}

TEST_CASE("a descriptor with the wrong magic is refused") {
    CHECK(refusal_of(fixture("wrong_magic")) ==
          "not a Holdfast plugin: holdfast_plugin begins with 0xdeadbeef, expected 0x444c4f48");
}

TEST_CASE("a descriptor that is too small is refused, and not read beyond its end") {
    const auto size = std::to_string(sizeof(plugin_descriptor));
    CHECK(refusal_of(fixture("smaller")) == "its descriptor has " + std::to_string(sizeof(plugin_descriptor) - 8) +
                                                " bytes, this host needs " + size +
                                                "; rebuild it against holdfast 0.1");
    CHECK(refusal_of(fixture("tiny")) ==
          "its descriptor has 8 bytes, this host needs " + size + "; rebuild it against holdfast 0.1");
}

TEST_CASE("a larger descriptor of the same ABI is welcome") {
    const auto plugin = load_plugin(fixture("larger"));
    REQUIRE(plugin);
    CHECK(plugin->name() == "larger");
}

TEST_CASE("a plugin of an unknown kind, or without a name, is refused") {
    CHECK(refusal_of(fixture("wrong_kind")) == "a plugin of kind 77, which this host does not know");
    CHECK(refusal_of(fixture("nameless")) == "its descriptor leaves out the name, version, summary, create or destroy");
}

TEST_CASE("what is not a library at all is refused") {
    const temporary_folder folder;
    CHECK(refusal_of(folder.path() / "absent.so") == "there is no such file");
    CHECK(refusal_of(folder.path()) == "not a file");
    CHECK(refusal_of(folder.write("text.so", "This is not a library.\n")) == "not a shared library");
    CHECK(refusal_of(folder.write("empty.so", "")) == "not a shared library: the file is empty");
}

TEST_CASE("a library that was cut short anywhere is refused and crashes nothing") {
    const temporary_folder folder;
    const std::string whole = read_file(fixture("good_runtime"));
    REQUIRE(whole.size() > 8192);
    CHECK(refusal_of(folder.write("cut.so", whole.substr(0, 3))) == "not a shared library");
    CHECK(refusal_of(folder.write("cut.so", whole.substr(0, 40))) ==
          "truncated: its headers tell of 64 bytes, the file has 40");
    for (const std::size_t size :
         {std::size_t{64}, std::size_t{200}, std::size_t{1024}, whole.size() / 4, whole.size() - 1}) {
        const std::string refusal = refusal_of(folder.write("cut.so", whole.substr(0, size)));
        CHECK_THAT(refusal, Catch::Matchers::StartsWith("truncated: its headers tell of "));
        CHECK_THAT(refusal, Catch::Matchers::EndsWith(" bytes, the file has " + std::to_string(size)));
    }
}

TEST_CASE("a library for another machine is refused") {
    const temporary_folder folder;
    std::string library = read_file(fixture("good_runtime"));
    library[18] = 42; // e_machine: SuperH
    CHECK(refusal_of(folder.write("foreign.so", library)) == "a library for another kind of machine");
}

TEST_CASE("a plugin that fails to start is refused with its reason") {
    CHECK(create_refusal(fixture("throws_exception")) ==
          fixture("throws_exception").string() + ": could not start: the moon is in the wrong phase");
    CHECK(create_refusal(fixture("throws_number")) ==
          fixture("throws_number").string() + ": could not start: it threw something that is not a std::exception");
    CHECK(create_refusal(fixture("returns_nothing")) ==
          fixture("returns_nothing").string() + ": could not start: its factory returned nothing");
    CHECK(create_refusal(fixture("no_reason")) ==
          fixture("no_reason").string() + ": could not start: it gives no reason");
}

TEST_CASE("a plugin of another kind than the one asked for is refused") {
    CHECK(create_refusal(fixture("good_application")) ==
          fixture("good_application").string() +
              ": found the application plugin \"desk\", expected a plugin of kind runtime");
}

TEST_CASE("a setting that the plugin does not know is refused where it was written") {
    settings with("[runtime]");
    with.set("thraeds", "1", "desk.toml:3");
    CHECK(create_refusal(fixture("good_runtime"), with) ==
          "desk.toml:3: [runtime] has no key \"thraeds\"; did you mean \"threads\"?");
}

TEST_CASE("a setting that the plugin refuses is reported where it was written") {
    settings with("[runtime]");
    with.set("threads", "9", "desk.toml:3");
    CHECK(create_refusal(fixture("good_runtime"), with) ==
          "desk.toml:3: [runtime] threads: expected a whole number from 1 to 1, found \"9\"");
}

TEST_CASE("a runtime from a plugin runs, and is destroyed with its instance") {
    kept_log log;
    const auto plugin = load_plugin(fixture("good_runtime"));
    REQUIRE(plugin);
    {
        const auto made = create_runtime(*plugin, settings("[runtime]"), log);
        REQUIRE(made);
        CHECK((*made)->name() == "simple");
        CHECK(log.has("debug simple runtime made"));
    }
}
