// Subscriptions: durable, on their own, and safe to declare again.
#include "transport_lab.hpp"

namespace holdfast::conformance {

namespace {

void each_gets_every_message(transport_lab& in) {
    const event_user user(in);
    user.subscribe("billing");
    user.subscribe("mail");
    user.subscribe("stock", {"parcels"});
    const auto ids = user.publish(3, "k");
    check_equal(user.drain(10, "billing"), ids, "what the first got");
    check_equal(user.drain(1, "mail"), ids, "what the second got");
    check_equal(user.waiting_for("stock"), std::size_t{0}, "messages for a subscription to another topic");
}

void receivers_of_one_share(transport_lab& in) {
    const event_user user(in);
    user.subscribe();
    user.publish(4, "");
    const auto one = user.receive(2);
    const auto other = user.receive(10);
    check_equal(one.size(), std::size_t{2}, "messages of the first receiver");
    check_equal(other.size(), std::size_t{2}, "messages of the second receiver");
    for (const delivery& a : one)
        for (const delivery& b : other) check(a.message.id != b.message.id, "no message is given out twice");
}

void begins_when_it_is_made(transport_lab& in) {
    const event_user user(in);
    user.publish();
    user.subscribe("billing");
    const identifier later = user.publish();
    check_equal(user.drain(10), std::vector{later}, "what a new subscription gets");
}

void begins_at_the_start_if_asked(transport_lab& in) {
    const event_user user(in);
    std::vector<identifier> ids{user.publish("k")};
    user.publish("k", "parcels");
    ids.push_back(user.publish("k"));
    user.subscribe("billing", {"orders"}, true);
    ids.push_back(user.publish("k"));
    check_equal(user.drain(10), ids, "what a new subscription gets from the start");
    user.subscribe("billing", {"orders"}, true);
    check_equal(user.waiting_for(), std::size_t{0}, "messages when it is declared again from the start");
}

void declared_again(transport_lab& in) {
    const event_user user(in);
    user.subscribe();
    const auto ids = user.publish(3, "k");
    const delivery first = user.receive_one();
    user.subscribe();
    user.subscribe();
    check_equal(user.waiting_for(), std::size_t{0}, "messages while the first of the key is leased");
    user.done(first);
    check_equal(user.drain(10), std::vector{ids[1], ids[2]}, "what was open stays open");
}

void other_topics(transport_lab& in) {
    const event_user user(in);
    user.subscribe("billing", {"orders", "parcels"});
    const identifier open = user.publish("", "parcels");
    user.publish("", "refunds");
    user.subscribe("billing", {"orders", "refunds"});
    user.publish("", "parcels");
    const identifier refund = user.publish("", "refunds");
    check_equal(user.view().topics, std::vector<std::string>{"orders", "refunds"}, "topics, sorted");
    check_equal(user.drain(10), std::vector{open, refund}, "what was open, and what is new of the new topics");
}

void forgotten(transport_lab& in) {
    const event_user user(in);
    user.subscribe("billing");
    user.subscribe("mail");
    user.publish(2, "");
    const auto got = user.receive(2);
    user.bury(got[0]);
    check(in.ok(user.transport().unsubscribe("billing"), "unsubscribe"), "it was there");
    check(!in.ok(user.transport().unsubscribe("billing"), "unsubscribe"), "it is no longer there");
    check_equal(user.settle(got[1]), write_answer::gone, "settling a message of a subscription that is forgotten");
    check_equal(user.renew(got[1]), write_answer::gone, "renewing a message of a subscription that is forgotten");
    check_equal(user.dead().size(), std::size_t{0}, "dead letters");
    check_equal(user.waiting_for("mail"), std::size_t{2}, "messages of another subscription");
    user.subscribe("billing");
    check_equal(user.waiting_for("billing"), std::size_t{0}, "messages of one of the same name that is made anew");
}

void unknown(transport_lab& in) {
    const event_user user(in);
    in.refused(user.transport().receive("nobody", 1, 1min, "kit"), {errc::not_found}, "receive");
    in.refused(user.transport().next_due("nobody"), {errc::not_found}, "next_due");
    in.refused(user.transport().replay("nobody", {}), {errc::not_found}, "replay");
    check_equal(in.ok(user.transport().send_again("nobody", {in.next_id()}), "send_again"), 0, "found");
    check_equal(in.ok(user.transport().discard("nobody", {in.next_id()}), "discard"), 0, "found");
    check(!in.ok(user.transport().dead_message_of("nobody", in.next_id()), "dead_message_of"), "there is none");
}

void nonsense(transport_lab& in) {
    const event_user user(in);
    user.subscribe();
    in.refused(user.transport().receive("billing", 0, 1min, "kit"), {errc::invalid_argument}, "receive nothing");
    in.refused(user.transport().receive("billing", 1, 0s, "kit"), {errc::invalid_argument}, "receive for no time");
}

void counted(transport_lab& in) {
    using kind = delivery_settlement::kind;
    const event_user user(in);
    user.subscribe("billing", {"orders", "b", "a"});
    user.publish(7, "");
    const auto got = user.receive(5);
    user.done(got[0]);
    user.done(got[1], kind::discard);
    user.bury(got[2]);
    user.done(got[3], kind::redeliver, 1h);
    const subscription_view seen = user.view();
    check_equal(seen.topics, std::vector<std::string>{"a", "b", "orders"}, "topics, sorted");
    check_equal(seen.waiting, std::uint64_t{3}, "waiting: two never given out, one put off");
    check_equal(seen.leased, std::uint64_t{1}, "leased");
    check_equal(seen.dead, std::uint64_t{1}, "dead");
    check_equal(seen.acknowledged, std::uint64_t{1}, "acknowledged");
    check_equal(seen.discarded, std::uint64_t{1}, "discarded");
}

void survives_a_reopen(transport_lab& in) {
    const event_user user(in);
    user.subscribe();
    const identifier id = user.publish("k");
    in.reopen();
    check_equal(user.view().waiting, std::uint64_t{1}, "waiting");
    check_equal(user.drain(10), std::vector{id}, "what is received after the transport was opened again");
    in.reopen();
    check_equal(user.waiting_for(), std::size_t{0}, "messages once it was settled");
}

} // namespace

transport_case_list subscription_cases() {
    return {
        {"each gets every message of its topics", each_gets_every_message},
        {"receivers of one share its messages", receivers_of_one_share},
        {"begins when it is made", begins_when_it_is_made},
        {"begins at the start if asked", begins_at_the_start_if_asked},
        {"declared again, what is open stays open", declared_again},
        {"other topics: new ones count from now on, what is open of the old ones stays", other_topics},
        {"is forgotten with its messages and dead letters, and nobody else's", forgotten},
        {"one that is not there", unknown},
        {"a limit or a lease that makes no sense is refused", nonsense},
        {"tells its counts", counted},
        {"survives its process", survives_a_reopen},
    };
}

} // namespace holdfast::conformance
