// `holdfast events` and `holdfast outbox`, on a Redis server that carries and a SQLite file that publishes.
#include <regex>

#include <holdfast/host.hpp>
#include <holdfast/sync_wait.hpp>
#include <holdfast/timestamp.hpp>

#include "catch.hpp"
#include "harness/redis_server.hpp"
#include "process.hpp"

using namespace holdfast;
using namespace support;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;

namespace {

using kind = delivery_settlement::kind;

struct event_desk {
    event_desk() {
        config = folder
                     .write("desk.toml", "[plugins]\npath = ['" HOLDFAST_BUILD_PLUGIN_DIR
                                         "']\n[store]\nplugin = 'sqlite'\nfile = 'desk.db'\n"
                                         "[events]\nplugin = 'redis'\nurl = '" +
                                             server.url() + "'\n[relay]\nwork = false\n")
                     .string();
    }

    template <class T>
    static T get(host& in, task<result<T>> what) {
        auto answer = sync_wait(in.runtime(), std::move(what));
        if (!answer) throw failed(answer.error());
        if constexpr (!std::is_void_v<T>) return std::move(*answer);
    }
    // Fills by a host of the test's own, closed again before the command opens it.
    template <class Fill>
    void with_host(Fill fill) {
        auto mine = host::from_file(config);
        mine.log_to(std::make_shared<null_logger>());
        mine.start();
        fill(mine);
    }
    envelope message(std::string topic, std::string key = {}, std::string body = "{}") {
        return {ids.next(), topic, std::move(key), {topic, 1, "application/json", std::move(body)}, {}};
    }
    // Receives what is open and settles it so; gives the ids.
    std::vector<std::string> settle(host& in, const std::string& subscription, kind how, delivery_error error = {}) {
        std::vector<std::string> done;
        for (auto got = receive(in, subscription); !got.empty(); got = receive(in, subscription)) {
            std::vector<delivery_settlement> all;
            for (const delivery& each : got) {
                done.push_back(to_text(each.message.id));
                all.push_back({.held = &each.lease, .how = how, .calls = 4, .error = error});
            }
            get(in, in.event_transport().settle(all));
        }
        return done;
    }
    std::vector<delivery> receive(host& in, const std::string& subscription) {
        return get(in, in.event_transport().receive(subscription, 100, std::chrono::seconds{60}, "test"));
    }
    // So many dead letters of "billing"; gives their ids.
    std::vector<std::string> dead(int count, const std::string& subscription = "billing",
                                  const std::string& topic = "order.placed") {
        std::vector<std::string> made;
        with_host([&](host& in) {
            get(in, in.event_transport().subscribe({.name = subscription, .topics = {topic}}));
            std::vector<envelope> batch;
            for (int i = 0; i < count; ++i) batch.push_back(message(topic, "A-" + std::to_string(i), R"({"cents":7})"));
            for (envelope& each : batch) each.extra = {{"traceparent", "00-1"}};
            get(in, in.event_transport().publish(std::move(batch)));
            made = settle(in, subscription, kind::dead_letter,
                          {"card_error", "the card has expired", "in charge()\nin bill()"});
        });
        return made;
    }

    support::ended run(std::vector<std::string> words) const {
        words.insert(words.end(), {"--config", config});
        return run_holdfast(std::move(words));
    }
    std::string out(std::vector<std::string> words) const {
        const auto done = run(std::move(words));
        INFO(done.err);
        CHECK(done.code == 0);
        CHECK(done.err.empty());
        return done.out;
    }
    // "code message" of a call that fails.
    std::string refusal(std::vector<std::string> words) const {
        const auto done = run(std::move(words));
        return std::to_string(done.code) + " " + done.out + done.err;
    }

    harness::redis_server server;
    temporary_folder folder;
    std::string config;
    identifier_source ids;
};

std::string squeezed(const std::string& text) {
    return std::regex_replace(text, std::regex(" +"), " ");
}

bool no_redis() {
    return !harness::redis_binary() || !fs::exists(HOLDFAST_BUILD_PLUGIN_DIR "/events_redis.so");
}

} // namespace

