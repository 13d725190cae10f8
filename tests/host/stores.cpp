#include "catch.hpp"

#include <holdfast/host.hpp>
#include <holdfast/simulated_runtime.hpp>
#include <holdfast/sleep.hpp>
#include <holdfast/sync_wait.hpp>

#include "prepare.hpp"
#include "support.hpp"

using namespace support;
using namespace holdfast;
using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;

namespace {

// With the shipped plugins in reach; lines of `rest` begin at 3.
host desk(std::string_view rest, std::shared_ptr<logger> log = std::make_shared<null_logger>()) {
    auto made = host::from_text("[plugins]\npath = ['" HOLDFAST_BUILD_PLUGIN_DIR "', '" HOLDFAST_FIXTURE_DIR "']\n" +
                                    std::string(rest),
                                "desk.toml");
    made.log_to(std::move(log));
    return made;
}

std::string refusal_of(std::string_view rest) {
    return message_of([&] { desk(rest).start(); });
}

bool acquires(host& on, const std::string& resource) {
    auto got = sync_wait(on.runtime(), on.locks().try_acquire(resource));
    return got && got->has_value();
}

// Gets ready after a while.
class slow_store final : public store {
public:
    slow_store(runtime& on, duration takes) : on_(on), takes_(takes) {}
    std::string_view name() const noexcept override { return "slow"; }
    store_capabilities capabilities() const override { return {}; }
    task<result<void>> prepare() override {
        co_await sleep_for(on_, takes_);
        co_return result<void>();
    }
    task<result<store_time>> now() override { co_return store_time{}; }
    task<result<void>> destroy() override { co_return result<void>(); }

private:
    runtime& on_;
    duration takes_;
};

} // namespace

TEST_CASE("a host keeps everything in the store that its configuration names") {
    auto host = desk("[store]\nplugin = 'memory'\n");
    host.start();
    CHECK(host.store().name() == "memory");
    CHECK(&host.locks() == host.store().locks());
    CHECK(&host.idempotency() == host.store().idempotency());
    CHECK(&host.outbox() == host.store().outbox());
    CHECK(&host.job_store() == host.store().jobs());
    CHECK(acquires(host, "till"));
    CHECK_FALSE(acquires(host, "till"));
}

TEST_CASE("what a store keeps is there for the next host") {
    const temporary_folder folder;
    const std::string toml = "[store]\nplugin = 'sqlite'\nfile = '" + folder.text() + "/desk.db'\n";
    {
        auto first = desk(toml);
        first.start();
        CHECK(acquires(first, "till"));
    }
    auto second = desk(toml);
    second.start();
    CHECK_FALSE(acquires(second, "till"));
}

TEST_CASE("a store's file is looked for from the configuration's folder on") {
    const temporary_folder folder;
    const auto file = folder.write("desk.toml", "[plugins]\npath = ['" HOLDFAST_BUILD_PLUGIN_DIR "']\n"
                                                "[store]\nplugin = 'sqlite'\nfile = 'desk.db'\n");
    auto host = host::from_file(file);
    host.log_to(std::make_shared<null_logger>()).start();
    CHECK(fs::exists(folder.path() / "desk.db"));
}

TEST_CASE("without a store the host works, and says which section to write when one is asked for") {
    auto host = desk("");
    host.start();
    CHECK(message_of([&] { host.store(); }) ==
          "desk.toml: there is no default store; write [store] with plugin = \"sqlite\", or another");
    CHECK(message_of([&] { host.locks(); }) ==
          "desk.toml: no store keeps locks; write [store] or [store.locks] with plugin = \"sqlite\", or another");
}

