// Leases of deliveries: one owner at a time whose word counts.
#include <atomic>

#include "transport_lab.hpp"

namespace holdfast::conformance {

namespace {

using kind = delivery_settlement::kind;

void a_dead_receiver(transport_lab& in) {
    const event_user user(in);
    user.subscribe();
    const auto ids = user.publish(2, "k");
    const auto late = user.receive(2, short_lease);
    check_equal(user.waiting_for(), std::size_t{0}, "messages while they are leased");
    in.pass(short_lease);
    const auto again = user.receive(10);
    check_equal(ids_of(again), ids, "what comes again when the leases have run out, in order");
    check(again[0].lease.token() > late[0].lease.token(), "the token has grown");
    check_equal(again[0].crashes, 1, "crashes");
    check_equal(again[0].redeliveries, 0, "redeliveries");
    check_equal(again[0].calls, 0, "calls");
    for (const kind how : {kind::acknowledge, kind::redeliver, kind::release, kind::dead_letter, kind::discard})
        check_equal(user.settle(late[0], how), write_answer::stale, "settling, by the late receiver");
    check_equal(user.renew(late[0]), write_answer::stale, "renewing, by the late receiver");
    check_equal(user.view().leased, std::uint64_t{2}, "leased: the late receiver has changed nothing");
    user.done(again[0]);
    user.done(again[1]);
    check(user.settle(late[1]) != write_answer::done, "a late settlement is not accepted afterwards either");
    check_equal(user.view().acknowledged, std::uint64_t{2}, "acknowledged");
}

void crashes_add_up(transport_lab& in) {
    const event_user user(in);
    user.subscribe();
    user.publish("k");
    for (int i = 0; i < 3; ++i) {
        const delivery got = user.receive_one(short_lease);
        check_equal(got.crashes, i, "crashes so far");
        in.pass(short_lease);
    }
    const delivery got = user.receive_one();
    user.done(got, kind::redeliver);
    check_equal(user.receive_one().crashes, 3, "crashes, after a redelivery");
}

void nobody_was_given_it(transport_lab& in) {
    const event_user user(in);
    user.subscribe();
    user.publish("k");
    const delivery got = user.receive_one(short_lease);
    in.pass(short_lease);
    check_equal(user.renew(got), write_answer::done, "renewing a lease that ran out, when nobody was given it since");
    check_equal(user.waiting_for(), std::size_t{0}, "messages while it is leased again");
    user.done(got);
    check_equal(user.view().acknowledged, std::uint64_t{1}, "acknowledged");
}

void renewed(transport_lab& in) {
    const event_user user(in);
    user.subscribe();
    user.publish(2, "");
    const auto got = user.receive(2, short_lease);
    const delivery_lease* both[] = {&got[0].lease, &got[1].lease};
    check_equal(in.ok(user.transport().renew(both, 5min), "renew"), std::vector{write_answer::done, write_answer::done},
                "renew");
    in.pass(short_lease * 2);
    check_equal(user.waiting_for(), std::size_t{0}, "messages while they are leased");
    user.done(got[0]);
    check(user.renew(got[0]) != write_answer::done, "what is settled cannot be renewed");
    user.done(got[1]);
    in.refused(user.transport().renew(both, 0s), {errc::invalid_argument}, "renewing for no time");
}

void settled_twice(transport_lab& in) {
    const event_user user(in);
    user.subscribe();
    for (const kind how : {kind::acknowledge, kind::redeliver, kind::release, kind::dead_letter, kind::discard}) {
        user.publish("");
        const delivery got = user.receive_one();
        user.done(got, how, 1h, 2);
        user.done(got, how, 1h, 2);
    }
    const subscription_view seen = user.view();
    check_equal(seen.acknowledged, std::uint64_t{1}, "acknowledged");
    check_equal(seen.discarded, std::uint64_t{1}, "discarded");
    check_equal(seen.dead, std::uint64_t{1}, "dead");
    check_equal(seen.waiting, std::uint64_t{2}, "waiting");
    check_equal(user.dead().at(0).calls, 2, "calls, counted once");
}

void counted_once(transport_lab& in) {
    const event_user user(in);
    user.subscribe();
    user.publish("");
    const delivery got = user.receive_one();
    user.done(got, kind::redeliver, 0s, 3);
    user.done(got, kind::redeliver, 0s, 3);
    const delivery again = user.receive_one();
    check_equal(again.redeliveries, 1, "redeliveries");
    check_equal(again.calls, 3, "calls");
}

void each_by_itself(transport_lab& in) {
    const event_user user(in);
    user.subscribe();
    user.publish(3, "");
    const delivery stale = user.receive_one(short_lease);
    in.pass(short_lease);
    const auto got = user.receive(3);
    check_equal(got.size(), std::size_t{3}, "messages received");
    const delivery_settlement mixed[] = {{&got[1].lease}, {&stale.lease}, {&got[2].lease}, {&got[0].lease}};
    check_equal(in.ok(user.transport().settle(mixed), "settle"),
                std::vector{write_answer::done, write_answer::stale, write_answer::done, write_answer::done},
                "answers, each for itself");
    check_equal(user.view().acknowledged, std::uint64_t{3}, "acknowledged");
}

void many_at_once(transport_lab& in) {
    const event_user user(in);
    user.subscribe();
    user.publish(500, "");
    const auto got = user.receive(500);
    check_equal(got.size(), std::size_t{500}, "messages received");
    std::vector<delivery_settlement> all;
    for (const delivery& each : got) all.push_back({.held = &each.lease});
    for (const write_answer each : in.ok(user.transport().settle(all), "settle"))
        check_equal(each, write_answer::done, "settle");
    check_equal(user.view().acknowledged, std::uint64_t{500}, "acknowledged");
    check(in.ok(user.transport().settle({}), "settling nothing").empty(), "nothing is answered with nothing");
}

// A settlement races the receiver that takes the message over: one of them has it.
void settling_races_taking_over(transport_lab& in) {
    const event_user user(in);
    user.subscribe();
    for (int i = 0; i < in.rounds(); ++i) {
        user.publish("k");
        const delivery late = user.receive_one(short_lease);
        in.pass(short_lease);
        std::atomic<int> settled = 0;
        std::vector<delivery> taken;
        const auto settling = [](const event_user& by, const delivery& what, std::atomic<int>& count) -> task<void> {
            const delivery_settlement one[] = {{.held = &what.lease}};
            auto call = by.transport().settle(one);
            const auto answers = co_await std::move(call);
            if (answers && answers->front() == write_answer::done) ++count;
        };
        const auto taking = [](const event_user& by, std::vector<delivery>& to) -> task<void> {
            auto call = by.transport().receive("billing", 1, 5min, "kit");
            auto got = co_await std::move(call);
            if (got) to = std::move(*got);
        };
        std::vector<task<void>> both;
        both.push_back(settling(user, late, settled));
        both.push_back(taking(user, taken));
        in.at_once(std::move(both));
        check_equal(settled + static_cast<int>(taken.size()), 1, "the settlement was accepted, or another has it");
        for (const delivery& each : taken) user.done(each);
    }
    check_equal(user.view().acknowledged, static_cast<std::uint64_t>(in.rounds()), "acknowledged, each once");
}

} // namespace

transport_case_list delivery_lease_cases() {
    return {
        {"what a dead receiver had comes again, and its late word does not count", a_dead_receiver},
        {"crashes add up", crashes_add_up},
        {"a lease that ran out still holds while nobody else was given the message", nobody_was_given_it},
        {"a renewed lease holds", renewed},
        {"settling twice answers the same and counts once", settled_twice},
        {"a redelivery that is told twice is one redelivery", counted_once},
        {"each settlement stands by itself", each_by_itself},
        {"five hundred are settled in one call", many_at_once},
        {"a settlement that races another receiver: one of them has it", settling_races_taking_over},
    };
}

} // namespace holdfast::conformance