TEST_CASE("holdfast events list shows dead letters with the reason, and filters") {
    if (no_redis()) SKIP("Redis is not installed (no redis-server found)");
    event_desk desk;
    CHECK(desk.out({"events", "list"}) == "no dead letters\n");
    const auto id = desk.dead(1).front();
    desk.dead(1, "stock", "order.sent");
    const std::string text = squeezed(desk.out({"events", "list", "--subscription", "billing"}));
    CHECK_THAT(text, StartsWith("ID EVENT KEY CALLS DEAD SINCE WHY\n" + id + " order.placed A-0 4 "));
    CHECK_THAT(text, ContainsSubstring(" card_error: the card has expired\n"));
    CHECK(std::ranges::count(text, '\n') == 2);
    const std::string all = squeezed(desk.out({"events", "list"}));
    CHECK_THAT(all, StartsWith("ID EVENT SUBSCRIPTION KEY "));
    CHECK(std::ranges::count(all, '\n') == 3);
    CHECK_THAT(desk.out({"events", "list", "--event", "order.placed", "--json"}),
               StartsWith("{\"dead_letters\":[\n{\"id\":\"" + id +
                          "\",\"event\":\"order.placed\",\"subscription\":\"billing\",\"key\":\"A-0\","));
    CHECK(desk.refusal({"events", "list", "--subscription", "biling"}) ==
          "1 error: there is no subscription \"biling\"; did you mean \"billing\"?\n");
    CHECK_THAT(desk.out({"events", "list", "--limit", "1"}), ContainsSubstring("there are more"));
}

