// Random schedules: two processes publish, relay and consume; at one call of the first to its store or its transport
// something goes wrong. A rollback delivers nothing, a commit everything, effects in units happen once, keys stay in order.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <string>

#include <holdfast/task_scope.hpp>

#include "catch.hpp"
#include "event_lab.hpp"
#include "faulty_events.hpp"

using namespace std::chrono_literals;
using namespace holdfast;

namespace {

constexpr auto lease = 10s;

enum class fault : unsigned char { dies_before, dies_after, freezes, loses_the_answer, loses_its_servers };

enum class outcome : unsigned char { committed, rolled_back, unknown };

struct transaction {
    outcome how = outcome::unknown;
    std::vector<envelope> messages;
};

// What the world sees of all processes.
struct world {
    std::map<identifier, int> plain_calls;
    std::map<std::string, std::vector<identifier>> first_calls; // by key
    std::vector<transaction> published;
    identifier_source ids{3};
    int made_ids = 0;

    identifier next_id() {
        return ids.next(std::chrono::system_clock::time_point(std::chrono::milliseconds(++made_ids)));
    }
};

// One process: its own way to the store and to the transport, which may be cut.
struct process {
    process(simulated_runtime& runs, store& held, event_transport& kept, random_series& random)
        : on(runs), data(held), through_store(held), through_transport(kept), random_(random) {
        for (test::trouble* each : {&through_store.with, &through_transport.with}) {
            each->on = &on;
            each->before = [this](std::string_view call) { return before(call); };
            each->after = [this](std::string_view) { return after(); };
            each->lag = [this] { return lag(); };
        }
    }
    std::optional<error> before(std::string_view) {
        if (!alive) return error{errc::unavailable, "dead", std::nullopt};
        ++calls;
        if (calls == fault_at) {
            if (what == fault::dies_before) alive = false;
            if (what == fault::freezes) frozen_until = on.now() + 25s;
            if (what == fault::loses_its_servers) cut_until = on.now() + 20s;
        }
        if (!alive || on.now() < cut_until) return error{errc::unavailable, "gone", std::nullopt};
        return std::nullopt;
    }
    std::optional<error> after() {
        if (!alive) return error{errc::unavailable, "dead", std::nullopt};
        if (calls < fault_at || told) return std::nullopt;
        if (what == fault::dies_after) alive = false;
        if (what == fault::loses_the_answer || what == fault::dies_after) {
            told = true;
            return error{errc::unknown_outcome, "cut", std::nullopt};
        }
        return std::nullopt;
    }
    duration lag() {
        if (on.now() < frozen_until) return frozen_until - on.now();
        return std::chrono::microseconds(random_.next() % 3000);
    }

    simulated_runtime& on;
    store& data; // what the application itself writes to; see `alive`
    test::faulty_store through_store;
    test::faulty_transport through_transport;
    bool alive = true;
    bool told = false;
    int calls = 0;
    int fault_at = -1;
    fault what = fault::dies_before;
    time_point frozen_until{};
    time_point cut_until{};

private:
    random_series& random_;
};

// Publishes some transactions, one after the other, and notes what it knows of them. Gives up when it dies.
task<void> publish_some(process& in, world& seen, std::string name, std::uint64_t seed) {
    random_series random(seed);
    const int count = 2 + static_cast<int>(random.next() % 4);
    for (int i = 0; i < count && in.alive; ++i) {
        co_await sleep_for(in.on, std::chrono::milliseconds(random.next() % 2000));
        transaction made;
        for (std::uint64_t n = 1 + random.next() % 3; n > 0; --n) {
            const std::string key = random.next() % 4 == 0 ? "" : name + std::to_string(random.next() % 2);
            made.messages.push_back({seen.next_id(), "orders", key, {.type = "orders", .body = "x"}, {}});
        }
        auto beginning = in.through_store.begin();
        auto unit = co_await std::move(beginning);
        if (!unit) continue;
        auto appending = in.through_store.outbox()->append(made.messages, unit->get());
        const auto appended = co_await std::move(appending);
        if (!appended || random.next() % 3 == 0) {
            made.how = outcome::rolled_back;
            seen.published.push_back(std::move(made));
            auto taking_back = (*unit)->rollback();
            co_await std::move(taking_back);
            continue;
        }
        seen.published.push_back(made);
        const std::size_t at = seen.published.size() - 1;
        auto committing = (*unit)->commit();
        const auto committed = co_await std::move(committing);
        if (committed) seen.published[at].how = outcome::committed;
    }
}

class schedule {
public:
    explicit schedule(std::uint64_t seed)
        : random_(seed), on_(seed), held_(memory::make_store({}, &on_)), kept_(events_memory::make_transport({}, &on_)),
          first_(on_, *held_, *kept_, random_), second_(on_, *held_, *kept_, random_) {}

