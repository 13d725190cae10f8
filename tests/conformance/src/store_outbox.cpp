// Outbox: at least once, in order per key. Inbox: once.
#include <map>
#include <mutex>
#include <set>

#include "store_names.hpp"
#include "store_outbox.hpp"

namespace holdfast::conformance {

namespace {

void comes_back_as_it_was(store_lab& in) {
    const outbox_user user(in);
    outgoing_message m = user.make("order-7");
    m.topic = "orders";
    m.what = {.type = "order.created", .version = 4, .content_type = "text/plain", .body = std::string("a\0b\xFF", 4)};
    m.extra = {{"traceparent", "00-a-b-01"}};
    user.append(m);
    check_equal(user.unsent(), std::uint64_t{1}, "unsent");
    const leased_message got = user.lease_one();
    check_equal(got.message.id, m.id, "id");
    check_equal(got.message.topic, m.topic, "topic");
    check_equal(got.message.key, m.key, "key");
    check(got.message.what == m.what, "payload");
    check(got.message.extra == m.extra, "headers");
    check_equal(got.attempts, 0, "attempts");
    check(got.lease.token() > 0, "tokens start above zero");
    check_equal(user.lease(1).size(), std::size_t{0}, "messages to lease while it is leased");
    check_equal(user.delivered(got), write_answer::done, "delivered");
    check_equal(user.unsent(), std::uint64_t{0}, "unsent afterwards");
    check_equal(user.lease(1).size(), std::size_t{0}, "messages to lease afterwards");
    check(user.delivered(got) != write_answer::done, "what was delivered cannot be delivered again");
}

void the_same_id_keeps_the_first(store_lab& in) {
    const outbox_user user(in);
    outgoing_message m = user.make("k", "first");
    user.append(m);
    m.what.body = "second";
    user.append(m);
    in.ok(user.outbox().append({user.make("l"), m}), "append");
    const auto leased = user.lease(10);
    check_equal(leased.size(), std::size_t{2}, "messages to lease");
    check_equal(leased[0].message.what.body, std::string("first"), "body");
}

void in_order(store_lab& in) {
    const outbox_user user(in);
    std::vector<outgoing_message> batch;
    std::vector<identifier> ids;
    for (int i = 0; i < 30; ++i) {
        batch.push_back(user.make(i % 3 == 0 ? "" : i % 3 == 1 ? "a" : "b"));
        ids.push_back(batch.back().id);
    }
    in.ok(user.outbox().append(batch), "append");
    const auto leased = user.lease(30);
    check_equal(ids_of(leased), ids, "a batch, in the order of appending");
    for (std::size_t i = 1; i < leased.size(); ++i)
        check(leased[i].position > leased[i - 1].position, "positions grow");
}

void in_order_one_by_one(store_lab& in) {
    const outbox_user user(in);
    std::vector<identifier> ids;
    for (int i = 0; i < 10; ++i) ids.push_back(user.append("k"));
    check_equal(user.drain(3), ids, "what was sent, in the order of appending");
}

void a_leased_key_waits(store_lab& in) {
    const outbox_user user(in);
    const identifier first = user.append("k");
    const identifier second = user.append("k");
    const identifier other = user.append("l");
    const identifier free_a = user.append("");
    const leased_message one = user.lease_one();
    check_equal(one.message.id, first, "the oldest");
    check_equal(ids_of(user.lease(10)), std::vector{other, free_a}, "what another relay may have meanwhile");
    user.delivered(one);
    check_equal(ids_of(user.lease(10)), std::vector{second}, "the next of the key, when the first was sent");
}

void an_unbroken_row(store_lab& in) {
    const outbox_user user(in);
    std::vector<identifier> ids;
    for (int i = 0; i < 4; ++i) ids.push_back(user.append("k"));
    const auto leased = user.lease(2);
    check_equal(ids_of(leased), std::vector{ids[0], ids[1]}, "the first two");
    check_equal(user.delivered(leased[1]), write_answer::done, "delivered, the second");
    check_equal(user.lease(10).size(), std::size_t{0}, "messages to lease while the first is being sent");
    check_equal(user.delivered(leased[0]), write_answer::done, "delivered, the first");
    check_equal(ids_of(user.lease(10)), std::vector{ids[2], ids[3]}, "the rest");
}

void a_dead_relay(store_lab& in) {
    const outbox_user user(in);
    const identifier id = user.append("k");
    const identifier next = user.append("k");
    const leased_message late = user.lease_one(short_lease);
    in.pass(short_lease);
    const auto again = user.lease(10);
    check_equal(ids_of(again), std::vector{id, next}, "what is leased again, in order");
    check(again[0].lease.token() > late.lease.token(), "the token has grown");
    check_equal(user.delivered(late), write_answer::stale, "delivered, by the late relay");
    check_equal(user.failed(late, 1h), write_answer::stale, "failed, by the late relay");
    check_equal(user.unsent(), std::uint64_t{2}, "unsent");
    check_equal(user.delivered(again[0]), write_answer::done, "delivered");
    check_equal(user.delivered(late), write_answer::gone, "delivered, by the late relay, when it is gone");
}

void many_relays(store_lab& in) {
    const outbox_user user(in);
    std::vector<outgoing_message> batch;
    for (int i = 0; i < 200; ++i) batch.push_back(user.make(i % 2 == 0 ? "" : "k" + std::to_string(i)));
    in.ok(user.outbox().append(batch), "append");
    std::vector<task<result<std::vector<leased_message>>>> calls;
    for (int i = 0; i < 30; ++i) calls.push_back(user.outbox().lease_batch(10, 5min, "relay"));
    std::set<identifier> seen;
    for (auto& each : in.at_once(std::move(calls)))
        for (const auto& m : in.value_of(std::move(each), "lease_batch"))
            check(seen.insert(m.message.id).second, "no message is leased by two relays");
    for (const auto& m : user.lease(300)) check(seen.insert(m.message.id).second, "no message is leased twice");
    check_equal(seen.size(), batch.size(), "messages leased");
}

// What relays have seen of the messages, by key and place in it, as far as they can know.
class order_log {
public:
    explicit order_log(const std::vector<outgoing_message>& appended) {
        for (const auto& each : appended)
            places_.emplace(each.id, std::pair(each.key, sent_[each.key].size())), sent_[each.key].emplace_back();
    }
    // Whoever is given a message must also have been given the one before it, unless that was sent; being sent will do, for
    // the answer may be on its way.
    void leased(const std::vector<leased_message>& row) {
        const std::lock_guard lock(mutex_);
        std::map<std::string, std::size_t> last;
        for (const auto& each : row) {
            const auto& [key, place] = places_.at(each.message.id);
            const bool follows = last.contains(key) && last[key] + 1 == place;
            if (!follows && (last.contains(key) || (place > 0 && !is_sent(key, place - 1)))) overtaken_ = true;
            last[key] = place;
        }
    }
    void sending(const identifier& id) {
        const std::lock_guard lock(mutex_);
        ++of(id).under_way;
    }
    void was_sent(const identifier& id, bool accepted) {
        const std::lock_guard lock(mutex_);
        --of(id).under_way;
        if (accepted && std::exchange(of(id).accepted, true)) twice_ = true;
        if (const auto& [key, place] = places_.at(id); accepted && place > 0 && !is_sent(key, place - 1))
            overtaken_ = true;
    }
    void check_all() const {
        check(!overtaken_, "nothing overtakes another of its key");
        check(!twice_, "what was delivered is not delivered again");
        for (const auto& [key, all] : sent_)
            for (const auto& each : all) check(each.accepted, "each message of a key was delivered");
    }

private:
    struct message {
        int under_way = 0;
        bool accepted = false;
    };
    message& of(const identifier& id) {
        const auto& [key, place] = places_.at(id);
        return sent_[key][place];
    }
    bool is_sent(const std::string& key, std::size_t place) {
        return sent_[key][place].accepted || sent_[key][place].under_way > 0;
    }