TEST_CASE("holdfast events show tells everything about a dead letter") {
    if (no_redis()) SKIP("Redis is not installed (no redis-server found)");
    event_desk desk;
    const auto id = desk.dead(1).front();
    const std::string text = squeezed(desk.out({"events", "show", id}));
    CHECK_THAT(text, StartsWith("id " + id + "\nevent order.placed, version 1\nsubscription billing\nkey A-0\n"));
    CHECK_THAT(text, ContainsSubstring("\nattempts 4 calls, 0 redeliveries, 0 crashes, generation 1\n"));
    CHECK_THAT(text, ContainsSubstring("\nerror card_error: the card has expired\n"));
    CHECK_THAT(text, ContainsSubstring("\nheader traceparent 00-1\n"));
    CHECK_THAT(text, ContainsSubstring("\nbody {\"cents\":7}\n"));
    CHECK_THAT(text, ContainsSubstring("\nstack\n in charge()\n in bill()\n"));
    const std::string json = desk.out({"events", "show", id, "--json"});
    CHECK_THAT(json, ContainsSubstring(R"x("stack":"in charge()\u000ain bill()")x"));
    CHECK_THAT(json, ContainsSubstring(R"("headers":{"traceparent":"00-1"})"));
    CHECK_THAT(json, ContainsSubstring(R"("body":"{\"cents\":7}")"));
    const std::string unknown = to_text(desk.ids.next());
    CHECK(desk.refusal({"events", "show", unknown}) == "1 error: event " + unknown + " is no dead letter\n");
    CHECK_THAT(desk.refusal({"events", "show", "42"}), StartsWith("2 error: \"42\" is not the id of an event"));
}

TEST_CASE("holdfast events redeliver and discard take dead letters by id, or all that match") {
    if (no_redis()) SKIP("Redis is not installed (no redis-server found)");
    event_desk desk;
    const auto ids = desk.dead(5);
    CHECK(desk.out({"events", "redeliver", ids[0]}) == "sent again: billing\n");
    CHECK(desk.refusal({"events", "redeliver", ids[0]}) == "1 error: event " + ids[0] + " is no dead letter\n");
    CHECK(desk.out({"events", "discard", ids[1]}) == "discarded: billing\n");
    CHECK_THAT(desk.refusal({"events", "discard", ids[1], ids[2]}),
               ContainsSubstring(ids[2] + "  discarded: billing\n"));
    CHECK(desk.refusal({"events", "redeliver", "--all"}) ==
          "1 error: 2 dead letters would be sent again; nothing was done, add --yes to do it\n");
    CHECK(desk.out({"events", "redeliver", "--all", "--event", "other", "--yes"}) == "sent again: 0 dead letters\n");
    CHECK(desk.out({"events", "redeliver", "--all", "--subscription", "billing", "--yes"}) ==
          "sent again: 2 dead letters\n");
    CHECK_THAT(desk.refusal({"events", "redeliver"}), StartsWith("2 error: say which dead letters"));
    CHECK(desk.refusal({"events", "discard", "--event", "x"}) == "2 error: --event needs --all\n");
    desk.with_host([&](host& in) {
        const auto again = desk.receive(in, "billing");
        REQUIRE(again.size() == 3);
        CHECK(again.front().generation == 2);
        CHECK(again.front().calls == 0);
    });
}

TEST_CASE("holdfast events subscriptions, replay and unsubscribe") {
    if (no_redis()) SKIP("Redis is not installed (no redis-server found)");
    event_desk desk;
    CHECK(desk.out({"events", "subscriptions"}) == "no subscriptions\n");
    std::vector<std::uint64_t> positions;
    desk.with_host([&](host& in) {
        desk.get(in, in.event_transport().subscribe({.name = "billing", .topics = {"order.sent", "order.placed"}}));
        for (int i = 0; i < 3; ++i) desk.get(in, in.event_transport().publish({desk.message("order.placed")}));
        for (const delivery& each : desk.receive(in, "billing")) {
            positions.push_back(each.position);
            const delivery_settlement done[] = {{.held = &each.lease}};
            desk.get(in, in.event_transport().settle(done));
        }
    });
    REQUIRE(positions.size() == 3);
    CHECK(squeezed(desk.out({"events", "subscriptions"})) ==
          "SUBSCRIPTION WAITING LEASED DEAD ACKNOWLEDGED DISCARDED EVENTS\n"
          "billing 0 0 0 3 0 order.placed, order.sent\n");
    CHECK_THAT(
        desk.out({"events", "subscriptions", "--json"}),
        StartsWith(R"({"subscriptions":[{"name":"billing","events":["order.placed","order.sent"],"waiting":0,)"));

    const std::string second = std::to_string(positions[1]);
    CHECK_THAT(desk.refusal({"events", "replay", "billing"}), StartsWith("2 error: say from where"));
    CHECK_THAT(desk.refusal({"events", "replay", "billing", "--from", "yesterday"}),
               StartsWith("2 error: --from is \"yesterday\"; expected a position (1042), a time"));
    CHECK(desk.refusal({"events", "replay", "billing", "--from", second}) ==
          "1 error: \"billing\" would get again all that is kept from " + second +
              " on; nothing was done, add --yes to do it\n");
    CHECK_THAT(desk.refusal({"events", "replay", "biling", "--from", second, "--yes"}),
               StartsWith("1 error: there is no subscription \"biling\"; did you mean \"billing\"?"));
    CHECK(desk.out({"events", "replay", "billing", "--from", second, "--yes"}) == "replayed: 2 events for billing\n");
    CHECK(desk.out({"events", "replay", "billing", "--from", "1h", "--yes", "--json"}) == "{\"replayed\":1}\n");
    CHECK(desk.out({"events", "replay", "billing", "--from", "2999-01-01T00:00:00Z", "--yes"}) ==
          "replayed: 0 events for billing\n");

    CHECK_THAT(desk.refusal({"events", "unsubscribe", "billing"}), StartsWith("1 error: the subscription \"billing\""));
    CHECK(desk.out({"events", "unsubscribe", "billing", "--yes"}) == "forgotten: billing\n");
    CHECK(desk.out({"events", "subscriptions"}) == "no subscriptions\n");
}

TEST_CASE("holdfast outbox shows what was set aside, and puts it back or forgets it") {
    if (no_redis()) SKIP("Redis is not installed (no redis-server found)");
    event_desk desk;
    std::vector<std::string> ids;
    desk.with_host([&](host& in) {
        std::vector<envelope> batch;
        for (int i = 0; i < 3; ++i) batch.push_back(desk.message("order.placed"));
        for (const envelope& each : batch) ids.push_back(to_text(each.id));
        desk.get(in, in.outbox().append(std::move(batch)));
        const auto leased = desk.get(in, in.outbox().lease_batch(2, std::chrono::seconds{60}, "test"));
        std::vector<message_failure> failures;
        for (const leased_message& each : leased)
            failures.push_back({.held = &each.lease, .why = "too large for the carrier", .set_aside = true});
        desk.get(in, in.outbox().failed(failures));
    });
    const std::string text = squeezed(desk.out({"outbox", "list"}));
    CHECK_THAT(text, ContainsSubstring("SET ASIDE EVENT KEY ATTEMPTS WHY\n" + ids[0] + " order.placed - "));
    CHECK_THAT(text, ContainsSubstring(" too large for the carrier\n"));
    CHECK_THAT(desk.out({"outbox", "list", "--json"}), ContainsSubstring("\"set_aside\":[{\"id\":\"" + ids[0] + "\","));
    CHECK(desk.out({"outbox", "retry", ids[0]}) == "back in line: 1\n");
    CHECK_THAT(desk.refusal({"outbox", "retry", ids[0]}), StartsWith("1 error: back in line: 0 of 1"));
    CHECK(desk.out({"outbox", "discard", ids[1]}) == "discarded: 1\n");
    CHECK(desk.out({"outbox", "list"}) == "unsent: 2\n");
}

TEST_CASE("holdfast rules explains what becomes of the errors of an application's consumers") {
    temporary_folder folder;
    folder.plugin("event_application");
    const auto run = [&](std::string_view toml, std::vector<std::string> more = {}) {
        std::vector<std::string> words = {"rules", "--config", folder.write("desk.toml", toml).string()};
        words.insert(words.end(), more.begin(), more.end());
        return run_holdfast(std::move(words));
    };
    const char* desk = "[plugins]\npath = ['.']\n[application]\nplugin = 'event_desk'\n";
    const auto shown = run(desk);
    INFO(shown.err);
    CHECK(shown.code == 0);
    CHECK_THAT(shown.out, StartsWith("consumer billing\n"));
    CHECK_THAT(shown.out, ContainsSubstring("on<std::invalid_argument>"));
    CHECK_THAT(shown.out, ContainsSubstring("dead letter"));
    CHECK_THAT(run(desk, {"--json"}).out, StartsWith("{\"consumers\":[{\"consumer\":\"billing\",\"rules\":\""));
    const auto refused = run("");
    CHECK(refused.code == 1);
    CHECK_THAT(refused.err, ContainsSubstring("there is no [application]"));
}

TEST_CASE("without events that can be seen from outside, the events commands say so") {
    temporary_folder folder;
    const auto refused = [&](std::string_view toml) {
        const auto done = run_holdfast({"events", "list", "--config", folder.write("desk.toml", toml).string()});
        CHECK(done.code == 1);
        return done.err;
    };
    CHECK_THAT(refused(""), ContainsSubstring("write [events] with plugin = "));
    CHECK_THAT(refused("[events]\nplugin = 'memory'\n"),
               ContainsSubstring("the memory events plugin keeps its messages inside its own process"));
    CHECK_THAT(run_holdfast({"events"}).err, StartsWith("holdfast events VERB [OPTION]...\n\n  events list "));
    CHECK_THAT(run_holdfast({"events", "replay", "--help"}).out,
               StartsWith("holdfast events replay SUBSCRIPTION [OPTION]...\n"));
    CHECK_THAT(run_holdfast({"outbox", "--help"}).out, StartsWith("holdfast outbox VERB [OPTION]...\n"));
}