TEST_CASE("each facet may come from a store of its own") {
    const temporary_folder folder;
    auto host = desk("[store]\nplugin = 'memory'\n[store.jobs]\nplugin = 'sqlite'\nfile = '" + folder.text() +
                     "/jobs.db'\n[store.locks]\nplugin = 'locks_only'\n");
    host.start();
    CHECK(host.store().name() == "memory");
    CHECK(host.store_of(facet::jobs).name() == "sqlite");
    CHECK(&host.job_store() == host.store_of(facet::jobs).jobs());
    CHECK(host.store_of(facet::locks).name() == "locks_only");
    CHECK_FALSE(acquires(host, "till"));
    CHECK(&host.outbox() == host.store().outbox());

    const auto stores = host.stores_in_use();
    REQUIRE(stores.size() == 3);
    CHECK(stores[0].section == "[store]");
    CHECK(stores[0].facets == std::vector{facet::idempotency, facet::outbox});
    CHECK(stores[1].section == "[store.jobs]");
    CHECK(stores[1].facets == std::vector{facet::jobs});
    CHECK(stores[2].what == &host.store_of(facet::locks));
}

TEST_CASE("without a default store only the facets that are named exist") {
    auto host = desk("[store.locks]\nplugin = 'memory'\n");
    host.start();
    CHECK(acquires(host, "till"));
    CHECK_THAT(message_of([&] { host.store(); }), ContainsSubstring("there is no default store; write [store]"));
    CHECK_THAT(message_of([&] { host.outbox(); }), ContainsSubstring("no store keeps outbox; write [store]"));
}

TEST_CASE("a facet that the default store lacks is asked for in vain, with the section to write") {
    auto host = desk("[store]\nplugin = 'locks_only'\n");
    host.start();
    CHECK(host.store().name() == "locks_only");
    CHECK(message_of([&] { host.job_store(); }) ==
          "desk.toml:4: the store \"locks_only\" of [store] does not offer jobs; write [store.jobs] with a plugin that "
          "does");
}

TEST_CASE("a store that cannot be had is refused with the place that names it") {
    CHECK_THAT(refusal_of("[store]\nplugin = 'sqltie'\n"),
               StartsWith("desk.toml:4: there is no store plugin \"sqltie\"; did you mean \"sqlite\"? Looked in "));
    CHECK(refusal_of("[store]\nplugin = 'sqlite'\nflie = 'desk.db'\n") ==
          "desk.toml:5: [store] has no key \"flie\"; did you mean \"file\"?");
    CHECK(refusal_of("[store]\nplugin = 'sqlite'\n") == "desk.toml:4: [store] needs the key \"file\"");
    CHECK(refusal_of("[store]\nplugin = 'memory'\n\nkeep_suceeded = '1d'\n") ==
          "desk.toml:6: [store] has no key \"keep_suceeded\"; did you mean \"keep_succeeded\"?");
    CHECK(refusal_of("[store.locks]\nplugin = 'memory'\nkeep_suceeded = '1d'\n") ==
          "desk.toml:5: [store.locks] has no key \"keep_suceeded\"; did you mean \"keep_succeeded\"?");
    CHECK(refusal_of("[store]\nplugin = 'memory'\n[store.pool]\nsize = 3\n") ==
          "desk.toml:6: [store] has no key \"pool.size\"");
    CHECK(refusal_of("[store.outbox]\nplugin = 'locks_only'\n") ==
          "desk.toml:4: the store \"locks_only\" of [store.outbox] does not offer outbox; it offers locks");
    const std::string runtime = fixture("good_runtime").string();
    CHECK(refusal_of("[store]\nplugin = '" + runtime + "'\n") ==
          runtime + ": found the runtime plugin \"simple\", expected a plugin of kind store");
}

TEST_CASE("a store that does not get ready stops the start, with its reason") {
    const auto refusal = [](const std::string& how) {
        return refusal_of("[store.locks]\nplugin = 'locks_only'\nprepare = '" + how + "'\n");
    };
    const std::string begin = "desk.toml:4: the store \"locks_only\" of [store.locks] did not get ready: ";
    CHECK(refusal("fails") == begin + "the cellar is flooded");
    CHECK(refusal("throws") == begin + "the cellar is on fire");
    CHECK(refusal("throws a number") == begin + "it threw something that is not a std::exception");
}