    // What went wrong; empty when nothing did.
    std::string run() {
        first_.fault_at = 1 + static_cast<int>(random_.next() % 60);
        first_.what = static_cast<fault>(random_.next() % 5);
        for (const char* name : {"exact", "plain"}) sync_wait(on_, kept_->subscribe({name, {"orders"}, false})).value();
        std::uint64_t part = 0;
        for (process* each : {&first_, &second_}) {
            register_consumers(consumers_[part], *each);
            const std::string name = part == 0 ? "one" : "other";
            relays_[part].emplace(relay_parts{on_, *each->through_store.outbox(), each->through_transport, log_},
                                  relay_options{.batch = 4, .lease = lease, .last_wait = 1s, .name = name},
                                  random_.next());
            workers_[part].emplace(
                event_worker_parts{on_, each->through_transport, &each->through_store, consumers_[part], log_},
                event_worker_options{.lease = lease, .last_wait = 1s, .batch = 6, .name = name}, random_.next());
            relays_[part]->start().value();
            workers_[part]->start().value();
            publishing_.spawn(publish_some(*each, world_, part == 0 ? "a" : "b", random_.next()));
            ++part;
        }
        bool drained = false;
        for (int step = 0; step < 400 && !drained; ++step) {
            on_.advance(1s);
            drained = publishing_.running() == 0 && is_drained();
        }
        sync_wait(on_, publishing_.join());
        for (auto& each : relays_) sync_wait(on_, each->stop());
        for (auto& each : workers_) sync_wait(on_, each->stop(1s));
        if (!drained) return "not drained:\n" + log_.all();
        return check();
    }

    std::string describe() const {
        constexpr std::string_view names[] = {"dies before", "dies after", "freezes in", "loses the answer of",
                                              "loses its servers from"};
        return "the first process " + std::string(names[static_cast<int>(first_.what)]) + " call " +
               std::to_string(first_.fault_at);
    }

private:
    // One more job, in the unit, names the event.
    static task<result<void>> effect(process& in, world& seen, const envelope& e, event_context& c,
                                     unit_of_work* unit) {
        co_await sleep_for(c.runtime(), std::chrono::milliseconds(e.id.bytes.back() % 50));
        if (!in.alive) throw operation_cancelled();
        new_job one;
        one.id = seen.next_id();
        one.what = {"effect", 1, "text/plain", to_text(e.id)};
        one.queue = e.key.empty() ? "none" : e.key;
        std::vector<new_job> jobs;
        jobs.push_back(std::move(one));
        auto enqueueing = in.data.jobs()->enqueue(std::move(jobs), test::faulty_unit::inside(unit));
        const auto enqueued = co_await std::move(enqueueing);
        if (!enqueued) co_return std::unexpected(enqueued.error());
        if (e.id.bytes.back() % 5 == 0 && c.attempt() == 1) throw std::runtime_error("flaky");
        if (e.id.bytes.back() % 7 == 0 && c.redeliveries() == 0) co_return fail(errc::not_found, "later");
        co_return result<void>{};
    }
    static task<result<void>> call(process& in, world& seen, const envelope& e, event_context& c) {
        co_await sleep_for(c.runtime(), std::chrono::milliseconds(e.id.bytes.back() % 80));
        if (!in.alive) throw operation_cancelled();
        if (++seen.plain_calls[e.id] == 1 && !e.key.empty()) seen.first_calls[e.key].push_back(e.id);
        co_return result<void>{};
    }

    void register_consumers(consumer_registry& to, process& in) {
        to.add(std::make_unique<test::any_consumer>(
                   "exact", "orders",
                   [this, &in](const envelope& e, event_context& c, unit_of_work* unit) {
                       return effect(in, world_, e, c, unit);
                   },
                   consumer_options{.concurrency = 3}, true))
            .value();
        to.add(std::make_unique<test::any_consumer>(
                   "plain", "orders",
                   [this, &in](const envelope& e, event_context& c, unit_of_work*) { return call(in, world_, e, c); },
                   consumer_options{.concurrency = 3}, false))
            .value();
        exception_policy rules;
        rules.default_().retry(2, 100ms).then_redeliver({1s, 1s, 1s, 1s, 1s, 1s});
        to.on_error(error_scope::host, std::move(rules));
    }

