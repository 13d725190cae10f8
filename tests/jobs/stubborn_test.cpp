// A process leaves although handlers of its do not end, and its exit code says so.
#include <chrono>
#include <csignal>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "catch.hpp"
#include "harness/child_process.hpp"
#include "harness/temporary_folder.hpp"

using namespace std::chrono_literals;
using namespace holdfast;
using Catch::Matchers::ContainsSubstring;

namespace {

struct stubborn {
    explicit stubborn(const std::string& kind)
        : process(harness::command{.arguments = {HOLDFAST_STUBBORN_PROGRAM, write_config(), kind},
                                   .output = folder / "output",
                                   .folder = folder.path()}) {}
    std::string write_config() const {
        const auto file = folder / "desk.toml";
        std::ofstream(file) << "[plugins]\npath = ['" HOLDFAST_BUILD_PLUGIN_DIR "']\n[runtime]\nthreads = 1\n"
                               "[store]\nplugin = 'memory'\n[jobs]\nshutdown_grace = '0s'\n";
        return file.string();
    }
    std::string output() const {
        std::stringstream text;
        text << std::ifstream(folder / "output").rdbuf();
        return text.str();
    }
    bool says(const std::string& what) const {
        for (const auto end = std::chrono::steady_clock::now() + 20s; std::chrono::steady_clock::now() < end;) {
            if (output().contains(what)) return true;
            std::this_thread::sleep_for(5ms);
        }
        return false;
    }

    harness::temporary_folder folder{"hfstub"};
    harness::child_process process;
};

} // namespace

TEST_CASE("a process whose handlers do not end leaves without them after a SIGTERM, with exit code 1") {
    stubborn blocking("blocking");
    stubborn coroutine("coroutine"); // in the only thread of its runtime, so that nothing else goes on there
    for (stubborn* each : {&blocking, &coroutine}) {
        INFO(each->output());
        REQUIRE(each->says("the quick one ran"));
        REQUIRE(each->says("the endless one runs"));
    }
    blocking.process.signal(SIGTERM);
    coroutine.process.signal(SIGTERM);
    for (stubborn* each : {&blocking, &coroutine}) {
        const auto code = each->process.wait(25s);
        INFO(each->output());
        REQUIRE(code);
        CHECK(*code == 1);
        CHECK_THAT(each->output(), ContainsSubstring("handlers do not end, so the process leaves without them"));
        CHECK_THAT(each->output(), ContainsSubstring("it hangs\n")); // flushed
    }
    CHECK_THAT(blocking.output(), ContainsSubstring("1 job goes on although asked to stop") &&
                                      ContainsSubstring("\"endless\"") && !ContainsSubstring("cannot settle"));
}
