// SQLite: files that cannot be used, writers that get in each other's way, and what a caller is told.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <csignal>
#include <sys/resource.h>
#include <unistd.h>

#include "catch.hpp"
#include "stores/sqlite_support.hpp"

using namespace holdfast;
using namespace holdfast::test::sqlite;
using Catch::Matchers::ContainsSubstring;

namespace {

// Acts as somebody who may not write to root's files.
class unprivileged {
public:
    unprivileged() {
        if (was_ == 0 && ::seteuid(65534) != 0) throw std::runtime_error("cannot become nobody");
    }
    ~unprivileged() {
        if (was_ == 0 && ::seteuid(0) != 0) std::abort();
    }
    unprivileged(const unprivileged&) = delete;
    unprivileged& operator=(const unprivileged&) = delete;

private:
    uid_t was_ = ::geteuid();
};

// No file may grow beyond this.
class file_size_limit {
public:
    explicit file_size_limit(rlim_t bytes) {
        ::getrlimit(RLIMIT_FSIZE, &was_);
        handler_ = std::signal(SIGXFSZ, SIG_IGN);
        const rlimit now{bytes, was_.rlim_max};
        ::setrlimit(RLIMIT_FSIZE, &now);
    }
    ~file_size_limit() {
        ::setrlimit(RLIMIT_FSIZE, &was_);
        std::signal(SIGXFSZ, handler_);
    }
    file_size_limit(const file_size_limit&) = delete;
    file_size_limit& operator=(const file_size_limit&) = delete;

private:
    rlimit was_{};
    void (*handler_)(int) = nullptr;
};

std::string refused_settings(const text_settings& with) {
    asio_runtime on{asio_options{}};
    try {
        open(on, with);
    } catch (const std::runtime_error& e) {
        return e.what();
    }
    return "taken";
}

} // namespace

TEST_CASE("sqlite: settings that make no sense are refused by name") {
    CHECK_THAT(refused_settings({}), ContainsSubstring("\"file\""));
    CHECK_THAT(refused_settings({{"file", ":memory:"}}), ContainsSubstring("does not name a file"));
    CHECK_THAT(refused_settings({{"file", "f"}, {"synchronous", "off"}}), ContainsSubstring("\"full\" or \"normal\""));
    CHECK_THAT(refused_settings({{"file", "f"}, {"namespace", "a\"; DROP"}}), ContainsSubstring("namespace"));
    CHECK_THAT(refused_settings({{"file", "f"}, {"max_payload", "0"}}), ContainsSubstring("max_payload"));
}

TEST_CASE("sqlite: says what an acknowledged write survives") {
    desk full;
    CHECK(full.kept->capabilities().writes_survive == survives::power_loss);
    desk normal({{"synchronous", "normal"}});
    CHECK(normal.kept->capabilities().writes_survive == survives::process_crash);
    CHECK_THAT(normal.kept->capabilities().loses, ContainsSubstring("loses power"));
}

TEST_CASE("sqlite: a schema newer than the plugin is refused with both versions") {
    desk at;
    at.add();
    raw_file(at.file()).run("UPDATE holdfast_meta SET value=99 WHERE key='version'");
    const auto why = at.refusal(at.kept->prepare());
    CHECK(why.code == errc::configuration);
    CHECK_THAT(why.message, ContainsSubstring("version 99") && ContainsSubstring("up to 2"));
    CHECK(raw_file(at.file()).run("SELECT count(*) FROM holdfast_jobs") == "1");
}

TEST_CASE("sqlite: preparing twice keeps what is there") {
    desk at;
    const auto id = at.add();
    at.await(at.kept->prepare());
    CHECK(std::holds_alternative<job_view>(at.await(at.jobs().get(id))));
}

TEST_CASE("sqlite: two namespaces in one file do not see each other") {
    desk at;
    at.add();
    auto with = at.with;
    with.emplace_back("namespace", "other");
    const auto other = open(at.on, with);
    at.await(other->prepare());
    CHECK(at.await(other->jobs()->counts()).empty());
    at.await(other->destroy());
    CHECK(at.claim(5).size() == 1);
}

TEST_CASE("sqlite: without prepare() a call says what is missing") {
    const harness::temporary_folder folder("hfsqlite");
    asio_runtime on{asio_options{}};
    const auto kept = open(on, {{"file", (folder / "store.db").string()}});
    const auto absent = sync_wait(on, kept->jobs()->pause("q"));
    REQUIRE(!absent);
    CHECK(absent.error().code == errc::configuration);
    CHECK_THAT(absent.error().message, ContainsSubstring("prepare()"));
    CHECK(!std::filesystem::exists(folder / "store.db"));
    raw_file((folder / "store.db").string()).run("CREATE TABLE of_the_application(x)");
    const auto empty = sync_wait(on, kept->jobs()->pause("q"));
    REQUIRE(!empty);
    CHECK(empty.error().code == errc::configuration);
    CHECK_THAT(empty.error().message, ContainsSubstring("prepare()"));
}

