#include "catch.hpp"

#include <holdfast/host.hpp>

#include "support.hpp"

using namespace support;
using namespace holdfast;

namespace {

std::string refusal_of(const char* text) {
    return message_of([&] { host::from_text(text, "desk.toml"); });
}

} // namespace

TEST_CASE("an empty configuration is good: everything has a default") {
    CHECK(refusal_of("") == "nothing was thrown");
    CHECK(refusal_of("# nothing\n\n[runtime]\n") == "nothing was thrown");
}

TEST_CASE("a full configuration is good") {
    CHECK(refusal_of(R"(
[runtime]
plugin = "asio"
threads = 4
[plugins]
path = ["plugins", "/opt/plugins"]
[log]
level = "warning"
[application]
plugin = "desk"
[store]
plugin = "sqlite"
file = "desk.db"
[store.locks]
plugin = "redis"
[promises]
writes_survive = "power_loss"
[promises.locks]
shared = true
[promises.events]
shared = true
[events]
plugin = "redis"
[relay]
work = true
batch = 100
poll = "10ms"
lease = "5s"
in_flight = 4
max_failures = 3
[consumers]
work = true
lease = "10s"
shutdown_grace = "1m"
[consumers.billing]
concurrency = 4
timeout = "30s"
inbox = false
[policies.invoice-email]
max_attempts = 6
delay = "10s"
backoff = "linear"
jitter = false
timeout = "forever"
breaker = { failure_ratio = 0.5, break_for = "10s" }
[policies.invoice-email.rate]
permits = 100
per = "1m"
[policies."dotted.name"]
intervals = ["1s", "5s"]
)") == "nothing was thrown");
}

TEST_CASE("[events], [relay] and [consumers] are checked like the others") {
    CHECK(refusal_of("[events]\nkeep = '1d'\n") == "desk.toml:1: [events] needs the key \"plugin\"");
    CHECK(refusal_of("[relay]\nbtach = 5\n") == "desk.toml:2: [relay] has no key \"btach\"; did you mean \"batch\"?");
    CHECK(refusal_of("[relay]\nin_flight = 0\n") ==
          "desk.toml:2: [relay] in_flight: expected a whole number from 1 to 64, found \"0\"");
    CHECK_THAT(refusal_of("[consumers]\nlease = 'soon'\n"),
               Catch::Matchers::StartsWith("desk.toml:2: [consumers] lease: expected a duration"));
    CHECK(refusal_of("[consumers.billing]\nconcurency = 1\n") ==
          "desk.toml:2: [consumers.billing] has no key \"concurency\"; did you mean \"concurrency\"?");
    CHECK(refusal_of("[consumer]\n") == "desk.toml:1: there is no section [consumer]; did you mean \"consumers\"?");
    CHECK(refusal_of("[promises.events]\nunits_of_work = true\n") ==
          "desk.toml:2: [promises.events] has no key \"units_of_work\"; ask it of the outbox");
}

TEST_CASE("text that is not TOML is refused with its line") {
    CHECK_THAT(refusal_of("[runtime]\nplugin = \n"), Catch::Matchers::StartsWith("desk.toml:2: not valid TOML: "));
    CHECK_THAT(refusal_of("[runtime]\nplugin = 'a'\nplugin = 'b'\n"),
               Catch::Matchers::StartsWith("desk.toml:3: not valid TOML: "));
}

TEST_CASE("an unknown section is refused by name and line") {
    CHECK(refusal_of("[runtime]\nplugin = 'asio'\n\n[polices.x]\nmax_attempts = 1\n") ==
          "desk.toml:4: there is no section [polices]; did you mean \"policies\"?");
    CHECK(refusal_of("[zebra]\n") == "desk.toml:1: there is no section [zebra]");
}

TEST_CASE("the first wrong line is the one that is reported") {
    CHECK(refusal_of("[zebra]\n[aardvark]\n") == "desk.toml:1: there is no section [zebra]");
}

TEST_CASE("a key outside of all sections is refused") {
    CHECK(refusal_of("\nplugin = 'asio'\n") == "desk.toml:2: \"plugin\" stands before the first section");
}

TEST_CASE("an unknown key is refused by name and line") {
    CHECK(refusal_of("[log]\n\nlevle = 'info'\n") ==
          "desk.toml:3: [log] has no key \"levle\"; did you mean \"level\"?");
    CHECK(refusal_of("[plugins]\npaths = ['x']\n") ==
          "desk.toml:2: [plugins] has no key \"paths\"; did you mean \"path\"?");
}

TEST_CASE("a value of the wrong form is refused with what was expected and found") {
    CHECK(refusal_of("[log]\nlevel = 'loud'\n") ==
          "desk.toml:2: [log] level: expected \"debug\", \"info\", \"warning\" or \"error\", found \"loud\"");
    CHECK(refusal_of("[log]\nlevel = ['info']\n") == "desk.toml:2: [log] level: expected one value, found a list");
    CHECK(refusal_of("[runtime]\nplugin = ['asio']\n") ==
          "desk.toml:2: [runtime] plugin: expected the name of a plugin");
    CHECK(refusal_of("[runtime]\nplugin = ''\n") == "desk.toml:2: [runtime] plugin: expected the name of a plugin");
    CHECK(refusal_of("[runtime]\nsince = 1979-05-27\n") ==
          "desk.toml:2: [runtime] since: expected text, a number, true, false or a list of these");
    CHECK(refusal_of("[runtime]\nlists = [[1], [2]]\n") ==
          "desk.toml:2: [runtime] lists: expected text, a number, true, false or a list of these");
    CHECK(refusal_of("[[runtime]]\nplugin = 'asio'\n") ==
          "desk.toml:1: runtime: expected text, a number, true, false or a list of these");
}

TEST_CASE("an application section needs a plugin") {
    CHECK(refusal_of("[log]\n[application]\nx = 1\n") == "desk.toml:2: [application] needs the key \"plugin\"");
}

TEST_CASE("a store section needs a plugin, and the name of a facet that exists") {
    CHECK(refusal_of("[store]\nfile = 'desk.db'\n") == "desk.toml:1: [store] needs the key \"plugin\"");
    CHECK(refusal_of("[log]\n[store]\n") == "desk.toml:2: [store] needs the key \"plugin\"");
    CHECK(refusal_of("[store]\nplugin = 'x'\n[store.jobs]\nfile = 'y'\n") ==
          "desk.toml:3: [store.jobs] needs the key \"plugin\"");
    CHECK(refusal_of("[store.lokcs]\nplugin = 'x'\n") ==
          "desk.toml:1: there is no section [store.lokcs]; did you mean \"locks\"?");
    CHECK(refusal_of("[store]\nplugin = ''\n") == "desk.toml:2: [store] plugin: expected the name of a plugin");
}

TEST_CASE("promises that do not exist are refused by name and line") {
    CHECK(refusal_of("[promises]\nshred = true\n") ==
          "desk.toml:2: [promises] has no key \"shred\"; did you mean \"shared\"?");
    CHECK(refusal_of("[promises]\nshared = 'yes'\n") ==
          "desk.toml:2: [promises] shared: expected true or false, found \"yes\"");
    CHECK(refusal_of("[promises]\nwrites_survive = 'everything'\n") ==
          "desk.toml:2: [promises] writes_survive: expected \"process_crash\", \"server_crash\" or \"power_loss\", "
          "found \"everything\"");
    CHECK(refusal_of("[promises]\nwrites_survive = []\n") ==
          "desk.toml:2: [promises] writes_survive: expected \"process_crash\", \"server_crash\" or \"power_loss\", "
          "found a list");
    CHECK(refusal_of("[promises.job]\nshared = true\n") ==
          "desk.toml:1: there is no section [promises.job]; did you mean \"jobs\"?");
    CHECK(refusal_of("[promises.jobs]\nsharde = true\n") ==
          "desk.toml:2: [promises.jobs] has no key \"sharde\"; did you mean \"shared\"?");
}

TEST_CASE("an unknown key of a policy is refused by name and line") {
    CHECK(refusal_of("[policies.mail]\nmax_atempts = 3\n") ==
          "desk.toml:2: [policies.mail] has no key \"max_atempts\"; did you mean \"max_attempts\"?");
    CHECK(refusal_of("[policies.mail.breaker]\nfailure_ratio = 0.5\nbrake_for = '1s'\n") ==
          "desk.toml:3: [policies.mail.breaker] has no key \"brake_for\"; did you mean \"break_for\"?");
    CHECK(refusal_of("[policies.mail.braeker]\nbreak_for = '1s'\n") ==
          "desk.toml:2: [policies.mail] has no key \"braeker\"; did you mean \"breaker\"?");
    CHECK(refusal_of("[policies.mail]\nbreaker = 3\n") ==
          "desk.toml:2: [policies.mail] has no key \"breaker\"; write [policies.mail.breaker]");
    CHECK(refusal_of("[policies.mail.retry]\nmax_attempts = 3\n") ==
          "desk.toml:2: [policies.mail] has no key \"retry\"; retry keys stand in [policies.mail] itself");
    CHECK(refusal_of("[policies]\nmax_attempts = 3\n") ==
          "desk.toml:2: [policies] has no key \"max_attempts\"; write it in [policies.NAME]");
}

TEST_CASE("a wrong value of a policy is refused with what was expected and found") {
    CHECK(refusal_of("[policies.mail]\ndelay = '10 s'\n") ==
          "desk.toml:2: [policies.mail] delay: expected a duration such as \"250ms\", \"10s\", \"5m\", \"6h\", "
          "\"1d\", found \"10 s\"");
    CHECK(refusal_of("[policies.mail]\nmax_attempts = -2\n") ==
          "desk.toml:2: [policies.mail] max_attempts: expected a whole number, found \"-2\"");
    CHECK(refusal_of("[policies.mail]\nmax_attempts = []\n") ==
          "desk.toml:2: [policies.mail] max_attempts: expected one value, found a list of 0");
    CHECK(refusal_of("[policies.mail]\nmax_attempts = 2\nintervals = ['1s']\n") ==
          "desk.toml:1: [policies.mail] intervals already says how often and how long: drop max_attempts, delay and "
          "backoff");
}

TEST_CASE("a configuration file that cannot be read is refused by name") {
    const temporary_folder folder;
    const std::string absent = (folder.path() / "absent.toml").string();
    CHECK(message_of([&] { host::from_file(absent); }) == absent + ": there is no such file");
    CHECK(message_of([&] { host::from_file(folder.path()); }) == folder.text() + ": a folder, expected a file");
}
