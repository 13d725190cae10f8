// SQLite: several processes on one file, and processes that are killed. The children are hidden test cases of this
// same program; they work in the folder that they are started in.
#include <atomic>
#include <csignal>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include <holdfast/when_all.hpp>

#include "catch.hpp"
#include "harness/child_process.hpp"
#include "stores/sqlite_support.hpp"

using namespace holdfast;
using namespace holdfast::test::sqlite;
using namespace std::chrono_literals;

namespace {

harness::child_process start(const std::string& hidden_case, const std::filesystem::path& folder) {
    harness::command what;
    what.arguments = {"/proc/self/exe", hidden_case};
    what.folder = folder;
    what.output = folder / ("output." + std::to_string(::getpid()));
    return harness::child_process(what);
}

// One line, in one write: whole or not at all, and past the process' end.
void note(const std::string& file, const std::string& line) {
    const int to = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    const std::string text = line + "\n";
    if (to < 0 || ::write(to, text.data(), text.size()) != static_cast<ssize_t>(text.size())) std::abort();
    ::close(to);
}

std::vector<std::string> lines_of(const std::filesystem::path& file) {
    std::vector<std::string> lines;
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
}

task<void> enqueue_for_ever(store* in, identifier_source* ids) {
    for (;;) {
        new_job j;
        j.id = ids->next();
        j.what = {"t", 1, "application/json", std::string(300, 'x')};
        std::vector<new_job> batch{j};
        auto call = in->jobs()->enqueue(std::move(batch));
        const auto answer = co_await std::move(call);
        if (!answer) co_return;
        note("acknowledged", to_text(j.id));
    }
}

} // namespace

TEST_CASE("sqlite child: enqueues until it is killed", "[.]") {
    asio_runtime on{asio_options{}};
    const auto kept = open(on, {{"file", "store.db"}});
    value_of(sync_wait(on, kept->prepare()));
    identifier_source ids;
    std::vector<task<void>> callers;
    for (int i = 0; i < 8; ++i) callers.push_back(enqueue_for_ever(kept.get(), &ids));
    sync_wait(on, when_all(std::move(callers)));
}

TEST_CASE("sqlite child: holds a unit of work until it is killed", "[.]") {
    asio_runtime on{asio_options{}};
    const auto kept = open(on, {{"file", "store.db"}});
    const auto unit = value_of(sync_wait(on, kept->begin()));
    new_job j;
    j.id = identifier_source().next();
    j.what.type = "t";
    value_of(sync_wait(on, kept->jobs()->enqueue({j}, unit.get())));
    note("holding", to_text(j.id));
    std::this_thread::sleep_for(1min);
}

TEST_CASE("sqlite child: prepares", "[.]") {
    asio_runtime on{asio_options{}};
    const auto kept = open(on, {{"file", "store.db"}, {"busy_timeout", "60s"}});
    while (::access("go", F_OK) != 0) std::this_thread::sleep_for(1ms);
    const auto answer = sync_wait(on, kept->prepare());
    INFO((answer ? "" : answer.error().message));
    REQUIRE(answer);
    REQUIRE(sync_wait(on, kept->jobs()->counts()));
}

TEST_CASE("sqlite child: works until nothing is left", "[.]") {
    asio_runtime on{asio_options{}};
    const auto kept = open(on, {{"file", "store.db"}, {"busy_timeout", "60s"}});
    for (;;) {
        const auto claimed = value_of(sync_wait(on, kept->jobs()->claim({{"default"}, 7, 5min, "w"})));
        if (claimed.empty()) return;
        std::vector<settlement> ends;
        for (const auto& each : claimed) {
            note("done", to_text(each.id));
            ends.push_back({&each.lease, settlement::kind::succeed, {}, {}, {}});
        }
        for (const settled& each : value_of(sync_wait(on, kept->jobs()->settle(ends))))
            REQUIRE(each.answer == write_answer::done);
    }
}

TEST_CASE("sqlite: kill -9 in the middle of writes loses nothing that was acknowledged") {
    desk at;
    for (int round = 0; round < 3; ++round) {
        auto child = start("sqlite child: enqueues until it is killed", at.folder.path());
        const auto before = lines_of(at.folder / "acknowledged").size();
        while (lines_of(at.folder / "acknowledged").size() < before + 50) std::this_thread::sleep_for(1ms);
        child.signal(SIGKILL);
        REQUIRE(child.wait(10s) == 128 + SIGKILL);
    }
    const auto acknowledged = lines_of(at.folder / "acknowledged");
    REQUIRE(acknowledged.size() >= 150);
    for (const auto& each : acknowledged) {
        const auto id = parse_identifier(each);
        REQUIRE(id);
        REQUIRE(std::holds_alternative<job_view>(at.await(at.jobs().get(*id))));
    }
    CHECK(raw_file(at.file()).run("PRAGMA integrity_check") == "ok");
}

TEST_CASE("sqlite: a unit of work whose process is killed never was, and holds nobody up") {
    desk at;
    auto child = start("sqlite child: holds a unit of work until it is killed", at.folder.path());
    while (lines_of(at.folder / "holding").empty()) std::this_thread::sleep_for(1ms);
    child.signal(SIGKILL);
    REQUIRE(child.wait(10s) == 128 + SIGKILL);
    at.add();
    const auto lost = parse_identifier(lines_of(at.folder / "holding").at(0));
    CHECK(std::get<job_absence>(at.await(at.jobs().get(*lost))) == job_absence::never_known);
}

TEST_CASE("sqlite: eight processes create the schema at once") {
    const harness::temporary_folder folder("hfsqlite");
    std::vector<harness::child_process> children;
    for (int i = 0; i < 8; ++i) children.push_back(start("sqlite child: prepares", folder.path()));
    note((folder / "go").string(), "");
    for (auto& each : children) CHECK(each.wait(60s) == 0);
}

TEST_CASE("sqlite: three processes share the work, and each job is done once") {
    desk at;
    std::vector<new_job> batch;
    for (int i = 0; i < 600; ++i) batch.push_back(at.job());
    at.await(at.jobs().enqueue(batch));
    std::vector<harness::child_process> children;
    for (int i = 0; i < 3; ++i)
        children.push_back(start("sqlite child: works until nothing is left", at.folder.path()));
    for (auto& each : children) CHECK(each.wait(60s) == 0);
    const auto done = lines_of(at.folder / "done");
    CHECK(done.size() == 600);
    CHECK(std::set<std::string>(done.begin(), done.end()).size() == 600);
    const auto counts = at.await(at.jobs().counts());
    REQUIRE(counts.size() == 1);
    CHECK(counts[0].state == job_state::succeeded);
    CHECK(counts[0].count == 600);
}