    bool is_drained() {
        if (sync_wait(on_, held_->outbox()->unsent()).value() > 0) return false;
        for (const auto& each : sync_wait(on_, kept_->subscriptions()).value())
            if (each.waiting + each.leased > 0) return false;
        return true;
    }

    std::string check() {
        std::map<std::string, int> effects; // by event
        std::map<std::string, std::vector<std::string>> done;
        auto page = sync_wait(on_, held_->jobs()->list({}, 1000)).value();
        std::ranges::reverse(page.jobs); // oldest first
        for (const job_view& each : page.jobs) {
            ++effects[each.what.body];
            if (each.queue != "none") done[each.queue].push_back(each.what.body);
        }
        std::uint64_t delivered = 0;
        std::map<std::string, std::vector<std::string>> expected;
        std::map<std::string, std::vector<identifier>> expected_calls;
        for (const transaction& each : world_.published) {
            std::set<int> counts;
            for (const envelope& m : each.messages) {
                const int count = effects[to_text(m.id)];
                counts.insert(count);
                if (count > 0) {
                    ++delivered;
                    if (!m.key.empty()) expected[m.key].push_back(to_text(m.id));
                    if (!m.key.empty()) expected_calls[m.key].push_back(m.id);
                    if (world_.plain_calls[m.id] == 0) return "a plain consumer never saw " + to_text(m.id);
                } else if (world_.plain_calls[m.id] > 0) {
                    return "only the plain consumer saw " + to_text(m.id);
                }
            }
            if (counts.size() > 1) return "a transaction was delivered in part";
            if (*counts.begin() > 1) return "an effect happened twice";
            if (each.how == outcome::committed && *counts.begin() != 1) return "a commit was not delivered";
            if (each.how == outcome::rolled_back && *counts.begin() != 0) return "a rollback was delivered";
        }
        if (done != expected) return "the effects of a key are out of order";
        if (world_.first_calls != expected_calls) return "the calls of a key are out of order";
        for (const auto& each : sync_wait(on_, kept_->subscriptions()).value()) {
            if (each.dead + each.discarded > 0) return "a dead letter of " + each.name + ":\n" + log_.all();
            if (each.acknowledged != delivered)
                return each.name + " acknowledged " + std::to_string(each.acknowledged) + " of " +
                       std::to_string(delivered);
        }
        return {};
    }

    random_series random_;
    simulated_runtime on_;
    std::unique_ptr<holdfast::store> held_;
    std::unique_ptr<event_transport> kept_;
    process first_;
    process second_;
    world world_;
    test::kept_log log_;
    consumer_registry consumers_[2];
    std::optional<event_relay> relays_[2];
    std::optional<event_worker> workers_[2];
    task_scope publishing_;
};

void run_schedules(std::uint64_t first, std::uint64_t last) {
    if (const char* one = std::getenv("HOLDFAST_SEED")) {
        first = std::strtoull(one, nullptr, 10);
        last = first;
    }
    for (std::uint64_t seed = first; seed <= last; ++seed) {
        schedule each(seed);
        const std::string wrong = each.run();
        if (wrong.empty()) continue;
        FAIL("HOLDFAST_SEED=" << seed << ": " << each.describe() << "\n" << wrong);
    }
    SUCCEED();
}

} // namespace

TEST_CASE("whatever goes wrong at one call, a commit is delivered and a rollback is not (schedules 1 to 2500)") {
    run_schedules(1, 2500);
}
TEST_CASE("whatever goes wrong at one call, a commit is delivered and a rollback is not (schedules 2501 to 5000)") {
    run_schedules(2501, 5000);
}
TEST_CASE("whatever goes wrong at one call, a commit is delivered and a rollback is not (schedules 5001 to 7500)") {
    run_schedules(5001, 7500);
}
TEST_CASE("whatever goes wrong at one call, a commit is delivered and a rollback is not (schedules 7501 to 10000)") {
    run_schedules(7501, 10'000);
}
