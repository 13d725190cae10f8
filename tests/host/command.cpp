#include "catch.hpp"

#include <regex>

#include <holdfast/plugin.hpp>
#include <holdfast/version.hpp>

#include "process.hpp"

using namespace support;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;

namespace {

// A folder with a runtime, an application and a configuration for both.
struct desk {
    temporary_folder folder;
    std::string config;

    explicit desk(std::string_view application_keys = "", std::string_view policies = "") {
        folder.plugin("good_runtime");
        folder.plugin("good_application");
        config = folder
                     .write("desk.toml", "[runtime]\nplugin = 'simple'\n[plugins]\npath = ['.']\n[application]\n"
                                         "plugin = 'desk'\n" +
                                             std::string(application_keys) + std::string(policies))
                     .string();
    }
};

} // namespace

TEST_CASE("holdfast --version tells version, ABI and toolchain") {
    const auto done = run_holdfast({"--version"});
    CHECK(done.code == 0);
    CHECK(done.out == std::string("holdfast ") + holdfast::version_text + " (ABI " +
                          std::to_string(holdfast::plugin_abi) + ", " HOLDFAST_TOOLCHAIN ")\n");
}

TEST_CASE("output that cannot be written is an error") {
    const temporary_folder folder;
    const std::string told = (folder.path() / "told").string();
    const int status = std::system((HOLDFAST_COMMAND " --help > /dev/full 2> " + told).c_str());
    CHECK(WEXITSTATUS(status) == 1);
    CHECK(read_file(told) == "error: the output could not be written\n");
}

TEST_CASE("every command has a help of its own") {
    const auto all = run_holdfast({"--help"});
    CHECK(all.code == 0);
    for (const std::string command : {"plugins", "policies", "doctor", "run", "verify"}) {
        CHECK_THAT(all.out, ContainsSubstring("\n  " + command));
        const auto one = run_holdfast({command, "--help"});
        CHECK(one.code == 0);
        CHECK_THAT(one.out, StartsWith("holdfast " + command));
        CHECK(one.err.empty());
    }
}

TEST_CASE("a wrong command line is one line with a suggestion and exit code 2") {
    const auto error_of = [](std::vector<std::string> arguments) {
        const auto done = run_holdfast(std::move(arguments));
        return std::to_string(done.code) + " " + done.out + done.err;
    };
    CHECK(error_of({"plguins"}) == "2 error: there is no command \"plguins\"; did you mean \"plugins\"?\n");
    CHECK(error_of({"--verison"}) == "2 error: there is no option \"--verison\"; did you mean \"--version\"?\n");
    CHECK(error_of({"plugins", "--jsno"}) ==
          "2 error: holdfast plugins has no option \"--jsno\"; did you mean \"--json\"?\n");
    CHECK(error_of({"plugins", "--json=1"}) == "2 error: --json takes no value\n");
    CHECK(error_of({"plugins", "--path"}) == "2 error: --path needs a value: --path FOLDER\n");
    CHECK(error_of({"plugins", "x"}) == "2 error: holdfast plugins does not take \"x\"\n");
    CHECK(error_of({"run"}) == "2 error: holdfast run needs CONFIG\n");
    CHECK_THAT(error_of({}), StartsWith("2 holdfast COMMAND"));
}

TEST_CASE("holdfast plugins lists what is found and what is refused") {
    const temporary_folder folder;
    folder.plugin("good_runtime");
    folder.plugin("other_abi");
    const auto done = run_holdfast({"plugins", "--path", folder.text()}, "");
    CHECK(done.code == 0);
    CHECK_THAT(done.out, StartsWith("KIND "));
    // How wide the columns are depends on what else is there.
    CHECK_THAT(
        std::regex_replace(done.out, std::regex(" +"), " "),
        ContainsSubstring("runtime simple 1.2.3 " + folder.text() + "/good_runtime.so one thread for everything\n"));
    CHECK_THAT(done.out, ContainsSubstring("\nrefused:\n  " + folder.text() + "/other_abi.so: built for ABI "));
    CHECK_THAT(done.out, ContainsSubstring("\nlooked in:\n  " + folder.text() + "\n"));
}

