// Events through a host: declared, published, relayed and consumed.
#include <atomic>
#include <chrono>
#include <future>
#include <mutex>
#include <semaphore>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <holdfast/codec.hpp>
#include <holdfast/host.hpp>
#include <holdfast/sync_wait.hpp>

#include "catch.hpp"
#include "support.hpp"

using namespace holdfast;
using namespace support;
using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;

namespace {

struct order_placed {
    static constexpr event_options options{.name = "order.placed"};
    std::string order;
};
struct order_sent {
    static constexpr event_options options{.name = "order.sent"};
    std::string order;
};

template <class Event>
struct text_codec {
    static constexpr std::string_view content_type = "text/plain";
    static std::string encode(const Event& e) { return e.order; }
    static result<Event> decode(std::string_view body) { return Event{std::string(body)}; }
};

} // namespace

template <>
struct holdfast::codec<order_placed> : text_codec<order_placed> {};
template <>
struct holdfast::codec<order_sent> : text_codec<order_sent> {};

namespace {

// With the shipped plugins in reach; lines of `rest` begin at 5.
host bare_desk(std::string_view rest = {}, std::shared_ptr<logger> log = std::make_shared<null_logger>()) {
    auto made = host::from_text("[plugins]\npath = ['" HOLDFAST_BUILD_PLUGIN_DIR "', '" HOLDFAST_FIXTURE_DIR "']\n"
                                "[store]\nplugin = 'memory'\n" +
                                    std::string(rest),
                                "desk.toml");
    made.log_to(std::move(log));
    return made;
}
// And events; lines of `rest` begin at 7.
host desk(std::string_view rest = {}, std::shared_ptr<logger> log = std::make_shared<null_logger>()) {
    return bare_desk("[events]\nplugin = 'memory'\n" + std::string(rest), std::move(log));
}

template <class T>
T get(host& on, task<result<T>> what) {
    auto answer = sync_wait(on.runtime(), std::move(what));
    if (!answer) throw failed(std::move(answer.error()));
    if constexpr (!std::is_void_v<T>) return std::move(*answer);
}

template <class Condition>
bool soon(Condition met) {
    for (int i = 0; i < 2000; ++i) {
        if (met()) return true;
        std::this_thread::sleep_for(5ms);
    }
    return false;
}

// What consumers were given, in that order.
class notes {
public:
    void add(std::string line) {
        const std::lock_guard lock(mutex_);
        lines_.push_back(std::move(line));
    }
    std::vector<std::string> lines() const {
        const std::lock_guard lock(mutex_);
        return lines_;
    }
    bool has(std::size_t count) const {
        return soon([&] { return lines().size() >= count; });
    }

private:
    mutable std::mutex mutex_;
    std::vector<std::string> lines_;
};

std::string refusal_of(host& at) {
    return message_of([&] { at.start(); });
}

void ignore(const order_placed&) {}

} // namespace

TEST_CASE("an event that was committed reaches its consumer, one that was rolled back does not") {
    notes got;
    auto host = desk();
    host.add_consumer<order_placed>("billing", [&](order_placed e) { got.add(e.order); });
    host.start();
    for (const bool commit : {false, true}) {
        const auto unit = get(host, host.store().begin());
        get(host, host.events().publish(*unit, order_placed{commit ? "kept" : "undone"}));
        get(host, commit ? unit->commit() : unit->rollback());
    }
    get(host, host.events().publish(order_placed{"without a unit"}));
    REQUIRE(got.has(2));
    host.stop();
    auto lines = got.lines(); // in no promised order: the events have no key
    std::ranges::sort(lines);
    CHECK(lines == std::vector<std::string>{"kept", "without a unit"});
    CHECK(host.relay().published == 2);
    REQUIRE(host.consumers().consumers.size() == 1);
    CHECK(host.consumers().consumers.front().handled == 2);
}

