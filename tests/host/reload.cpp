#include "catch.hpp"

#include <holdfast/host.hpp>
#include <holdfast/simulated_runtime.hpp>

#include "support.hpp"

using namespace support;
using namespace holdfast;
using namespace std::chrono_literals;

namespace {

constexpr policy mail({.name = "mail", .retry = {.max_attempts = 4, .delay = 10ms}, .timeout = 30s});
constexpr policy hook({.name = "hook", .timeout = 5s});

struct reloading {
    temporary_folder folder;
    fs::path file;
    std::shared_ptr<kept_log> log = std::make_shared<kept_log>();
    simulated_runtime on;
    host under_test;

    explicit reloading(std::string_view toml)
        : file(folder.write("desk.toml", toml)), under_test(host::from_file(file)) {
        under_test.log_to(log).use(on).add(mail, hook).start();
    }
    result<void> reload(std::string_view toml) {
        folder.write("desk.toml", toml);
        return under_test.reload();
    }
    int attempts() { return *under_test.policies().bind("mail").options().retry.max_attempts; }
    duration hook_timeout() { return *under_test.policies().bind("hook").options().timeout; }
};

} // namespace

TEST_CASE("a reload puts new values in force and says what changed") {
    reloading test("[policies.mail]\nmax_attempts = 6\n");
    CHECK(test.attempts() == 6);
    CHECK(test.reload("[policies.mail]\nmax_attempts = 1\n[policies.hook]\ntimeout = '1s'\n"));
    CHECK(test.attempts() == 1);
    CHECK(test.hook_timeout() == 1s);
    CHECK(test.log->has("info " + test.file.string() + ": policy \"hook\": timeout 5s -> 1s"));
    CHECK(test.log->has("info reloaded " + test.file.string()));
}

TEST_CASE("what a reload no longer mentions goes back to what was declared") {
    reloading test("[policies.mail]\nmax_attempts = 6\n");
    CHECK(test.reload(""));
    CHECK(test.attempts() == 4);
}

TEST_CASE("an invalid reload is refused whole, and later ones still work") {
    reloading test("[policies.mail]\nmax_attempts = 6\n");
    const std::string name = test.file.string();
    const std::vector<std::pair<std::string, std::string>> cases = {
        {"[policies.mail]\nmax_attempts = 2\n[policies.hook]\ntimeout = 'soon'\n",
         name + ":4: [policies.hook] timeout: expected a duration such as \"250ms\", \"10s\", \"5m\", \"6h\", \"1d\", "
                "found \"soon\""},
        {"[policies.mail]\nmax_attempts = 2\n[policies.hok]\ntimeout = '1s'\n",
         name + ":3: there is no policy \"hok\"; did you mean \"hook\"?"},
        {"[policies.mail]\nmax_attempts = 2\n[policies.hook]\ntotal_timeout = '1s'\n",
         name + ":3: policy \"hook\": timeout (of one attempt) is longer than total_timeout"},
        {"[policies.mail]\nmax_attempts = 2\n[zebra]\n", name + ":3: there is no section [zebra]"},
    };
    for (const auto& [toml, message] : cases) {
        const auto reloaded = test.reload(toml);
        REQUIRE_FALSE(reloaded);
        CHECK(reloaded.error().message == message);
        CHECK(test.log->has("error reload refused, nothing was changed: " + message));
        CHECK(test.attempts() == 6);
        CHECK(test.hook_timeout() == 5s);
    }
    CHECK(test.reload("[policies.mail]\nmax_attempts = 2\n"));
    CHECK(test.attempts() == 2);
}

TEST_CASE("a reload without its file is refused") {
    reloading test("[policies.mail]\nmax_attempts = 6\n");
    fs::remove(test.file);
    const auto reloaded = test.under_test.reload();
    REQUIRE_FALSE(reloaded);
    CHECK(reloaded.error().message == test.file.string() + ": there is no such file");
    CHECK(test.attempts() == 6);
}

TEST_CASE("a reload keeps what a breaker knows") {
    reloading test("[policies.hook.breaker]\nconsecutive_failures = 2\n");
    const auto hooked = test.under_test.policies().bind("hook");
    for (int i = 0; i < 2; ++i) hooked.try_execute([] { throw std::runtime_error("down"); });
    CHECK(hooked.circuit() == circuit_state::open);
    CHECK(test.reload("[policies.hook]\ntimeout = '1s'\n[policies.hook.breaker]\nconsecutive_failures = 2\n"));
    CHECK(hooked.circuit() == circuit_state::open);
    CHECK(test.hook_timeout() == 1s);
}

TEST_CASE("sections that a reload cannot apply are named") {
    reloading test("");
    CHECK(test.reload("[log]\nlevel = 'debug'\n[plugins]\npath = ['x']\n"));
    CHECK(test.log->has("warning " + test.file.string() + ": [log] changed; that counts at the next start"));
    CHECK(test.log->has("warning " + test.file.string() + ": [plugins] changed; that counts at the next start"));
    CHECK_FALSE(test.log->has("warning " + test.file.string() + ": [runtime] changed; that counts at the next start"));
}

TEST_CASE("another store, or other promises, count at the next start") {
    const std::string path = "[plugins]\npath = ['" HOLDFAST_BUILD_PLUGIN_DIR "']\n";
    reloading test(path + "[store]\nplugin = 'memory'\n[promises]\nunits_of_work = true\n");
    const auto changed = [&](const std::string& section) {
        return test.log->has("warning " + test.file.string() + ": [" + section +
                             "] changed; that counts at the next start");
    };
    CHECK(test.reload(path + "\n[promises]\nunits_of_work = true\n[store]\nplugin = 'memory'\n"));
    CHECK_FALSE(changed("store"));
    CHECK_FALSE(changed("promises"));
    CHECK(test.reload(path + "[store]\nplugin = 'memory'\n[store.jobs]\nplugin = 'sqlite'\n[promises]\n"
                             "shared = true\n"));
    CHECK(changed("store"));
    CHECK(changed("promises"));
    CHECK(test.under_test.store_of(facet::jobs).name() == "memory");
}

TEST_CASE("a host from text cannot reload") {
    simulated_runtime on;
    auto host = host::from_text("", "inline");
    host.log_to(std::make_shared<null_logger>()).use(on).start();
    const auto reloaded = host.reload();
    REQUIRE_FALSE(reloaded);
    CHECK(reloaded.error().message == "inline: not read from a file, so it cannot be read again");
}