TEST_CASE("holdfast plugins --json is JSON, whatever the names") {
    const temporary_folder folder;
    folder.plugin("good_runtime", "a \"quoted\" \x01 \xff name");
    folder.plugin("no_symbol");
    const auto done = run_holdfast({"plugins", "--json", "--path=" + folder.text()}, "");
    CHECK(done.code == 0);
    CHECK_THAT(
        done.out,
        StartsWith("{\"folders\":[{\"folder\":\"" + folder.text() + "\",\"plugins\":[{\"file\":\"" + folder.text() +
                   "/a \\\"quoted\\\" \\u0001 \\ufffd name.so\",\"kind\":\"runtime\","
                   "\"name\":\"simple\",\"version\":\"1.2.3\",\"summary\":\"one thread for "
                   "everything\",\"abi\":" +
                   std::to_string(holdfast::plugin_abi) + ",\"toolchain\":\"" HOLDFAST_TOOLCHAIN "\"},{\"file\":\"" +
                   folder.text() + "/no_symbol.so\",\"refused\":\"" + folder.text() +
                   "/no_symbol.so: not a Holdfast plugin: it does not export holdfast_plugin\"}]}"));
}

TEST_CASE("holdfast policies shows what is in force and what was declared") {
    const desk with("", "[policies.invoice-email]\nmax_attempts = 6\n");
    const auto done = run_holdfast({"policies", "--config", with.config});
    CHECK(done.err.empty());
    CHECK(done.code == 0);
    CHECK(done.out == "invoice-email\n"
                      "  retry          6 times, 10s exponential, at most 5m, jitter  (declared: 4 times, 10s "
                      "exponential, at most 5m, jitter)\n"
                      "  timeout        30s\n"
                      "  warning        policy \"invoice-email\" can take 13.6m in the worst case; a total_timeout "
                      "would bound it\n"
                      "webhook\n"
                      "  total_timeout  5s\n"
                      "  retry          2 times, 1ms exponential, at most 30s, jitter\n");
}

TEST_CASE("holdfast policies --json shows the same, with warnings") {
    const desk with("", "[policies.webhook]\ntotal_timeout = 'forever'\n");
    const auto done = run_holdfast({"policies", "--json", "--config", with.config});
    CHECK(done.code == 0);
    CHECK_THAT(done.out, ContainsSubstring("{\"name\":\"webhook\",\"effective\":{\"total_timeout\":\"forever\","));
    CHECK_THAT(done.out, ContainsSubstring("\"warnings\":[\"policy \\\"webhook\\\" retries, "));
}

TEST_CASE("holdfast policies opens no store") {
    const desk with("", "[store]\nplugin = 'not there'\n");
    CHECK(run_holdfast({"policies", "--config", with.config}).code == 0);
}

TEST_CASE("holdfast policies without an application is an error") {
    const temporary_folder folder;
    const std::string config = folder.write("desk.toml", "").string();
    const auto done = run_holdfast({"policies", "--config", config});
    CHECK(done.code == 1);
    CHECK(done.err == "error: " + config +
                          ": there is no [application]; policies of a program with a main of its own are not known "
                          "here\n");
}

TEST_CASE("holdfast doctor finds a good installation good") {
    const desk with;
    const auto done = run_holdfast({"doctor", "--config", with.config});
    INFO(done.out << done.err);
    CHECK(done.code == 0);
    CHECK_THAT(done.out, ContainsSubstring("ok       config    " + with.config + "\n"));
    CHECK_THAT(done.out, ContainsSubstring("ok       plugin    runtime simple 1.2.3, "));
    CHECK_THAT(done.out, ContainsSubstring("ok       runtime   posted work came after "));
    CHECK_THAT(done.out, ContainsSubstring("ok       runtime   a timer of 5ms came after "));
    CHECK_THAT(done.out, ContainsSubstring("ok       policies  2 in force\n"));
    CHECK_THAT(done.out, Catch::Matchers::EndsWith("\nall is well\n"));
}