TEST_CASE("sqlite: a folder that is not there, and a file that is no database, are told") {
    const harness::temporary_folder folder("hfsqlite");
    asio_runtime on{asio_options{}};
    const auto nowhere = open(on, {{"file", (folder / "a" / "b.db").string()}});
    const auto no_folder = sync_wait(on, nowhere->prepare());
    REQUIRE(!no_folder);
    CHECK(no_folder.error().code == errc::configuration);
    CHECK_THAT(no_folder.error().message, ContainsSubstring("b.db") && ContainsSubstring("folder"));

    std::ofstream(folder / "text.db") << std::string(5000, 'x');
    const auto text = open(on, {{"file", (folder / "text.db").string()}});
    const auto no_database = sync_wait(on, text->prepare());
    REQUIRE(!no_database);
    CHECK(no_database.error().code == errc::configuration);
    CHECK_THAT(no_database.error().message, ContainsSubstring("not an SQLite file"));
}

TEST_CASE("sqlite: a file that may not be written to is told, and works again when it may") {
    desk at;
    at.add();
    at.kept.reset(); // closes the file
    std::filesystem::permissions(at.folder.path(), std::filesystem::perms(0555));
    std::filesystem::permissions(at.file(), std::filesystem::perms(0444));
    at.kept = open(at.on, at.with);
    {
        const unprivileged now;
        const auto why = at.refusal(at.jobs().enqueue({at.job()}));
        INFO(why.message);
        CHECK((why.code == errc::unavailable || why.code == errc::configuration));
        CHECK_THAT(why.message, ContainsSubstring("store.db"));
    }
    std::filesystem::permissions(at.folder.path(), std::filesystem::perms(0755));
    std::filesystem::permissions(at.file(), std::filesystem::perms(0644));
    at.kept = open(at.on, at.with);
    at.add();
    CHECK(at.claim(5).size() == 2);
}

TEST_CASE("sqlite: a disk that takes no more is told, nothing of the call is kept, and the store goes on") {
    desk at;
    at.add();
    const auto refused = at.job(std::string(3u << 20, 'x'));
    {
        const file_size_limit full(1u << 20);
        const auto why = at.refusal(at.jobs().enqueue({at.job(), refused}));
        INFO(why.message);
        CHECK(why.code == errc::unavailable);
        CHECK_THAT(why.message, ContainsSubstring("store.db"));
    }
    CHECK(std::get<job_absence>(at.await(at.jobs().get(refused.id))) == job_absence::never_known);
    at.add();
    CHECK(at.claim(5).size() == 2);
}

TEST_CASE("sqlite: a file that was deleted while open is noticed before anything is acknowledged") {
    desk at;
    at.add();
    std::filesystem::remove(at.file());
    const auto why = at.refusal(at.jobs().enqueue({at.job()}));
    CHECK(why.code == errc::unavailable);
    CHECK_THAT(why.message, ContainsSubstring("moved or deleted"));
    CHECK(at.refusal(at.jobs().enqueue({at.job()})).code == errc::configuration);
}

TEST_CASE("sqlite: another process' transaction is waited for, for busy_timeout") {
    desk at({{"busy_timeout", "50ms"}});
    at.add();
    raw_file other(at.file());
    other.run("BEGIN IMMEDIATE");
    const auto why = at.refusal(at.jobs().enqueue({at.job()}));
    CHECK(why.code == errc::unavailable);
    CHECK_THAT(why.message, ContainsSubstring("busy_timeout"));
    CHECK(at.await(at.jobs().counts()).size() == 1); // readers are not in anybody's way
    other.run("COMMIT");
    at.add();
    CHECK(at.claim(5).size() == 2);
}

TEST_CASE("sqlite: calls beside an open unit of work wait, and are refused after busy_timeout") {
    desk at({{"busy_timeout", "50ms"}});
    auto unit = at.await(at.kept->begin());
    at.await(at.jobs().enqueue({at.job()}, unit.get()));
    const auto why = at.refusal(at.jobs().enqueue({at.job()}));
    CHECK(why.code == errc::unavailable);
    CHECK_THAT(why.message, ContainsSubstring("unit of work"));
    at.await(unit->commit());
    at.add();
    CHECK(at.claim(5).size() == 2);
}

TEST_CASE("sqlite: a store that is closed under an open unit of work rolls it back") {
    desk at;
    auto unit = at.await(at.kept->begin());
    at.await(at.jobs().enqueue({at.job()}, unit.get()));
    at.kept.reset();
    CHECK(at.refusal(unit->commit()).code == errc::stopped);
    unit.reset();
    at.kept = open(at.on, at.with);
    CHECK(at.claim(5).empty());
}
