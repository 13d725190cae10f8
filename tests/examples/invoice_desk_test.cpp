// The built invoice desk on each store, by one changed line of its configuration, and its exit codes.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "harness/child_process.hpp"
#include "harness/postgres_server.hpp"
#include "harness/redis_server.hpp"
#include "harness/temporary_folder.hpp"

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using namespace holdfast;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr const char* every_mail = "[ok] every mail was delivered once, or dead-lettered with a reason";

std::string text_of(const fs::path& file) {
    std::stringstream text;
    text << std::ifstream(file).rdbuf();
    return text.str();
}

// A copy of desk.toml in a folder of its own, with another line for the store.
struct desk {
    explicit desk(const std::string& store = R"({plugin = "sqlite", file = "desk.db"})") {
        std::ifstream shipped(HOLDFAST_DESK_TOML);
        std::ofstream copy(config);
        int changed = 0;
        for (std::string line; std::getline(shipped, line);) {
            const bool store_line = line.starts_with("store = ");
            changed += store_line ? 1 : 0;
            copy << (store_line ? "store = " + store : line) << "\n";
        }
        copy << "[plugins]\npath = ['" HOLDFAST_BUILD_PLUGIN_DIR "']\n";
        REQUIRE(changed == 1);
    }

    harness::child_process start(int mails) const {
        return harness::child_process(
            harness::command{.arguments = {HOLDFAST_DESK, "--mails", std::to_string(mails), "--config", config},
                             .output = folder / "output"});
    }
    // Its exit code; -1 when it does not end.
    int run(int mails) const { return start(mails).wait(100s).value_or(-1); }
    std::string output() const { return text_of(folder / "output"); }
    bool says(const std::string& what) const {
        for (const auto end = std::chrono::steady_clock::now() + 20s; std::chrono::steady_clock::now() < end;) {
            if (output().contains(what)) return true;
            std::this_thread::sleep_for(5ms);
        }
        return false;
    }
    // What the command prints.
    std::string holdfast(std::vector<std::string> arguments) const {
        arguments.insert(arguments.begin(), HOLDFAST_COMMAND);
        arguments.insert(arguments.end(), {"--config", config});
        const fs::path printed = folder / "printed";
        fs::remove(printed);
        const int code = harness::run({.arguments = std::move(arguments), .output = printed});
        INFO(text_of(printed));
        REQUIRE(code == 0);
        return text_of(printed);
    }

    harness::temporary_folder folder{"hfdesk"};
    std::string config = folder / "desk.toml";
};

void runs_on(const std::string& store, const desk& at) {
    const int code = at.run(60);
    INFO(at.output());
    CHECK(code == 0);
    CHECK_THAT(at.output(), ContainsSubstring("An invoice desk on " + store + " and asio: "));
    CHECK_THAT(at.output(), ContainsSubstring(" killed with SIGKILL, "));
    CHECK_THAT(at.output(), ContainsSubstring(every_mail));
}

} // namespace

TEST_CASE("the invoice desk runs on SQLite, and refuses a store that has jobs already") {
    const desk at;
    runs_on("sqlite", at);
    CHECK(at.run(60) == 2);
    CHECK_THAT(at.output(), ContainsSubstring("its store holds 60 jobs already; give the demo a store of its own"));
}

TEST_CASE("the invoice desk runs on PostgreSQL by one changed line") {
    if (!harness::postgres_binaries()) SKIP("PostgreSQL is not installed (no initdb and postgres found)");
    const harness::postgres_server server({.fsync = false});
    runs_on("postgres", desk("{plugin = \"postgres\", url = \"" + server.url() + "\"}"));
}

TEST_CASE("the invoice desk runs on Redis by one changed line") {
    if (!harness::redis_binary()) SKIP("Redis is not installed (no redis-server found)");
    const harness::redis_server server;
    runs_on("redis", desk("{plugin = \"redis\", url = \"" + server.url() + "\"}"));
}

TEST_CASE("the invoice desk says at once that a store in memory is of no use to two processes") {
    const desk at("{plugin = \"memory\"}");
    CHECK(at.start(60).wait(20s) == 2);
    CHECK_THAT(at.output(), ContainsSubstring("the store \"memory\" is for one process, and the worker of this demo is "
                                              "another one; take sqlite, postgres or redis"));
}

TEST_CASE("the invoice desk ends with exit code 1 when a mail was lost") {
    const desk at;
    at.holdfast({"queues", "pause", "mail"});
    auto running = at.start(40);
    REQUIRE(at.says("40 invoices taken in"));
    std::istringstream table(at.holdfast({"jobs", "list", "--limit", "1"}));
    std::string heading, id;
    std::getline(table, heading);
    table >> id;
    CHECK_THAT(at.holdfast({"jobs", "cancel", id}), ContainsSubstring("cancelled"));
    at.holdfast({"queues", "resume", "mail"});
    const auto code = running.wait(100s);
    INFO(at.output());
    CHECK(code == 1);
    CHECK_THAT(at.output(), ContainsSubstring("lost                                   1\n"));
    CHECK_THAT(at.output(), ContainsSubstring(" killed with SIGKILL, ") && ContainsSubstring("[NO]"));
}

TEST_CASE("the invoice desk ends with exit code 1 when it had no worker to kill") {
    const desk at;
    CHECK(at.run(1) == 1);
    CHECK_THAT(at.output(), ContainsSubstring("the worker was never killed") && ContainsSubstring("[NO]"));
}
