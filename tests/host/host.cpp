#include "catch.hpp"

#include <thread>

#include <holdfast/host.hpp>
#include <holdfast/plugin.hpp>
#include <holdfast/simulated_runtime.hpp>
#include <holdfast/sleep.hpp>

#include "support.hpp"

using namespace support;
using namespace holdfast;
using namespace std::chrono_literals;

namespace {

constexpr policy invoice_email({.name = "invoice-email", .retry = {.max_attempts = 4, .delay = 10s}, .timeout = 30s});
constexpr policy webhook({.name = "webhook", .retry = {.max_attempts = 2, .delay = 1ms}, .total_timeout = 5s});
constexpr policy careless({.name = "careless", .retry = {.max_attempts = 3}});

// On the fixture runtime.
std::string simple_toml(std::string_view rest = "") {
    return "[runtime]\nplugin = \"simple\"\n[plugins]\npath = [\"" HOLDFAST_FIXTURE_DIR "\"]\n" + std::string(rest);
}

host quiet_host(const std::string& toml, std::shared_ptr<logger> log = std::make_shared<null_logger>()) {
    auto made = host::from_text(toml, "desk.toml");
    made.log_to(std::move(log));
    return made;
}

int call_until_third(host& on) {
    int calls = 0;
    return on.policies().execute(webhook, [&] {
        if (++calls < 3) throw std::runtime_error("not yet");
        return calls;
    });
}

} // namespace

TEST_CASE("a host runs policies on the runtime that its configuration names") {
    auto host = quiet_host(simple_toml());
    host.add(invoice_email, webhook).add(careless);
    host.start();
    CHECK(host.runtime().name() == "simple");
    CHECK(call_until_third(host) == 3);
    auto outcome = host.policies().try_execute("webhook", [] { return 7; });
    CHECK(outcome.value() == 7);
}

TEST_CASE("without a configured runtime a host takes asio") {
    auto host = quiet_host("[plugins]\npath = [\"" HOLDFAST_BUILD_PLUGIN_DIR "\"]\n");
    host.add(webhook);
    host.start();
    CHECK(host.runtime().name() == "asio");
    CHECK(call_until_third(host) == 3);
}

TEST_CASE("a plugin may be named by its file, from the configuration's folder on") {
    const temporary_folder folder;
    folder.plugin("good_runtime", "mine");
    const fs::path file = folder.write("desk.toml", "[runtime]\nplugin = './mine.so'\n");
    auto host = host::from_file(file);
    host.log_to(std::make_shared<null_logger>()).start();
    CHECK(host.runtime().name() == "simple");
}

TEST_CASE("relative plugin folders start at the configuration's folder") {
    const temporary_folder folder;
    fs::create_directory(folder.path() / "here");
    fs::copy_file(fixture("good_runtime"), folder.path() / "here/x.so");
    const fs::path file = folder.write("desk.toml", "[runtime]\nplugin = 'simple'\n[plugins]\npath = ['here']\n");
    auto host = host::from_file(file);
    CHECK(host.plugin_folders().front() == folder.path() / "here");
    host.log_to(std::make_shared<null_logger>()).start();
    CHECK(host.runtime().name() == "simple");
}

TEST_CASE("a runtime plugin that is not there is an error with the place that names it") {
    auto host = quiet_host("[runtime]\nplugin = 'smiple'\n[plugins]\npath = ['" HOLDFAST_FIXTURE_DIR "']\n");
    const std::string message = message_of([&] { host.start(); });
    CHECK_THAT(message, Catch::Matchers::StartsWith("desk.toml:2: there is no runtime plugin \"smiple\"; did you mean "
                                                    "\"simple\"? Looked in " HOLDFAST_FIXTURE_DIR ": "));
    CHECK_THAT(message, Catch::Matchers::ContainsSubstring("no_symbol.so (refused: "));
}

TEST_CASE("a plugin file that is refused is an error with the place that names it") {
    const auto file = fixture("other_toolchain").string();
    auto host = quiet_host("[log]\n[runtime]\nplugin = '" + file + "'\n");
    CHECK_THAT(message_of([&] { host.start(); }),
               Catch::Matchers::StartsWith("desk.toml:3: " + file + ": built for ABI " + std::to_string(plugin_abi) +
                                           " (gcc 99, libstdc++ 99), "));
}