TEST_CASE("every subscription gets the event, and one subscription may have several events") {
    notes got;
    auto host = desk();
    host.add_consumer<order_placed>("billing", [&](order_placed e) { got.add("billing placed " + e.order); });
    host.add_consumer<order_sent>("billing", [&](order_sent e) { got.add("billing sent " + e.order); });
    host.add_consumer<order_placed>("stock", [&](order_placed e) { got.add("stock placed " + e.order); });
    host.start();
    get(host, host.events().publish(order_placed{"A-7"}));
    get(host, host.events().publish(order_sent{"A-7"}));
    REQUIRE(got.has(3));
    host.stop();
    auto lines = got.lines();
    std::ranges::sort(lines);
    CHECK(lines == std::vector<std::string>{"billing placed A-7", "billing sent A-7", "stock placed A-7"});
}

TEST_CASE("domain consumers run where the event is raised, in declared order, and a failure is the publisher's") {
    notes got;
    auto host = bare_desk();
    host.add_domain_consumer<order_placed>("stock", [&](order_placed e) { got.add("stock " + e.order); });
    host.add_domain_consumer<order_placed>("limits", [&](order_placed e, unit_of_work&) {
        got.add("limits " + e.order);
        if (e.order == "too large") throw std::runtime_error("over the limit");
    });
    host.start();
    const auto unit = get(host, host.store().begin());
    sync_wait(host.runtime(), host.events().raise(*unit, order_placed{"A-7"}));
    CHECK(got.lines() == std::vector<std::string>{"stock A-7", "limits A-7"});
    CHECK_THROWS_AS(sync_wait(host.runtime(), host.events().raise(*unit, order_placed{"too large"})), consumers_failed);
}

TEST_CASE("a host without [events] publishes into its outbox, and leaves the rest to others") {
    auto host = bare_desk();
    host.start();
    get(host, host.events().publish(order_placed{"A-7"}));
    CHECK(get(host, host.outbox().unsent()) == 1);
    CHECK(host.relay().name.empty());
    CHECK_FALSE(host.has_events());
    CHECK(message_of([&] { host.event_transport(); }) ==
          "desk.toml: nothing carries events; write [events] with plugin = \"memory\", or another");
}

TEST_CASE("what is missing to publish or consume is said with the section to write") {
    auto consumer = bare_desk();
    consumer.add_consumer<order_placed>("billing", &ignore);
    CHECK(refusal_of(consumer) ==
          "desk.toml: the consumer \"billing\" needs [events] with plugin = \"memory\", or another");

    auto storeless = host::from_text("[plugins]\npath = ['" HOLDFAST_BUILD_PLUGIN_DIR "']\n", "desk.toml");
    storeless.log_to(std::make_shared<null_logger>()).start();
    const auto refused = sync_wait(storeless.runtime(), storeless.events().publish(order_placed{"A-7"}));
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message == "publishing needs a store with an outbox: write [store] or [store.outbox]");
}

TEST_CASE("[relay] work = false leaves events in the outbox, [consumers] work = false with those who carry them") {
    notes got;
    auto quiet = desk("[relay]\nwork = false\n");
    quiet.add_consumer<order_placed>("billing", [&](order_placed e) { got.add(e.order); });
    quiet.start();
    get(quiet, quiet.events().publish(order_placed{"A-7"}));
    CHECK(get(quiet, quiet.outbox().unsent()) == 1);
    CHECK(quiet.relay().name.empty());

    auto relays = desk("[consumers]\nwork = false\n");
    relays.add_consumer<order_placed>("billing", [&](order_placed e) { got.add(e.order); });
    relays.start();
    get(relays, relays.event_transport().subscribe({.name = "later", .topics = {"order.placed"}}));
    get(relays, relays.events().publish(order_placed{"A-7"}));
    CHECK(soon([&] { return get(relays, relays.event_transport().subscriptions()).front().waiting == 1; }));
    CHECK(relays.consumers().name.empty());
    CHECK(got.lines().empty());
}

TEST_CASE("[consumers.NAME] goes before what the program says") {
    std::atomic<int> running = 0;
    std::atomic<int> most = 0;
    notes got;
    auto host = desk("[consumers.billing]\nconcurrency = 1\n");
    host.add_consumer<order_placed>("billing",
                                    [&](order_placed e) {
                                        most = std::max(most.load(), ++running);
                                        std::this_thread::sleep_for(5ms);
                                        --running;
                                        got.add(e.order);
                                    },
                                    {.concurrency = 8});
    host.start();
    for (int i = 0; i < 10; ++i) get(host, host.events().publish(order_placed{std::to_string(i)}));
    REQUIRE(got.has(10));
    CHECK(most == 1);
}

