// Dead letters: everything that people need, until they decide.
#include "transport_lab.hpp"

namespace holdfast::conformance {

namespace {

using kind = delivery_settlement::kind;

void everything_is_kept(transport_lab& in) {
    const event_user user(in);
    user.subscribe();
    envelope sent = user.make("k", "orders", std::string("a\0b", 3));
    sent.extra = {{"traceparent", "00-a-b-01"}};
    user.publish(sent);
    user.done(user.receive_one(), kind::redeliver, 0s, 4);
    static_cast<void>(user.receive_one(short_lease));
    in.pass(short_lease);
    const store_time before = in.now();
    const delivery got = user.receive_one();
    user.bury(got, {"smtp_error", "no such mailbox", "at send()\nat main()"}, 2);
    const auto all = user.dead();
    check_equal(all.size(), std::size_t{1}, "dead letters");
    const auto shown = in.ok(user.transport().dead_message_of("billing", sent.id), "dead_message_of");
    check(shown.has_value(), "it is found by its id");
    for (const dead_message& each : {all[0], *shown}) {
        check_equal(each.subscription, std::string("billing"), "subscription");
        check_equal(each.position, got.position, "position");
        check(each.died >= before && each.died <= in.now(), "when it died");
        check_equal(each.redeliveries, 1, "redeliveries");
        check_equal(each.crashes, 1, "crashes");
        check_equal(each.calls, 6, "calls");
        check_equal(each.generation, 1, "generation");
        check_equal(each.error.type, std::string("smtp_error"), "error type");
        check_equal(each.error.message, std::string("no such mailbox"), "error message");
        check_equal(each.error.stack, std::string("at send()\nat main()"), "stack");
        check_equal(each.message.id, sent.id, "id");
        check_equal(each.message.topic, sent.topic, "topic");
        check_equal(each.message.key, sent.key, "key");
        check(each.message.what == sent.what, "payload");
        check(each.message.extra == sent.extra, "headers");
    }
    check_equal(user.waiting_for(), std::size_t{0}, "messages to receive");
    check(!in.ok(user.transport().dead_message_of("billing", in.next_id()), "dead_message_of"), "no other is found");
}

std::vector<identifier> bury_some(const event_user& user, int count, const std::string& key = {}) {
    std::vector<identifier> newest_first;
    user.publish(count, key);
    for (int i = 0; i < count; ++i) {
        const delivery got = user.receive_one();
        user.bury(got);
        newest_first.insert(newest_first.begin(), got.message.id);
    }
    return newest_first;
}

void pages(transport_lab& in) {
    const event_user user(in);
    user.subscribe();
    const auto ids = bury_some(user, 25);
    std::vector<identifier> seen;
    std::string cursor;
    int count = 0;
    do {
        auto page = in.ok(user.transport().dead_messages({}, 10, cursor), "dead_messages");
        check(page.messages.size() <= 10, "a page is no longer than asked for");
        for (const identifier& each : ids_of(page.messages)) seen.push_back(each);
        cursor = page.next;
        check(++count < 10, "the pages come to an end");
    } while (!cursor.empty());
    check_equal(seen, ids, "all of them, the latest to die first");
    in.refused(user.transport().dead_messages({}, 0), {errc::invalid_argument}, "a page of nothing");
    in.refused(user.transport().dead_messages({}, 1, "no cursor \xFF"), {errc::invalid_argument}, "a wrong cursor");
}

void a_page_is_not_moved_by_what_dies_meanwhile(transport_lab& in) {
    const event_user user(in);
    user.subscribe();
    const auto ids = bury_some(user, 4);
    const auto first = in.ok(user.transport().dead_messages({}, 2), "dead_messages");
    bury_some(user, 3);
    const auto second = in.ok(user.transport().dead_messages({}, 2, first.next), "dead_messages");
    check_equal(ids_of(second.messages), std::vector{ids[2], ids[3]}, "the second page");
    check(second.next.empty(), "there is no third");
}

void filtered(transport_lab& in) {
    const event_user user(in);
    user.subscribe("billing", {"orders", "parcels"});
    user.subscribe("mail", {"orders"});
    const identifier order = user.publish("", "orders");
    const identifier parcel = user.publish("", "parcels");
    for (const delivery& each : user.receive(2, 5min, "billing")) user.bury(each);
    user.bury(user.receive_one(5min, "mail"));
    check_equal(user.dead().size(), std::size_t{3}, "all dead letters");
    check_equal(user.dead({.subscription = "billing"}).size(), std::size_t{2}, "of one subscription");
    check_equal(ids_of(user.dead({.topic = "parcels"})), std::vector{parcel}, "of one topic");
    check_equal(ids_of(user.dead({.subscription = "mail", .topic = "orders"})), std::vector{order}, "of both");
    check_equal(user.dead({.subscription = "mail", .topic = "parcels"}).size(), std::size_t{0}, "of both, none");
    check_equal(user.dead({.subscription = "nobody"}).size(), std::size_t{0}, "of a subscription that is not there");
}

void sent_again(transport_lab& in) {
    const event_user user(in);
    user.subscribe();
    const auto ids = user.publish(3, "k");
    user.done(user.receive_one(), kind::redeliver, 0s, 3);
    user.bury(user.receive_one());
    check_equal(in.ok(user.transport().send_again("billing", {in.next_id(), ids[0], ids[2]}), "send_again"), 1,
                "found: those that are dead letters");
    check_equal(user.dead().size(), std::size_t{0}, "dead letters");
    const auto got = user.receive(10);
    check_equal(ids_of(got), ids, "what is received: in its old place");
    check_equal(got[0].generation, 2, "generation");
    check_equal(got[0].redeliveries, 0, "redeliveries");
    check_equal(got[0].calls, 0, "calls");
    check_equal(got[0].crashes, 0, "crashes");
    check_equal(got[1].generation, 1, "generation of the next");
    user.bury(got[0]);
    check_equal(user.dead().at(0).generation, 2, "generation of the dead letter");
    check_equal(in.ok(user.transport().send_again("billing", {ids[0]}), "send_again"), 1, "found");
    check_equal(user.receive_one().generation, 3, "generation, once more");
}

void thrown_away(transport_lab& in) {
    const event_user user(in);
    user.subscribe();
    const auto ids = bury_some(user, 2);
    check_equal(in.ok(user.transport().discard("billing", {ids[0], in.next_id()}), "discard"), 1, "found");
    check_equal(in.ok(user.transport().discard("billing", {ids[0]}), "discard"), 0, "found, the second time");
    check_equal(ids_of(user.dead()), std::vector{ids[1]}, "dead letters");
    check_equal(in.ok(user.transport().send_again("billing", {ids[0]}), "send_again"), 0, "found, when it is gone");
    check_equal(user.view().dead, std::uint64_t{1}, "dead");
    check_equal(user.waiting_for(), std::size_t{0}, "messages to receive");
}

void what_lives_is_left_alone(transport_lab& in) {
    const event_user user(in);
    user.subscribe();
    const identifier open = user.publish("");
    const identifier settled = user.publish("");
    const auto got = user.receive(2);
    user.done(got[1]);
    check_equal(in.ok(user.transport().send_again("billing", {open, settled}), "send_again"), 0, "sent again");
    check_equal(in.ok(user.transport().discard("billing", {open, settled}), "discard"), 0, "discarded");
    user.done(got[0]);
}

void of_one_subscription(transport_lab& in) {
    const event_user user(in);
    user.subscribe("billing");
    user.subscribe("mail");
    const identifier id = user.publish("");
    user.bury(user.receive_one(5min, "billing"));
    user.bury(user.receive_one(5min, "mail"));
    check_equal(in.ok(user.transport().send_again("mail", {id}), "send_again"), 1, "found");
    check_equal(user.waiting_for("billing"), std::size_t{0}, "messages of the other subscription");
    check_equal(user.view("billing").dead, std::uint64_t{1}, "dead letters of the other subscription");
    check_equal(user.waiting_for("mail"), std::size_t{1}, "messages of the one");
}

void survive_a_reopen(transport_lab& in) {
    const event_user user(in);
    user.subscribe();
    const auto ids = bury_some(user, 3);
    in.reopen();
    check_equal(ids_of(user.dead()), ids, "dead letters");
    check_equal(in.ok(user.transport().send_again("billing", {ids[1]}), "send_again"), 1, "found");
    check_equal(user.drain(10), std::vector{ids[1]}, "what is received");
}

} // namespace

transport_case_list dead_message_cases() {
    return {
        {"everything about it is kept", everything_is_kept},
        {"they are listed in pages, the latest to die first", pages},
        {"a page is not moved by what dies meanwhile", a_page_is_not_moved_by_what_dies_meanwhile},
        {"they are found by subscription and topic", filtered},
        {"sent again: in its old place, counts from 0, the next generation", sent_again},
        {"thrown away for good", thrown_away},
        {"what lives is left alone", what_lives_is_left_alone},
        {"those of another subscription are left alone", of_one_subscription},
        {"they survive a restart", survive_a_reopen},
    };
}

} // namespace holdfast::conformance