TEST_CASE("a key that the runtime plugin does not know is refused by name and line") {
    auto host = quiet_host("[runtime]\nplugin = '" + fixture("good_runtime").string() + "'\nthraeds = 1\n");
    CHECK(message_of([&] { host.start(); }) ==
          "desk.toml:3: [runtime] has no key \"thraeds\"; did you mean \"threads\"?");
}

TEST_CASE("a runtime that brings its own runner has it used") {
    auto host = quiet_host("[runtime]\nplugin = '" + fixture("own_runner").string() + "'\n");
    host.add(webhook).start();
    CHECK(message_of([&] { host.policies().bind("webhook"); }) == "the runner of the plugin was asked for webhook");
}

TEST_CASE("the program may bring its own runtime") {
    simulated_runtime mine;
    auto host = quiet_host("[policies.webhook]\nmax_attempts = 3\n");
    host.use(mine).add(webhook).start();
    CHECK(&host.runtime() == &mine);
    CHECK(call_until_third(host) == 3);
    host.stop();
    CHECK_FALSE(mine.stopped());

    auto other = quiet_host("[log]\n[runtime]\nthreads = 1\n");
    CHECK(message_of([&] { other.use(mine); }) == "desk.toml:2: [runtime] must go: the program brings its own runtime");
}

TEST_CASE("a policy that is registered twice is refused") {
    auto host = quiet_host("");
    CHECK(message_of([&] { host.add(webhook).add(webhook); }) ==
          "policy \"webhook\" is registered twice; policy names are unique in a host");
}

TEST_CASE("the configuration overrides policies, and the log says what it changed") {
    simulated_runtime mine;
    const auto log = std::make_shared<kept_log>();
    auto host = quiet_host("[policies.invoice-email]\nmax_attempts = 6\ntimeout = '10s'\n", log);
    host.use(mine).add(invoice_email, webhook).start();
    CHECK(*host.policies().bind("invoice-email").options().retry.max_attempts == 6);
    CHECK(*host.policies().bind("webhook").options().retry.max_attempts == 2);
    CHECK(log->has("info desk.toml: policy \"invoice-email\": retry 4 times, 10s exponential, at most 30s, jitter -> "
                   "6 times, 10s exponential, at most 30s, jitter; timeout 30s -> 10s"));
    const auto policies = host.policies_in_force();
    REQUIRE(policies.size() == 2);
    CHECK(*policies[0].declared.retry.max_attempts == 4);
    CHECK(*policies[0].effective.retry.max_attempts == 6);
}

TEST_CASE("an override that takes another form replaces the declared one") {
    simulated_runtime mine;
    auto host = quiet_host("[policies.invoice-email]\nintervals = ['1s', '2s']\n");
    host.use(mine).add(invoice_email).start();
    const auto options = host.policies().bind("invoice-email").options();
    CHECK(options.retry.intervals.size() == 2);
    CHECK_FALSE(options.retry.max_attempts);
}

TEST_CASE("an override of a policy that nobody declared is refused, with the nearest that somebody did") {
    simulated_runtime mine;
    const char* toml = "[log]\n[policies.invoice-emial]\nmax_attempts = 6\n";
    auto host = quiet_host(toml);
    host.use(mine).add(invoice_email, webhook);
    CHECK(message_of([&] { host.start(); }) ==
          "desk.toml:2: there is no policy \"invoice-emial\"; did you mean \"invoice-email\"?");

    auto tolerant = quiet_host(toml);
    tolerant.use(mine).allow_unknown_policies().start();
    CHECK(tolerant.policies_in_force().empty());
}

TEST_CASE("an override that breaks a rule of the policy is refused") {
    simulated_runtime mine;
    auto host = quiet_host("[log]\n[policies.webhook]\ntimeout = '10s'\n");
    host.use(mine).add(webhook);
    CHECK(message_of([&] { host.start(); }) ==
          "desk.toml:2: policy \"webhook\": timeout (of one attempt) is longer than total_timeout");
}