TEST_CASE("[consumers.NAME] of a consumer that nobody declared is refused, with a suggestion") {
    auto host = desk("[consumers.biling]\nconcurrency = 1\n");
    host.add_consumer<order_placed>("billing", &ignore);
    CHECK(refusal_of(host) ==
          "desk.toml:7: [consumers.biling]: there is no consumer \"biling\"; did you mean \"billing\"?");
}

TEST_CASE("rules say what becomes of an error: the consumer's own, else those of all events, else the host's") {
    struct expired : std::runtime_error {
        using runtime_error::runtime_error;
    };
    std::atomic<int> calls = 0;
    auto host = desk();
    exception_policy own;
    own.on<expired>().dead_letter();
    own.default_().retry(2, 1ms);
    host.add_consumer<order_placed>(
        "billing",
        [&](order_placed e) {
            ++calls;
            if (e.order == "expired") throw expired("the card has expired");
            throw std::runtime_error("no luck");
        },
        own);
    host.add_consumer<order_placed>("stock", [](order_placed) { throw std::runtime_error("empty"); });
    exception_policy drop;
    drop.default_().discard();
    host.use(error_scope::bus, drop).use(exception_policy::standard());
    host.start();
    get(host, host.events().publish(order_placed{"expired"}));
    get(host, host.events().publish(order_placed{"unlucky"}));
    const auto dead = [&] { return get(host, host.event_transport().dead_messages({}, 10)).messages; };
    REQUIRE(soon([&] { return dead().size() == 2; }));
    CHECK(calls == 1 + 3);
    for (const dead_message& each : dead()) {
        CHECK(each.subscription == "billing");
        const bool expired_one = each.message.what.body == "expired";
        CHECK(each.calls == (expired_one ? 1 : 3));
        CHECK(each.error.message == (expired_one ? "the card has expired" : "no luck"));
    }
    CHECK(soon([&] { return host.consumers().consumers.at(1).discarded == 2; }));
}

TEST_CASE("a consumer name has one table of rules, a scope too") {
    auto host = desk();
    host.add_consumer<order_placed>("billing", &ignore, exception_policy::standard());
    CHECK_THAT(
        message_of([&] { host.add_consumer<order_sent>("billing", [](order_sent) {}, exception_policy::standard()); }),
        StartsWith("the consumer \"billing\" has exception rules already"));
    host.use(error_scope::bus, exception_policy::standard());
    CHECK(message_of([&] { host.use(error_scope::bus, exception_policy::standard()); }) ==
          "events have exception rules of that scope already");
}

TEST_CASE("a consumer that is declared twice is refused") {
    auto host = desk();
    host.add_consumer<order_placed>("billing", &ignore).add_consumer<order_placed>("billing", &ignore);
    CHECK_THAT(refusal_of(host), ContainsSubstring("\"billing\""));
}

TEST_CASE("a consumer that runs when the host stops gets its grace, then its token fires") {
    for (const bool patient : {true, false}) {
        std::promise<void> began;
        std::atomic<bool> told = false;
        auto host = desk(patient ? "[consumers]\nshutdown_grace = '10s'\n" : "[consumers]\nshutdown_grace = '0s'\n");
        host.add_consumer<order_placed>("billing", [&](order_placed, event_context& context) {
            began.set_value();
            for (int i = 0; i < 40 && !context.stop_token().stop_requested(); ++i) std::this_thread::sleep_for(5ms);
            told = context.stop_token().stop_requested();
        });
        host.start();
        get(host, host.events().publish(order_placed{"A-7"}));
        began.get_future().get();
        host.stop();
        CHECK(told == !patient);
        CHECK(host.consumers().running.empty());
        CHECK(host.consumers().consumers.front().handled == 1);
    }
}