    std::mutex mutex_;
    std::map<identifier, std::pair<std::string, std::size_t>> places_;
    std::map<std::string, std::vector<message>> sent_;
    bool overtaken_ = false;
    bool twice_ = false;
};

// Relays that work side by side; some forget what they leased, or cannot send it. Per key nothing overtakes.
void order_under_load(store_lab& in) {
    struct relay {
        static task<void> run(outbox_store* outbox, int number, order_log* seen) {
            random_series random(static_cast<std::uint64_t>(number) + 1);
            for (int idle = 0; idle < 4;) {
                auto leasing = outbox->lease_batch(5, 3ms, "relay");
                auto answer = co_await std::move(leasing);
                const auto leased = store_lab::value_of(std::move(answer), "lease_batch");
                idle = leased.empty() ? idle + 1 : 0;
                seen->leased(leased);
                for (const auto& each : leased) {
                    const auto fate = random.next() % 8;
                    if (fate == 0) break; // died
                    if (fate == 1) {
                        const message_failure refused[] = {{&each.lease, "unreachable", 2ms, false}};
                        auto failing = outbox->failed(refused);
                        auto noted = co_await std::move(failing);
                        store_lab::value_of(std::move(noted), "failed");
                        break;
                    }
                    const message_lease* one[] = {&each.lease};
                    seen->sending(each.message.id);
                    auto sending = outbox->delivered(one);
                    auto sent = co_await std::move(sending);
                    const bool accepted = store_lab::value_of(std::move(sent), "delivered").at(0) == write_answer::done;
                    seen->was_sent(each.message.id, accepted);
                    if (!accepted) break;
                }
            }
        }
    };
    const outbox_user user(in);
    std::vector<outgoing_message> batch;
    for (int i = 0; i < 120; ++i) batch.push_back(user.make("k" + std::to_string(i % 4)));
    in.ok(user.outbox().append(batch), "append");
    order_log seen(batch);
    for (int round = 0; round < 100 && user.unsent() > 0; ++round) {
        std::vector<task<void>> relays;
        for (int i = 0; i < 4; ++i) relays.push_back(relay::run(&user.outbox(), round * 4 + i, &seen));
        in.at_once(std::move(relays));
        in.pass(4ms);
    }
    check_equal(user.unsent(), std::uint64_t{0}, "unsent");
    seen.check_all();
}

void odd_names_come_back(store_lab& in) {
    const outbox_user user(in);
    auto keys = odd_names();
    for (std::string& each : odd_bytes()) keys.push_back(std::move(each));
    const auto topics = odd_names();
    for (std::size_t i = 0; i < keys.size(); ++i) {
        outgoing_message m = user.make(keys[i], keys[i]);
        m.topic = topics[i % topics.size()];
        user.append(m);
        const leased_message got = user.lease_one();
        check(got.message.key == m.key, "key");
        check_equal(got.message.topic, m.topic, "topic");
        check(got.message.what == m.what, "payload");
        user.delivered(got);
    }
    const std::vector wrong = {errc::invalid_argument, errc::too_large};
    const auto refuse = [&](outgoing_message m, std::string_view what) {
        in.refused(user.outbox().append({user.make("fine"), std::move(m)}), wrong, what);
    };
    outgoing_message m = user.make("k");
    m.topic.assign(1025, 'x');
    refuse(m, "a topic of 1025 bytes");
    refuse(user.make(std::string(1025, 'x')), "a key of 1025 bytes");
    refuse(user.make("k", std::string((10u << 20) + 1, 'x')), "a body above 10 MiB");
    check_equal(user.unsent(), std::uint64_t{0}, "unsent, after whole batches were refused");
    check(in.ok(user.outbox().delivered({}), "delivered").empty(), "no answer for no message");
    check(in.ok(user.outbox().failed({}), "failed").empty(), "no answer for no failure");
    in.ok(user.outbox().append({}), "append of nothing");
    in.refused(user.outbox().lease_batch(0, 1s, "relay"), {errc::invalid_argument}, "a batch of none");
    in.refused(user.outbox().lease_batch(1, 0s, "relay"), {errc::invalid_argument}, "a lease for no time");
}

void the_largest(store_lab& in) {
    const outbox_user user(in);
    std::string body(10u << 20, '\0');
    for (std::size_t i = 0; i < body.size(); ++i) body[i] = static_cast<char>(i * 31 % 251);
    const outgoing_message m = user.make("k", body);
    user.append(m);
    const leased_message got = user.lease_one();
    check(got.message.what == m.what, "the payload of 10 MiB that lease_batch() gives");
    check_equal(user.delivered(got), write_answer::done, "delivered");
}

void odd_relays_headers_and_consumers(store_lab& in) {
    const outbox_user user(in);
    outgoing_message m = user.make("k");
    m.extra[std::string(std::size_t{64} * 1024, 'x')] = std::string(std::size_t{64} * 1024, 'y');
    for (const std::string& each : odd_names()) m.extra[each] = each;
    for (const std::string& each : odd_bytes()) m.extra[each] = each;
    user.append(m);
    for (const std::string& relay : odd_names()) {
        const auto leased =
            in.ok(user.outbox().lease_batch(1, 5min, relay), "lease_batch, by a relay with an odd name");
        check_equal(leased.size(), std::size_t{1}, "messages leased");
        check(leased[0].message.extra == m.extra, "headers of any bytes, as long as you like");
        check_equal(user.failed(leased[0], 0s), write_answer::done, "failed");
    }
    const std::vector wrong = {errc::invalid_argument, errc::too_large};
    const auto with_a_long_name =
        in.await(user.outbox().lease_batch(1, 5min, std::string(std::size_t{64} * 1024, 'x')));
    check(with_a_long_name ? with_a_long_name->size() == 1 : with_a_long_name.error().code == errc::too_large,
          "a relay with a name of 64 KB gets a message, or is refused");
    auto consumers = odd_names();
    for (std::string& each : odd_bytes()) consumers.push_back(std::move(each));
    const identifier id = in.next_id();
    for (const std::string& each : consumers) {
        check_equal(in.ok(user.outbox().receive(each, id, 1h), "receive"), true, "the first time for an odd consumer");
        check_equal(in.ok(user.outbox().receive(each, id, 1h), "receive"), false, "a duplicate for an odd consumer");
        check(in.ok(user.outbox().received(each, {id}), "received") == std::vector{true},
              "received by an odd consumer");
    }
    in.refused(user.outbox().receive(std::string(1025, 'x'), id, 1h), wrong, "a consumer of 1025 bytes");
    in.refused(user.outbox().receive("", id, 1h), wrong, "a consumer without a name");
}

void duplicates_are_dropped(store_lab& in) {
    outbox_store& outbox = in.outbox();
    const identifier id = in.next_id();
    const auto receive = [&](std::string consumer, identifier message, duration ttl) {
        return in.ok(outbox.receive(std::move(consumer), message, ttl), "receive");
    };
    check_equal(receive("mailer", id, 1h), true, "the first time");
    check_equal(receive("mailer", id, 1h), false, "a duplicate");
    check_equal(receive("billing", id, 1h), true, "the first time for another consumer");
    check_equal(receive("mailer", in.next_id(), 1h), true, "another message");
    const identifier brief = in.next_id();
    check_equal(receive("mailer", brief, short_lease), true, "the first time");
    in.pass(short_lease + 10ms);
    check_equal(receive("mailer", brief, 1h), true, "after its time it is forgotten");
    in.refused(outbox.receive("mailer", in.next_id(), 0s), {errc::invalid_argument}, "a note for no time");
    std::vector<task<result<bool>>> calls;
    const identifier busy = in.next_id();
    for (int i = 0; i < 100; ++i) calls.push_back(outbox.receive("mailer", busy, 1h));
    int first = 0;
    for (auto& each : in.at_once(std::move(calls))) first += in.value_of(std::move(each), "receive") ? 1 : 0;
    check_equal(first, 1, "receivers out of 100 that were first");
}

void the_inbox_can_be_asked(store_lab& in) {
    outbox_store& outbox = in.outbox();
    const identifier known = in.next_id();
    const identifier brief = in.next_id();
    const identifier fresh = in.next_id();
    in.ok(outbox.receive("mailer", known, 1h), "receive");
    in.ok(outbox.receive("mailer", brief, short_lease), "receive");
    in.ok(outbox.receive("billing", fresh, 1h), "receive");
    in.pass(short_lease + 10ms);
    const auto ask = [&] { return in.ok(outbox.received("mailer", {fresh, known, brief, known}), "received"); };
    check(ask() == std::vector{false, true, false, true}, "what it has, by consumer, within its time");
    check(ask() == std::vector{false, true, false, true}, "asking records nothing");
    check(in.ok(outbox.received("mailer", {}), "received").empty(), "nothing is answered with nothing");
    check(in.ok(outbox.received("nobody", {known}), "received") == std::vector{false}, "what nobody has");
    if (!in.store().capabilities().units_of_work) return;
    auto unit = in.begin();
    check_equal(in.ok(outbox.receive("mailer", fresh, 1h, unit.get()), "receive"), true, "received in a unit");
    in.ok(unit->rollback(), "rollback");
    check(in.ok(outbox.received("mailer", {fresh}), "received") == std::vector{false}, "a rollback records nothing");
    unit = in.begin();
    in.ok(outbox.receive("mailer", fresh, 1h, unit.get()), "receive");
    in.ok(unit->commit(), "commit");
    check(in.ok(outbox.received("mailer", {fresh}), "received") == std::vector{true}, "a commit does");
}

} // namespace

store_case_list outbox_cases() {
    return {
        {"a message comes back as it was appended, until it is delivered", &comes_back_as_it_was},
        {"appending the same id again keeps the first", &the_same_id_keeps_the_first},
        {"a batch is in the order of appending", &in_order},
        {"small batches keep the order of a key", &in_order_one_by_one},
        {"while a message is leased the rest of its key waits, and nothing else", &a_leased_key_waits},
        {"several of a key are leased in an unbroken row only", &an_unbroken_row},
        {"a relay that died loses its lease, and is fenced off", &a_dead_relay},
        {"thirty relays never lease the same message", &many_relays},
        {"relays that die under load deliver each message once, in order per key", &order_under_load},
        {"odd names and bytes come back, what is too large is refused", &odd_names_come_back},
        {"a body of exactly 10 MiB comes back", &the_largest},
        {"relays, headers and consumers may have odd names", &odd_relays_headers_and_consumers},
        {"the inbox drops duplicates, by consumer, within their time", &duplicates_are_dropped},
        {"the inbox can be asked without recording anything", &the_inbox_can_be_asked},
    };
}

} // namespace holdfast::conformance
