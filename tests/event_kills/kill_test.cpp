// A rollback never delivers; a commit always does: publisher, relay and consumers are killed again and again, on real
// stores and transports, and the books agree at the end. HOLDFAST_EVENT_KILLS says how often per combination.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <holdfast/host.hpp>
#include <holdfast/sync_wait.hpp>

#include "catch.hpp"
#include "harness/child_process.hpp"
#include "harness/postgres_server.hpp"
#include "harness/redis_server.hpp"
#include "harness/temporary_folder.hpp"
#include "jobs/notes.hpp"
#include "orders.hpp"

using namespace std::chrono_literals;
using namespace holdfast;

namespace {

int kills() {
    const char* asked = std::getenv("HOLDFAST_EVENT_KILLS");
    return asked == nullptr ? 40 : std::atoi(asked);
}

// Fewer would show nothing.
constexpr std::uint64_t enough_orders = 50;

// A folder with the configurations of all roles, and the processes.
class desk {
public:
    desk(const std::string& store, const std::string& events) {
        const std::string common =
            "[plugins]\npath = ['" HOLDFAST_BUILD_PLUGIN_DIR "']\n[log]\nlevel = 'error'\n[store]\n" + store + "\n";
        const std::string carried = "[events]\n" + events + "\n";
        write("books.toml", common + carried + "[relay]\nwork = false\n");
        write("publisher.toml", common);
        write("relay.toml", common + carried + "[relay]\nlease = '500ms'\npoll = '10ms'\nbatch = 50\n");
        write("consumer.toml", common + carried +
                                   "[relay]\nwork = false\n[consumers]\nlease = '500ms'\npoll = '20ms'\n"
                                   "shutdown_grace = '5s'\n");
        books_.emplace(host::from_file(folder_ / "books.toml"));
        books_->start();
        members_.push_back({"publisher"});
        members_.push_back({"relay"});
        members_.push_back({"consumer"});
        members_.push_back({"consumer"});
    }

    host& books() { return *books_; }
    // Consumers first: what is published before there is a subscription is for nobody.
    void start_all() {
        for (member& each : members_)
            if (each.role == "consumer") start(each);
        until("there are subscriptions", [&] { return get(books_->event_transport().subscriptions()).size() == 2; });
        for (member& each : members_)
            if (each.role != "consumer") start(each);
    }
    void kill_one(std::mt19937& random) {
        member& who = members_[random() % members_.size()];
        who.process->signal(SIGKILL);
        who.process.reset();
        start(who);
    }
    void stop_publishing() {
        test::note(folder_ / "enough", "");
        CHECK(members_.front().process->wait(20s) == 0);
    }
    // The others, in good order.
    void stop_all() {
        for (member& each : members_)
            if (each.role != "publisher") each.process->signal(SIGTERM);
        for (member& each : members_)
            if (each.role != "publisher") CHECK(each.process->wait(20s) == 0);
    }
    template <class T>
    T get(task<result<T>> what) {
        auto answer = sync_wait(books_->runtime(), std::move(what));
        if (!answer) throw failed(std::move(answer.error()));
        return std::move(*answer);
    }
    std::uint64_t count(const std::string& queue) {
        std::uint64_t found = 0;
        for (const job_count& each : get(books_->job_store().counts()))
            if (each.queue == queue) found += each.count;
        return found;
    }
    // What was written into one of the books, sorted.
    std::vector<test::order> read(const std::string& queue) {
        std::vector<test::order> all;
        std::string cursor;
        do {
            auto page = get(books_->job_store().list({.queue = queue}, 500, std::move(cursor)));
            for (const job_view& each : page.jobs) all.push_back(test::parse_order(each.what.body));
            cursor = std::move(page.next);
        } while (!cursor.empty());
        std::ranges::sort(all);
        return all;
    }
    // What the consumer without a unit has seen, in that order.
    std::vector<test::order> audited() const {
        std::vector<test::order> all;
        for (const std::string& each : test::notes_in(folder_ / "audit")) all.push_back(test::parse_order(each));
        return all;
    }
    // Fails the test when it takes too long.
    void until(const std::string& what, const std::function<bool()>& met) {
        for (const auto end = std::chrono::steady_clock::now() + 60s; !met();) {
            if (std::chrono::steady_clock::now() > end) {
                for (const auto& each : test::notes_in(folder_ / "failed")) UNSCOPED_INFO(each);
                for (const auto& each : test::notes_in(folder_ / "output")) UNSCOPED_INFO(each);
                for (const auto& each : get(books_->event_transport().subscriptions()))
                    UNSCOPED_INFO(each.name << ": " << each.waiting << " waiting, " << each.leased << " leased, "
                                            << each.dead << " dead, " << each.acknowledged << " acknowledged");
                UNSCOPED_INFO(audited().size() << " notes, " << get(books_->outbox().unsent()) << " unsent");
                FAIL("waited in vain until " << what << ": placed " << count("placed") << ", billed "
                                             << count("billed"));
            }
            std::this_thread::sleep_for(20ms);
        }
    }

private:
    struct member {
        std::string role;
        std::optional<harness::child_process> process{};
    };
    void write(const std::string& name, const std::string& text) { std::ofstream(folder_ / name) << text; }
    void start(member& who) {
        harness::command what;
        what.arguments = {HOLDFAST_EVENT_PROGRAM, who.role, (folder_ / (who.role + ".toml")).string()};
        what.folder = folder_.path();
        what.output = folder_ / "output";
        who.process.emplace(what);
    }

