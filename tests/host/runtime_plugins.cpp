// Each runtime that was built, as a plugin file.
#include <filesystem>
#include <string>
#include <vector>

#include <dlfcn.h>

#include <holdfast/plugin.hpp>
#include <holdfast/version.hpp>

#include "catch.hpp"
#include "runtimes/call.hpp"

using namespace holdfast;

namespace {

struct context final : plugin_context {
    holdfast::settings& settings() noexcept override { return keys; }
    logger& log() noexcept override { return quiet; }
    holdfast::runtime* runtime() noexcept override { return nullptr; }
    holdfast::settings keys{"[runtime]"};
    null_logger quiet;
};

std::string file_of(const std::string& runtime) {
    return HOLDFAST_BUILD_PLUGIN_DIR "/runtime_" + runtime + ".so";
}

std::vector<std::string> built_runtimes() {
    std::vector<std::string> built;
    for (const std::string each : {"asio", "folly"})
        if (std::filesystem::exists(file_of(each))) built.push_back(each);
    return built;
}

const plugin_descriptor& descriptor_of(const std::string& runtime) {
    void* file = ::dlopen(file_of(runtime).c_str(), RTLD_NOW | RTLD_LOCAL);
    REQUIRE(file != nullptr);
    const void* symbol = ::dlsym(file, "holdfast_plugin");
    REQUIRE(symbol != nullptr);
    return *static_cast<const plugin_descriptor*>(symbol);
}

std::string refusal(const std::string& runtime, std::string key, std::string value) {
    context c;
    c.keys.set(std::move(key), std::move(value), "desk.toml:3");
    plugin_failure why;
    CHECK(descriptor_of(runtime).create(c, why) == nullptr);
    return why.message;
}

} // namespace

TEST_CASE("runtime plugins: say what they are") {
    for (const auto& name : built_runtimes()) {
        const auto& d = descriptor_of(name);
        CHECK(d.magic == plugin_magic);
        CHECK(d.abi == plugin_abi);
        CHECK(d.kind == static_cast<std::uint32_t>(plugin_kind::runtime));
        CHECK(d.name == name);
        CHECK(std::string(d.version) == version_text);
    }
}

TEST_CASE("runtime plugins: make a runtime that works, from its settings") {
    for (const auto& name : built_runtimes()) {
        context c;
        c.keys.set("threads", "3");
        c.keys.set("blocking_threads", "1");
        c.keys.set("blocking_queue", "1");
        plugin_failure why;
        void* made = descriptor_of(name).create(c, why);
        REQUIRE(made != nullptr);
        CHECK_FALSE(c.keys.first_unknown());
        auto& rt = *static_cast<runtime*>(made);
        CHECK(rt.name() == name);
        parker done;
        testing::call w([&](wake) { done.unpark(); });
        REQUIRE(rt.post(w));
        rt.wait(done);
        descriptor_of(name).destroy(made);
    }
}

TEST_CASE("runtime plugins: refuse settings that are out of range, saying where and what was expected") {
    using Catch::Matchers::ContainsSubstring;
    for (const auto& name : built_runtimes()) {
        CHECK_THAT(refusal(name, "threads", "0"),
                   ContainsSubstring("desk.toml:3") && ContainsSubstring("from 1 to 256"));
        CHECK_THAT(refusal(name, "threads", "257"), ContainsSubstring("threads"));
        CHECK_THAT(refusal(name, "blocking_threads", "1025"), ContainsSubstring("from 1 to 1024"));
        CHECK_THAT(refusal(name, "blocking_queue", "many"), ContainsSubstring("from 1 to 1000000"));
    }
}