TEST_CASE("holdfast doctor works on the defaults, and on the configuration of a program of its own") {
    CHECK(run_holdfast({"doctor"}).code == 0);
    const temporary_folder folder;
    const std::string config = folder.write("desk.toml", "[policies.known-to-the-program]\ntimeout = '1s'\n").string();
    const auto done = run_holdfast({"doctor", "--config", config});
    CHECK(done.code == 0);
    CHECK_THAT(done.out, ContainsSubstring("declared by the program, so their names were not checked"));
}

TEST_CASE("without --config the holdfast.toml of the folder counts, and commands that need one say so") {
    const temporary_folder folder;
    CHECK_THAT(run_holdfast_in(folder.text(), {"doctor"}).out,
               ContainsSubstring("none given, and no holdfast.toml in this folder: the defaults are checked"));
    for (const std::string command : {"policies", "rules"}) {
        const auto done = run_holdfast_in(folder.text(), {command});
        CHECK(std::to_string(done.code) + " " + done.err ==
              "1 error: there is no holdfast.toml in this folder; name the configuration with --config FILE\n");
    }
    CHECK_THAT(run_holdfast_in(folder.text(), {"jobs", "list"}).err, ContainsSubstring("--config FILE"));
    folder.write("holdfast.toml", "[log]\nlevel = 'loud'\n");
    const auto done = run_holdfast_in(folder.text(), {"doctor"});
    CHECK(done.code == 1);
    CHECK_THAT(done.out, ContainsSubstring("holdfast.toml:2: [log] level"));
}

TEST_CASE("holdfast doctor tries what carries events") {
    temporary_folder folder;
    const std::string config =
        folder.write("desk.toml", "[plugins]\npath = ['" HOLDFAST_BUILD_PLUGIN_DIR "']\n[events]\nplugin = 'memory'\n")
            .string();
    const auto done = run_holdfast({"doctor", "--config", config});
    CHECK(done.code == 0);
    CHECK_THAT(done.out, ContainsSubstring("ok       events    [events] memory is ready\n"));
    CHECK_THAT(done.out,
               ContainsSubstring("-        events    [events] memory survives nothing, for one process; loses "));
    CHECK_THAT(done.out, ContainsSubstring("and its clock agrees with this machine's\n"));
    CHECK_THAT(run_holdfast({"doctor"}).out, ContainsSubstring("-        events    none are configured\n"));
}

TEST_CASE("holdfast doctor tries the stores, and tells what each keeps and promises") {
    const temporary_folder folder;
    folder.plugin("locks_only");
    const std::string config = folder
                                   .write("desk.toml", "[plugins]\npath = ['.']\n[store]\nplugin = 'memory'\n"
                                                       "[store.locks]\nplugin = 'locks_only'\n")
                                   .string();
    const auto done = run_holdfast({"doctor", "--config", config});
    INFO(done.out << done.err);
    CHECK(done.code == 0);
    CHECK_THAT(done.out,
               ContainsSubstring("ok       store     [store] memory is ready and keeps jobs, idempotency, outbox\n"
                                 "-        store     [store] memory survives nothing, for one process, units of work, "
                                 "joins no transactions; loses everything, when the process ends\n"
                                 "ok       store     [store] memory answered after "));
    CHECK_THAT(done.out, ContainsSubstring("ok       store     [store.locks] locks_only is ready and keeps locks\n"));
    CHECK_THAT(done.out, ContainsSubstring("-        store     [store.locks] locks_only: its clock is "));
    CHECK_THAT(done.out, ContainsSubstring(" behind this machine's, and decides what is due\n"));

    CHECK_THAT(run_holdfast({"doctor"}).out, ContainsSubstring("-        store     none is configured\n"));
    const std::string broken =
        folder.write("desk.toml", "[plugins]\npath = ['.']\n[store]\nplugin = 'locks_only'\nprepare = 'fails'\n")
            .string();
    const auto failed = run_holdfast({"doctor", "--config", broken});
    CHECK(failed.code == 1);
    CHECK_THAT(failed.out, ContainsSubstring("PROBLEM  start     " + broken +
                                             ":4: the store \"locks_only\" of [store] did not get ready: the cellar is "
                                             "flooded\n"));
    CHECK_THAT(run_holdfast({"plugins", "--path", folder.text()}).out, ContainsSubstring("locks that nobody gets\n"));
}

