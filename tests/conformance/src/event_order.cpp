// Order: the messages of one key one after the other, and nobody waits for another key.
#include <algorithm>
#include <map>

#include <holdfast/backoff.hpp>

#include "transport_lab.hpp"

namespace holdfast::conformance {

namespace {

using kind = delivery_settlement::kind;

void in_one_call(transport_lab& in) {
    const event_user user(in);
    user.subscribe();
    std::vector<envelope> batch;
    std::vector<identifier> ids;
    for (int i = 0; i < 30; ++i)
        ids.push_back(batch.emplace_back(user.make(i % 3 == 0 ? "" : i % 3 == 1 ? "a" : "b")).id);
    in.ok(user.transport().publish(batch), "publish");
    check_equal(ids_of(user.receive(30)), ids, "what is received, in the order of publishing");
}

void one_by_one(transport_lab& in) {
    const event_user user(in);
    user.subscribe();
    std::vector<identifier> ids;
    for (int i = 0; i < 10; ++i) ids.push_back(user.publish("k"));
    check_equal(user.drain(3), ids, "what is received, in the order of publishing");
}

void a_leased_key_waits(transport_lab& in) {
    const event_user user(in);
    user.subscribe();
    const identifier first = user.publish("k");
    const identifier second = user.publish("k");
    const identifier other = user.publish("l");
    const identifier keyless = user.publish("");
    const delivery one = user.receive_one();
    check_equal(one.message.id, first, "the oldest");
    check_equal(ids_of(user.receive(10)), std::vector{other, keyless}, "what another receiver may have meanwhile");
    check_equal(user.waiting_for(), std::size_t{0}, "messages to receive");
    user.done(one);
    check_equal(ids_of(user.receive(10)), std::vector{second}, "the next of the key, when the first is settled");
}

void an_unbroken_row(transport_lab& in) {
    const event_user user(in);
    user.subscribe();
    const auto ids = user.publish(4, "k");
    const auto got = user.receive(2);
    check_equal(ids_of(got), std::vector{ids[0], ids[1]}, "the first two");
    user.done(got[1]);
    check_equal(user.waiting_for(), std::size_t{0}, "messages while the first is worked on");
    user.done(got[0]);
    check_equal(ids_of(user.receive(10)), std::vector{ids[2], ids[3]}, "the rest");
}

void put_off_holds_its_key_alone(transport_lab& in) {
    const event_user user(in);
    user.subscribe();
    const identifier put_off = user.publish("k");
    const identifier behind = user.publish("k");
    const identifier other = user.publish("l");
    const identifier keyless = user.publish("");
    user.done(user.receive_one(), kind::redeliver, a_while);
    check_equal(user.drain(1), std::vector{other, keyless}, "what is received while one key waits");
    in.pass(a_while);
    check_equal(ids_of(user.receive(10)), std::vector{put_off, behind}, "what is received when it is due");
}

void a_row_that_goes_back(transport_lab& in) {
    const event_user user(in);
    user.subscribe();
    const auto ids = user.publish(3, "k");
    const auto got = user.receive(3);
    check_equal(got.size(), std::size_t{3}, "messages received");
    // In any order.
    user.done(got[1], kind::release);
    check_equal(user.waiting_for(), std::size_t{0}, "messages while the first is worked on");
    user.done(got[2], kind::release);
    user.done(got[0], kind::redeliver, a_while);
    check_equal(user.waiting_for(), std::size_t{0}, "messages while the first waits");
    in.pass(a_while);
    const auto again = user.receive(10);
    check_equal(ids_of(again), ids, "what is received then, in order");
    check_equal(again[0].redeliveries, 1, "redeliveries of the one that was put off");
    check_equal(again[1].redeliveries, 0, "redeliveries of the one that went back");
}

void a_later_one_that_waits_breaks_the_row(transport_lab& in) {
    const event_user user(in);
    user.subscribe();
    const auto ids = user.publish(3, "k");
    const auto got = user.receive(3);
    user.done(got[1], kind::release, 1h);
    user.done(got[0], kind::release);
    user.done(got[2], kind::release);
    check_equal(ids_of(user.receive(10)), std::vector{ids[0]}, "what is received: up to the one that waits");
}

void the_dead_let_others_pass(transport_lab& in) {
    const event_user user(in);
    user.subscribe();
    const auto ids = user.publish(3, "k");
    user.bury(user.receive_one());
    const delivery second = user.receive_one();
    check_equal(second.message.id, ids[1], "the next of the key, after a dead letter");
    user.done(second, kind::discard);
    check_equal(user.drain(10), std::vector{ids[2]}, "the next of the key, after one that was discarded");
}

void keyless_wait_for_nobody(transport_lab& in) {
    const event_user user(in);
    user.subscribe();
    user.publish("");
    const identifier second = user.publish("");
    user.done(user.receive_one(), kind::redeliver, 1h);
    check_equal(user.drain(10), std::vector{second}, "what is received while another without a key waits");
}

void subscriptions_do_not_hold_each_other_up(transport_lab& in) {
    const event_user user(in);
    user.subscribe("billing");
    user.subscribe("mail");
    const auto ids = user.publish(2, "k");
    user.done(user.receive_one(5min, "billing"), kind::redeliver, 1h);
    check_equal(user.drain(10, "mail"), ids, "what another subscription receives");
}

// Many keys, of which some are held up: every other one drains completely.
void blocked_keys_slow_nobody(transport_lab& in) {
    const event_user user(in);
    user.subscribe();
    for (int i = 0; i < 20; ++i) user.publish(20, "blocked-" + std::to_string(i));
    std::vector<delivery> held;
    for (auto& each : user.receive(400)) held.push_back(std::move(each));
    check_equal(held.size(), std::size_t{400}, "messages of the keys that are held up");
    std::vector<identifier> free;
    for (int i = 0; i < 10; ++i)
        for (const identifier& each : user.publish(5, "free-" + std::to_string(i))) free.push_back(each);
    check_equal(user.drain(7), free, "what drains while twenty keys are held up");
}

// Whatever becomes of the messages of a key, those that are acknowledged come in order.
void whatever_happens(transport_lab& in) {
    const event_user user(in);
    user.subscribe();
    random_series random(11);
    std::map<std::string, std::vector<identifier>> sent;
    std::map<std::string, std::vector<identifier>> seen;
    for (int i = 0; i < 60; ++i) {
        const std::string key(1, static_cast<char>('a' + random.next() % 5));
        sent[key].push_back(user.publish(key));
    }
    for (int round = 0; round < 2000; ++round) {
        auto got = user.receive(1 + static_cast<int>(random.next() % 8));
        if (got.empty()) break;
        std::map<std::string, bool> stopped;
        for (const delivery& each : got) {
            const std::string& key = each.message.key;
            if (stopped[key]) {
                user.done(each, kind::release);
            } else if (random.next() % 3 == 0) {
                stopped[key] = true;
                user.done(each, random.next() % 2 == 0 ? kind::redeliver : kind::release);
            } else {
                user.done(each);
                seen[key].push_back(each.message.id);
            }
        }
    }
    for (const auto& [key, ids] : sent) check_equal(seen[key], ids, "the messages of key " + key);
}

} // namespace

transport_case_list event_order_cases() {
    return {
        {"messages come in the order of publishing", in_one_call},
        {"of one key one after the other", one_by_one},
        {"a key that is worked on waits, others do not", a_leased_key_waits},
        {"several of one key only in an unbroken row from the oldest", an_unbroken_row},
        {"one that is put off holds back its key alone", put_off_holds_its_key_alone},
        {"a row that goes back comes again in order", a_row_that_goes_back},
        {"one that waits breaks the row", a_later_one_that_waits_breaks_the_row},
        {"dead letters and discarded ones let the next of their key pass", the_dead_let_others_pass},
        {"messages without a key wait for nobody", keyless_wait_for_nobody},
        {"subscriptions do not hold each other up", subscriptions_do_not_hold_each_other_up},
        {"keys that are held up never slow another", blocked_keys_slow_nobody},
        {"whatever becomes of them, the messages of a key are done in order", whatever_happens},
    };
}

} // namespace holdfast::conformance
