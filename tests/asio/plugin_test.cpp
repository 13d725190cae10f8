// The Asio runtime as a plugin file.
#include <string>

#include <dlfcn.h>

#include <holdfast/plugin.hpp>
#include <holdfast/version.hpp>

#include "asio/support.hpp"
#include "catch.hpp"

#if defined(HOLDFAST_BUILD_PLUGIN_DIR)

using namespace holdfast;

namespace {

struct context final : plugin_context {
    holdfast::settings& settings() noexcept override { return keys; }
    logger& log() noexcept override { return quiet; }
    holdfast::runtime* runtime() noexcept override { return nullptr; }
    holdfast::settings keys{"[runtime]"};
    null_logger quiet;
};

const plugin_descriptor& descriptor() {
    void* file = ::dlopen(HOLDFAST_BUILD_PLUGIN_DIR "/runtime_asio.so", RTLD_NOW | RTLD_LOCAL);
    REQUIRE(file != nullptr);
    const void* symbol = ::dlsym(file, "holdfast_plugin");
    REQUIRE(symbol != nullptr);
    return *static_cast<const plugin_descriptor*>(symbol);
}

std::string refusal(std::string key, std::string value) {
    context c;
    c.keys.set(std::move(key), std::move(value), "desk.toml:3");
    plugin_failure why;
    CHECK(descriptor().create(c, why) == nullptr);
    return why.message;
}

} // namespace

TEST_CASE("asio plugin: says what it is") {
    const auto& d = descriptor();
    CHECK(d.magic == plugin_magic);
    CHECK(d.abi == plugin_abi);
    CHECK(d.kind == static_cast<std::uint32_t>(plugin_kind::runtime));
    CHECK(std::string(d.name) == "asio");
    CHECK(std::string(d.version) == version_text);
}

TEST_CASE("asio plugin: makes a runtime that works, from its settings") {
    context c;
    c.keys.set("threads", "3");
    c.keys.set("blocking_threads", "1");
    c.keys.set("blocking_queue", "1");
    plugin_failure why;
    void* made = descriptor().create(c, why);
    REQUIRE(made != nullptr);
    CHECK_FALSE(c.keys.first_unknown());
    auto& rt = *static_cast<runtime*>(made);
    CHECK(rt.name() == "asio");
    parker done;
    testing::call w([&](wake) { done.unpark(); });
    REQUIRE(rt.post(w));
    rt.wait(done);
    descriptor().destroy(made);
}

TEST_CASE("asio plugin: refuses settings that are out of range, saying where and what was expected") {
    using Catch::Matchers::ContainsSubstring;
    CHECK_THAT(refusal("threads", "0"), ContainsSubstring("desk.toml:3") && ContainsSubstring("from 1 to 256"));
    CHECK_THAT(refusal("threads", "257"), ContainsSubstring("threads"));
    CHECK_THAT(refusal("blocking_threads", "1025"), ContainsSubstring("from 1 to 1024"));
    CHECK_THAT(refusal("blocking_queue", "many"), ContainsSubstring("from 1 to 1000000"));
}

#endif