TEST_CASE("holdfast doctor counts what is wrong") {
    const temporary_folder folder;
    folder.plugin("no_symbol");
    const std::string config =
        folder.write("desk.toml", "[plugins]\npath = ['.']\n[runtime]\nplugin = 'asoi'\n").string();
    const auto done = run_holdfast({"doctor", "--config", config});
    CHECK(done.code == 1);
    CHECK_THAT(done.out, ContainsSubstring("PROBLEM  plugin    " + folder.text() + "/./no_symbol.so: not a Holdfast "));
    CHECK_THAT(done.out, ContainsSubstring("PROBLEM  start     " + config +
                                           ":4: there is no runtime plugin \"asoi\"; did you mean \"asio\"?"));
    CHECK_THAT(done.out, Catch::Matchers::EndsWith("\n2 problems\n"));

    const auto bad = run_holdfast({"doctor", "--config", folder.write("bad.toml", "[zebra]\n").string()});
    CHECK(bad.code == 1);
    CHECK_THAT(bad.out,
               ContainsSubstring("PROBLEM  config    " + folder.text() + "/bad.toml:1: there is no section [zebra]\n"));
}

TEST_CASE("holdfast run gives the application's exit code") {
    const desk with("exit_code = 42\n");
    const auto done = run_holdfast({"run", with.config});
    CHECK(done.code == 42);
    CHECK_THAT(done.err, ContainsSubstring(" info desk is open\n"));
}

TEST_CASE("holdfast run says in one line why it cannot") {
    const auto error_of = [](const std::string& config) {
        const auto done = run_holdfast({"run", config});
        return std::to_string(done.code) + " " + done.out + done.err;
    };
    const temporary_folder folder;
    const std::string config = folder.write("desk.toml", "[log]\n").string();
    CHECK(error_of(config) == "1 error: " + config + ": there is no [application] that names the plugin to run\n");
    CHECK(error_of(folder.text() + "/no.toml") == "1 error: " + folder.text() + "/no.toml: there is no such file\n");
    const desk with("exit_kode = 1\n");
    CHECK(error_of(with.config) ==
          "1 error: " + with.config + ":7: [application] has no key \"exit_kode\"; did you mean \"exit_code\"?\n");
}

TEST_CASE("SIGTERM and SIGINT end holdfast run in good order") {
    for (const int signal : {SIGTERM, SIGINT}) {
        const desk with;
        process running({"run", with.config});
        REQUIRE(running.logs("desk is open"));
        running.signal(signal);
        const auto done = running.wait();
        CHECK(done.code == 0);
        CHECK_THAT(done.err, ContainsSubstring(" info stopping\n"));
        CHECK_THAT(done.err, ContainsSubstring(" info desk is closed\n"));
        CHECK_THAT(done.err, ContainsSubstring(" info stopped\n"));
    }
}

TEST_CASE("SIGHUP reloads the policies of holdfast run, a bad file changes nothing") {
    const desk with;
    process running({"run", with.config});
    REQUIRE(running.logs("desk is open"));
    const std::string good = read_file(with.config);

    write_file(with.config, good + "[policies.webhook]\nmax_attempts = 9\n");
    running.signal(SIGHUP);
    CHECK(running.logs("policy \"webhook\": retry 2 times, 1ms exponential, at most 30s, jitter -> 9 times, "));

    write_file(with.config, good + "[policies.webhook]\nmax_attempts = 'many'\n");
    running.signal(SIGHUP);
    CHECK(running.logs("error reload refused, nothing was changed: " + with.config +
                       ":8: [policies.webhook] max_attempts: expected a whole number, found \"many\"\n"));

    write_file(with.config, good);
    running.signal(SIGHUP);
    CHECK(running.logs("jitter -> 2 times, "));
    CHECK(running.logs("info reloaded", 2));
    running.signal(SIGTERM);
    CHECK(running.wait().code == 0);
}