TEST_CASE("a consumer that is blocked holds back its own key and no other") {
    std::binary_semaphore go(0);
    notes got;
    struct keyed {
        static publish_options by(std::string key) { return {.key = std::move(key)}; }
    };
    auto host = desk();
    host.add_consumer<order_placed>("billing",
                                    [&](order_placed e, event_context& context) {
                                        if (e.order == "blocks") go.acquire();
                                        got.add(std::string(context.key()) + " " + e.order);
                                    },
                                    {.concurrency = 4});
    host.start();
    get(host, host.events().publish(order_placed{"blocks"}, keyed::by("a")));
    for (int i = 0; i < 50; ++i) {
        get(host, host.events().publish(order_placed{std::to_string(i)}, keyed::by("a")));
        get(host, host.events().publish(order_placed{std::to_string(i)}, keyed::by("b" + std::to_string(i % 5))));
    }
    const bool others_went_on = got.has(50);
    const auto meanwhile = got.lines();
    go.release();
    CHECK(others_went_on);
    CHECK(std::ranges::none_of(meanwhile, [](const std::string& each) { return each.starts_with("a "); }));
    REQUIRE(got.has(101));
    const auto all = got.lines();
    int next = -1; // those of the blocked key come in their order
    for (const std::string& each : all) {
        if (!each.starts_with("a ")) continue;
        CHECK(each == (next < 0 ? "a blocks" : "a " + std::to_string(next)));
        ++next;
    }
}

TEST_CASE("[promises] go for what carries events too, and [promises.events] for that alone") {
    const std::string rest = ", which desk.toml:6: the events plugin \"memory\" of [events] cannot promise: survives "
                             "nothing, for one process";
    auto shared = desk("[promises.events]\nshared = true\n");
    CHECK_THAT(refusal_of(shared), StartsWith("desk.toml:7: [promises.events] asks for shared = true" + rest));
    auto durable = desk("[promises.events]\nwrites_survive = 'power_loss'\n");
    CHECK_THAT(refusal_of(durable),
               StartsWith("desk.toml:7: [promises.events] asks for writes_survive = \"power_loss\"" + rest));
    auto units = desk("[promises]\nunits_of_work = true\n");
    CHECK(refusal_of(units) == "nothing was thrown");
    auto none = bare_desk("[promises.events]\nshared = true\n");
    CHECK(refusal_of(none) == "desk.toml:5: [promises.events] needs [events] with plugin = \"memory\", or another");
}

TEST_CASE("a transport that survives less than the outbox is warned of") {
    const temporary_folder folder;
    const auto log = std::make_shared<kept_log>();
    auto host =
        host::from_text("[plugins]\npath = ['" HOLDFAST_BUILD_PLUGIN_DIR "']\n[store]\nplugin = 'sqlite'\nfile = '" +
                            folder.text() + "/desk.db'\n[events]\nplugin = 'memory'\n",
                        "desk.toml");
    host.log_to(log).start();
    CHECK(log->has(
        "warning desk.toml:7: the events plugin \"memory\" of [events] survives nothing, the outbox power loss: "
        "events that were committed can be lost on their way; [promises.events] would refuse this"));
}

TEST_CASE("a tool may pass over the consumers of a program that it does not have") {
    auto host = desk("[consumers.billing]\nconcurrency = 1\n");
    host.allow_unknown_policies().without_work();
    CHECK(refusal_of(host) == "nothing was thrown");
}

TEST_CASE("an events plugin that is not there, or of another kind, is refused") {
    auto unknown = bare_desk("[events]\nplugin = 'memroy'\n");
    CHECK_THAT(refusal_of(unknown),
               StartsWith("desk.toml:6: there is no events plugin \"memroy\"; did you mean \"memory\"? Looked in "));
    const std::string store = HOLDFAST_BUILD_PLUGIN_DIR "/store_memory.so";
    auto wrong = bare_desk("[events]\nplugin = '" + store + "'\n");
    CHECK(refusal_of(wrong) == store + ": found the store plugin \"memory\", expected a plugin of kind events");
    auto mistyped = desk("kepe = '1d'\n");
    CHECK_THAT(refusal_of(mistyped), StartsWith("desk.toml:7: [events] has no key \"kepe\""));
}

TEST_CASE("an application plugin declares consumers and publishes") {
    const auto log = std::make_shared<kept_log>();
    auto host = desk("[application]\nplugin = 'event_desk'\n", log);
    CHECK(host.run() == 0);
    CHECK(log->has("info in stock: A-7"));
    CHECK(log->has("info billed: A-7"));
}