TEST_CASE("a store that takes too long to get ready is said to, then given up") {
    simulated_runtime on;
    for (const bool in_time : {true, false}) {
        const auto log = std::make_shared<kept_log>();
        slow_store mine(on, in_time ? detail::prepare_limit - 1s : detail::prepare_limit + 1s);
        auto host = desk("", log);
        host.use(on).use(mine);
        const std::string message = message_of([&] { host.start(); });
        CHECK(log->has("warning the program's own store \"slow\" is not ready yet, waiting up to 1m"));
        if (in_time) CHECK(&host.store() == &mine);
        else CHECK(message == "the program's own store \"slow\" did not get ready within 1m");
        CHECK(on.timers() == 0);
    }
}

TEST_CASE("a store that would never get ready is given up with the runtime that it waits on") {
    simulated_runtime on;
    null_logger log;
    slow_store never_ready(on, duration::max());
    const auto ready = detail::prepare([&] { return never_ready.prepare(); }, on, log, "the store", [&] { on.stop(); });
    REQUIRE_FALSE(ready);
    CHECK(ready.error().code == errc::timed_out);
    CHECK(ready.error().message == "the store did not get ready within 1m");
}

TEST_CASE("a store that is ready at once is not waited for") {
    simulated_runtime on;
    const auto log = std::make_shared<kept_log>();
    const auto before = on.now();
    auto host = desk("[store]\nplugin = 'memory'\n", log);
    host.use(on).start();
    CHECK(on.now() == before);
    CHECK(on.timers() == 0);
    CHECK(log->text().find("not ready yet") == std::string::npos);
}

TEST_CASE("the program may bring its own default store") {
    simulated_runtime on;
    slow_store mine(on, 0s);
    auto host = desk("[store.locks]\nplugin = 'memory'\n");
    host.use(on).use(mine).start();
    CHECK(&host.store() == &mine);
    CHECK(host.store_of(facet::locks).name() == "memory");
    CHECK(
        message_of([&] { host.job_store(); }) ==
        "desk.toml: the program's own store \"slow\" does not offer jobs; write [store.jobs] with a plugin that does");

    auto twice = desk("");
    CHECK(message_of([&] { twice.use(mine).use(mine); }) == "host.use() was given a store already");
    auto other = desk("[store]\nplugin = 'memory'\n");
    CHECK(message_of([&] { other.use(mine); }) == "desk.toml:4: [store] must go: the program brings its own store");
}

TEST_CASE("stores are open while the application runs, and live as long as the host") {
    const auto log = std::make_shared<kept_log>();
    {
        auto host = desk("[runtime]\nplugin = 'simple'\n[store]\nplugin = 'locks_only'\n[store.idempotency]\n"
                         "plugin = 'memory'\n[application]\nplugin = 'desk'\nexit_code = 3\nlock = 'till'\n",
                         log);
        CHECK(host.run() == 3);
        CHECK(log->has("info has no lock"));
        CHECK_FALSE(log->has("info closed after the runtime"));
        CHECK_FALSE(acquires(host, "till")); // still there, though nothing runs
    }
    CHECK(log->lines().back() == "info closed after the runtime");
}

TEST_CASE("calls on a store after the stop end") {
    const temporary_folder folder;
    auto host = desk("[store]\nplugin = 'sqlite'\nfile = '" + folder.text() + "/desk.db'\n");
    host.start();
    host.stop();
    static_cast<void>(acquires(host, "till")); // with a value or an error
}

TEST_CASE("an application that asks for a store that is not there fails with the section to write") {
    const auto log = std::make_shared<kept_log>();
    auto host = desk("[runtime]\nplugin = 'simple'\n[application]\nplugin = 'desk'\nlock = 'till'\n", log);
    CHECK(host.run() == 1);
    CHECK(log->has("error the application failed: desk.toml: no store keeps locks; write [store] or [store.locks] with "
                   "plugin = \"sqlite\", or another"));
}

TEST_CASE("a host without stores opens none") {
    auto host = desk("[store.locks]\nplugin = 'locks_only'\nprepare = 'fails'\n[promises]\nshared = true\n");
    host.without_stores().start();
    CHECK(host.stores_in_use().empty());
}