TEST_CASE("a second SIGTERM ends holdfast run at once") {
    const desk with("stubborn = true\n");
    process running({"run", with.config});
    REQUIRE(running.logs("desk is open"));
    running.signal(SIGTERM);
    REQUIRE(running.logs("info stopping"));
    running.signal(SIGTERM);
    CHECK(running.wait().code == 128 + SIGTERM);
}

TEST_CASE("holdfast verify refuses what it cannot verify") {
    const auto error_of = [](std::vector<std::string> arguments) {
        arguments.insert(arguments.begin(), "verify");
        const auto done = run_holdfast(std::move(arguments));
        return std::to_string(done.code) + " " + done.out + done.err;
    };
    const std::string application = fixture("good_application").string();
    CHECK(error_of({application}) == "1 error: " + application +
                                         ": found the application plugin \"desk\"; only runtime, store and events "
                                         "plugins can be verified\n");
    const std::string failing = fixture("throws_exception").string();
    CHECK(error_of({failing}) == "1 error: " + failing + ": could not start: the moon is in the wrong phase\n");
    const std::string good = fixture("good_runtime").string();
    CHECK(error_of({good, "--option", "threads"}) == "2 error: --option threads: expected KEY=VALUE\n");
    CHECK(error_of({good, "--option", "threds=1"}) ==
          "1 error: --option threds=1: the plugin has no key \"threds\"; did you mean \"threads\"?\n");
    CHECK(error_of({good, "--seed", "x"}) == "2 error: --seed x: expected a whole number\n");
    CHECK(error_of({good, "--filter", "no such case"}) == "1 error: no case matches --filter no such case\n");
}

TEST_CASE("holdfast verify proves a good store, and says what it offers, survives and loses") {
    const std::string memory = HOLDFAST_BUILD_PLUGIN_DIR "/store_memory.so";
    const auto done = run_holdfast({"verify", memory, "--filter", "locks/"});
    INFO(done.out << done.err);
    CHECK(done.code == 0);
    CHECK_THAT(done.out, ContainsSubstring("\nlocks "));
    CHECK_THAT(done.out, ContainsSubstring(" conforms: jobs, idempotency, locks, outbox. Survives: nothing. Loses: "
                                           "everything, when the process ends.\n"));
    const auto list = run_holdfast({"verify", memory, "--list", "--filter", "outbox/1 "});
    CHECK(list.out == "outbox/1 a message comes back as it was appended, until it is delivered\n");
    const auto wrong = run_holdfast({"verify", memory, "--option", "flie=x"});
    CHECK(wrong.code == 1);
    CHECK(wrong.err == "error: --option flie=x: the plugin has no key \"flie\"\n");
}

TEST_CASE("holdfast verify proves a good runtime") {
    const auto done = run_holdfast({"verify", fixture("good_runtime").string(), "--filter", "backoff/"});
    INFO(done.out << done.err);
    CHECK(done.code == 0);
    CHECK_THAT(done.out, StartsWith("backoff "));
    CHECK_THAT(done.out, ContainsSubstring("\nsimple 1.2.3 conforms: "));
    const auto list = run_holdfast({"verify", fixture("good_runtime").string(), "--list", "--filter", "backoff/"});
    CHECK(list.code == 0);
    CHECK_THAT(list.out, StartsWith("backoff/"));
    const auto json = run_holdfast({"verify", fixture("good_runtime").string(), "--json", "--filter", "backoff/9"});
    CHECK(json.code == 0);
    CHECK_THAT(json.out,
               ContainsSubstring("\"name\":\"simple\",\"version\":\"1.2.3\",\"conforms\":true,\"passed\":1,"));
}