    harness::temporary_folder folder_{"hfkills"};
    std::optional<host> books_;
    std::vector<member> members_;
};

std::vector<test::order> without_duplicates(std::vector<test::order> all) {
    std::ranges::sort(all);
    const auto rest = std::ranges::unique(all);
    all.erase(rest.begin(), rest.end());
    return all;
}

// Whether each customer's orders were first seen in the order of their numbers.
bool in_order(const std::vector<test::order>& seen) {
    std::map<std::string, std::set<int>> known;
    return std::ranges::all_of(seen, [&](const test::order& each) {
        std::set<int>& numbers = known[each.customer];
        const bool late = !numbers.empty() && each.number < *numbers.rbegin();
        return !numbers.insert(each.number).second || !late;
    });
}

void agrees_after_kills(const std::string& store, const std::string& events) {
    desk at(store, events);
    at.start_all();
    at.until("it has begun", [&] { return at.count("billed") > 0; });
    const unsigned seed = std::random_device{}();
    INFO("seed " << seed);
    std::mt19937 random(seed);
    // A killed process needs a moment to be of use again: on a busy machine there are more kills than asked for.
    for (int i = 0; i < kills() || at.count("placed") < enough_orders; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20 + random() % 180));
        at.kill_one(random);
    }
    at.stop_publishing();
    const auto placed = at.read("placed");
    at.until("every order is billed", [&] { return at.count("billed") >= placed.size(); });
    at.until("every order was seen", [&] { return without_duplicates(at.audited()).size() >= placed.size(); });
    // What a relay had sent, but not noted when it was killed, is sent again once its lease has ended.
    at.until("nothing is left to send", [&] { return at.get(at.books().outbox().unsent()) == 0; });
    at.stop_all();

    CHECK(std::ranges::none_of(placed, [](const auto& each) { return each.number < 0; }));
    CHECK(at.read("billed") == placed); // all of them, once, and none that was rolled back
    const auto audited = at.audited();
    CHECK(without_duplicates(audited) == placed);
    CHECK(in_order(audited));
    CHECK(at.get(at.books().outbox().unsent()) == 0);
    CHECK(at.get(at.books().outbox().set_aside(10, 0)).empty());
    CHECK(at.get(at.books().event_transport().dead_messages({}, 10)).messages.empty());
}

const std::string sqlite_store = "plugin = 'sqlite'\nfile = 'books.db'";

std::string postgres_at(const harness::postgres_server& server) {
    return "plugin = 'postgres'\nurl = '" + server.url() + "'";
}
std::string redis_at(const harness::redis_server& server) {
    return "plugin = 'redis'\nurl = '" + server.url() + "'";
}

} // namespace

#define NEEDS_POSTGRES()                                                                                               \
    if (!harness::postgres_binaries()) SKIP("PostgreSQL is not installed (no initdb and postgres found)")
#define NEEDS_REDIS()                                                                                                  \
    if (!harness::redis_binary()) SKIP("Redis is not installed (no redis-server found)")

TEST_CASE("a rollback never delivers, a commit always does, whoever is killed: SQLite, PostgreSQL") {
    NEEDS_POSTGRES();
    harness::postgres_server server({.fsync = false, .max_connections = 200});
    agrees_after_kills(sqlite_store, postgres_at(server));
}

TEST_CASE("a rollback never delivers, a commit always does, whoever is killed: PostgreSQL alone") {
    NEEDS_POSTGRES();
    harness::postgres_server server({.fsync = false, .max_connections = 200});
    agrees_after_kills(postgres_at(server), postgres_at(server));
}

TEST_CASE("a rollback never delivers, a commit always does, whoever is killed: SQLite, Redis") {
    NEEDS_REDIS();
    harness::redis_server carrier;
    agrees_after_kills(sqlite_store, redis_at(carrier));
}

TEST_CASE("a rollback never delivers, a commit always does, whoever is killed: PostgreSQL, Redis") {
    NEEDS_POSTGRES();
    NEEDS_REDIS();
    harness::redis_server carrier;
    harness::postgres_server server({.fsync = false, .max_connections = 200});
    agrees_after_kills(postgres_at(server), redis_at(carrier));
}

TEST_CASE("a rollback never delivers, a commit always does, whoever is killed: Redis, PostgreSQL") {
    NEEDS_POSTGRES();
    NEEDS_REDIS();
    harness::redis_server keeper;
    harness::postgres_server server({.fsync = false, .max_connections = 200});
    agrees_after_kills(redis_at(keeper), postgres_at(server));
}

TEST_CASE("a rollback never delivers, a commit always does, whoever is killed: Redis alone") {
    NEEDS_REDIS();
    harness::redis_server server;
    agrees_after_kills(redis_at(server), redis_at(server) + "\nnamespace = 'carried'");
}