TEST_CASE("what lint finds is logged once, for the policy as it is in force") {
    simulated_runtime mine;
    const auto log = std::make_shared<kept_log>();
    auto host = quiet_host("", log);
    host.use(mine).add(careless, webhook).start();
    CHECK(log->lines() ==
          std::vector<std::string>{"warning policy \"careless\" retries, but nothing limits one attempt; give it a "
                                   "timeout or a total_timeout"});

    const auto silent = std::make_shared<kept_log>();
    auto mended = quiet_host("[policies.careless]\ntimeout = '1s'\n", silent);
    mended.use(mine).add(careless, webhook).start();
    CHECK(silent->text().find("warning") == std::string::npos);
}

TEST_CASE("members called at the wrong time say so") {
    simulated_runtime mine;
    auto host = quiet_host("");
    host.use(mine);
    CHECK(message_of([&] { host.policies(); }) == "host.policies() must be called after start()");
    CHECK(message_of([&] { host.runtime(); }) == "host.runtime() must be called after start()");
    host.start();
    CHECK(message_of([&] { host.add(webhook); }) == "host.add() must be called before start()");
    CHECK(message_of([&] { host.start(); }) == "a host starts once");
}

TEST_CASE("stop wakes what sleeps, is safe to repeat, and leaves the policies to be asked") {
    auto host = quiet_host(simple_toml());
    host.add(invoice_email).start();
    std::thread caller([&] {
        const auto outcome = host.policies().try_execute(invoice_email, [] { throw std::runtime_error("no"); });
        CHECK_FALSE(outcome.succeeded()); // does not wait for its ten seconds
    });
    host.stop();
    caller.join();
    host.stop();
    CHECK(host.runtime().stopped());
    CHECK(host.policies().try_execute(invoice_email, [] { return 1; }).attempts().size() <= 1);
}

TEST_CASE("a host that could not start is destroyed safely, and cannot start again") {
    auto host = quiet_host(simple_toml("[policies.nobody]\ntimeout = '1s'\n"));
    CHECK(message_of([&] { host.start(); }) == "desk.toml:5: there is no policy \"nobody\"");
    CHECK(message_of([&] { host.start(); }) == "a host starts once");
}

TEST_CASE("run returns after request_stop, from any thread") {
    auto host = quiet_host(simple_toml());
    host.start();
    std::thread other([&] { host.request_stop(); });
    CHECK(host.run() == 0);
    other.join();
    CHECK(host.runtime().stopped());
}

TEST_CASE("run of a host that cannot start logs why and gives 1") {
    const auto log = std::make_shared<kept_log>();
    auto host = quiet_host("[runtime]\nplugin = '" + fixture("throws_exception").string() + "'\n", log);
    CHECK(host.run() == 1);
    CHECK(log->lines() == std::vector<std::string>{"error " + fixture("throws_exception").string() +
                                                   ": could not start: the moon is in the wrong phase"});
}

TEST_CASE("run runs the application plugin on the runtime and gives its exit code") {
    const auto log = std::make_shared<kept_log>();
    auto host = quiet_host(simple_toml("[application]\nplugin = 'desk'\nexit_code = 7\n"), log);
    CHECK(host.has_application());
    CHECK(host.run() == 7);
    CHECK(log->has("info running on simple with 2 policies"));
    CHECK(log->has("info desk is open"));
    CHECK(log->has("info stopped"));
}

TEST_CASE("an application that throws is logged and gives 1") {
    const auto log = std::make_shared<kept_log>();
    auto host = quiet_host(simple_toml("[application]\nplugin = 'desk'\nthrows = true\n"), log);
    CHECK(host.run() == 1);
    CHECK(log->has("error the application failed: the desk is on fire"));
}

TEST_CASE("policies of the application and of the program must not share a name") {
    auto host = quiet_host(simple_toml("[application]\nplugin = 'desk'\n"));
    host.add(webhook);
    CHECK(message_of([&] { host.start(); }) ==
          fixture("good_application").string() +
              ": policy \"webhook\" is registered twice; policy names are unique in a host");
}
