// Many at once: each message to one receiver, whoever publishes and from wherever.
#include <map>
#include <set>

#include "transport_lab.hpp"

namespace holdfast::conformance {

namespace {

using kind = delivery_settlement::kind;

void a_hundred_receivers(transport_lab& in) {
    const event_user user(in);
    user.subscribe();
    std::vector<envelope> batch;
    for (int i = 0; i < 400; ++i) batch.push_back(user.make(i % 2 == 0 ? "" : "k" + std::to_string(i)));
    in.ok(user.transport().publish(batch), "publish");
    std::vector<task<result<std::vector<delivery>>>> calls;
    for (int i = 0; i < 100; ++i) calls.push_back(user.transport().receive("billing", 5, 5min, "kit"));
    std::set<identifier> seen;
    for (auto& each : in.at_once(std::move(calls)))
        for (const delivery& got : in.value_of(std::move(each), "receive"))
            check(seen.insert(got.message.id).second, "no message is given to two receivers");
    for (const delivery& got : user.receive(400))
        check(seen.insert(got.message.id).second, "no message is given to two receivers");
    check_equal(seen.size(), std::size_t{400}, "messages received");
}

void one_key_and_many_receivers(transport_lab& in) {
    const event_user user(in);
    user.subscribe();
    for (int round = 0; round < in.rounds(); ++round) {
        const auto ids = user.publish(6, "k");
        std::vector<task<result<std::vector<delivery>>>> calls;
        for (int i = 0; i < 10; ++i) calls.push_back(user.transport().receive("billing", 2, 5min, "kit"));
        std::vector<delivery> got;
        int receivers = 0;
        for (auto& each : in.at_once(std::move(calls))) {
            auto some = in.value_of(std::move(each), "receive");
            if (!some.empty()) ++receivers;
            for (delivery& one : some) got.push_back(std::move(one));
        }
        check_equal(receivers, 1, "receivers that got something of the key");
        check_equal(ids_of(got), std::vector{ids[0], ids[1]}, "what it got: the first two");
        for (const delivery& each : got) user.done(each);
        check_equal(user.drain(10), std::vector(ids.begin() + 2, ids.end()), "the rest, in order");
    }
}

void many_publishers(transport_lab& in) {
    const event_user user(in);
    user.subscribe();
    std::vector<task<result<void>>> calls;
    std::map<std::string, std::vector<identifier>> sent;
    for (int i = 0; i < 50; ++i) {
        std::vector<envelope> batch;
        for (int k = 0; k < 5; ++k) batch.push_back(user.make("k" + std::to_string(i)));
        for (const envelope& each : batch) sent[each.key].push_back(each.id);
        calls.push_back(user.transport().publish(batch));
        calls.push_back(user.transport().publish(std::move(batch))); // the same once more
    }
    for (auto& each : in.at_once(std::move(calls))) in.value_of(std::move(each), "publish");
    std::map<std::string, std::vector<identifier>> seen;
    for (auto got = user.receive(40); !got.empty(); got = user.receive(40))
        for (const delivery& each : got) {
            seen[each.message.key].push_back(each.message.id);
            user.done(each);
        }
    for (const auto& [key, ids] : sent) check_equal(seen[key], ids, "the messages of key " + key + ", each once");
}

// A message that is published while others are received is never passed over.
void publishing_while_receiving(transport_lab& in) {
    const event_user user(in);
    user.subscribe();
    const auto publish = [](const event_user& by, std::vector<envelope> what) -> task<void> {
        for (envelope& each : what) {
            auto call = by.transport().publish({std::move(each)});
            const auto done = co_await std::move(call);
            if (!done) throw check_failed("publish: " + done.error().message);
        }
    };
    const auto consume = [](const event_user& by, std::vector<identifier>& to) -> task<void> {
        for (int empty = 0; empty < 20;) {
            auto call = by.transport().receive("billing", 7, 5min, "kit");
            auto got = co_await std::move(call);
            if (!got) throw check_failed("receive: " + got.error().message);
            empty = got->empty() ? empty + 1 : 0;
            std::vector<delivery_settlement> all;
            for (const delivery& each : *got) all.push_back({.held = &each.lease});
            for (const delivery& each : *got) to.push_back(each.message.id);
            auto settling = by.transport().settle(all);
            co_await std::move(settling);
        }
    };
    std::set<identifier> sent;
    std::vector<std::vector<identifier>> seen(4);
    std::vector<task<void>> all;
    for (int i = 0; i < 4; ++i) {
        std::vector<envelope> batch;
        for (int k = 0; k < 50; ++k) sent.insert(batch.emplace_back(user.make(k % 2 == 0 ? "" : "k")).id);
        all.push_back(publish(user, std::move(batch)));
        all.push_back(consume(user, seen[static_cast<std::size_t>(i)]));
    }
    in.at_once(std::move(all));
    std::set<identifier> received;
    for (const auto& some : seen)
        for (const identifier& each : some) check(received.insert(each).second, "no message is received twice");
    for (const identifier& each : user.drain(100)) check(received.insert(each).second, "no message is received twice");
    check(received == sent, "every message is received");
}

void subscribed_at_once(transport_lab& in) {
    const event_user user(in);
    std::vector<task<result<void>>> calls;
    for (int i = 0; i < 30; ++i) calls.push_back(user.transport().subscribe({"billing", {"orders"}, true}));
    for (auto& each : in.at_once(std::move(calls))) in.value_of(std::move(each), "subscribe");
    user.publish("");
    check_equal(user.waiting_for(), std::size_t{1}, "messages");
}

void two_instances(transport_lab& in) {
    const event_user here(in);
    const event_user there(in, in.other());
    here.subscribe();
    const auto ids = here.publish(2, "k");
    const delivery first = there.receive_one();
    check_equal(here.waiting_for(), std::size_t{0}, "messages here while the key is worked on there");
    check_equal(here.renew(first), write_answer::done, "a lease holds wherever it is used");
    there.done(first);
    const delivery second = here.receive_one(short_lease);
    check_equal(second.message.id, ids[1], "the next of the key");
    in.pass(short_lease);
    const delivery taken = there.receive_one();
    check_equal(here.settle(second), write_answer::stale, "settling, by the late receiver here");
    there.bury(taken);
    check_equal(ids_of(here.dead()), std::vector{ids[1]}, "dead letters, seen from here");
    there.publish(here.make("l"));
    check_equal(here.drain(1).size(), std::size_t{1}, "messages here that were published there");
}

void two_instances_at_once(transport_lab& in) {
    const event_user here(in);
    const event_user there(in, in.other());
    here.subscribe();
    here.publish(200, "");
    std::vector<task<result<std::vector<delivery>>>> calls;
    for (int i = 0; i < 20; ++i) {
        calls.push_back(here.transport().receive("billing", 5, 5min, "here"));
        calls.push_back(there.transport().receive("billing", 5, 5min, "there"));
    }
    std::set<identifier> seen;
    for (auto& each : in.at_once(std::move(calls)))
        for (const delivery& got : in.value_of(std::move(each), "receive"))
            check(seen.insert(got.message.id).second, "no message is given to two receivers");
    for (const delivery& got : here.receive(200))
        check(seen.insert(got.message.id).second, "no message is given to two receivers");
    check_equal(seen.size(), std::size_t{200}, "messages received");
}

} // namespace

transport_case_list transport_fleet_cases() {
    return {
        {"a hundred receivers at once: each message to one", a_hundred_receivers},
        {"many receivers at once, one key: one of them has it", one_key_and_many_receivers},
        {"many publishers at once, each telling everything twice", many_publishers},
        {"nothing is passed over while others publish", publishing_while_receiving},
        {"subscribed by many at once", subscribed_at_once},
        {"two instances see the same", two_instances},
        {"two instances at once: each message to one", two_instances_at_once},
    };
}

} // namespace holdfast::conformance
