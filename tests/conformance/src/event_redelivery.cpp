// Redelivery and release: later, counted or not, and over a restart.
#include "transport_lab.hpp"

namespace holdfast::conformance {

namespace {

using kind = delivery_settlement::kind;

void counted(transport_lab& in) {
    const event_user user(in);
    user.subscribe();
    const identifier id = user.publish("k");
    user.done(user.receive_one(), kind::redeliver, 0s, 4);
    const delivery second = user.receive_one();
    check_equal(second.message.id, id, "id");
    check_equal(second.redeliveries, 1, "redeliveries");
    check_equal(second.calls, 4, "calls");
    check_equal(second.crashes, 0, "crashes");
    user.done(second, kind::redeliver, 0s, 2);
    const delivery third = user.receive_one();
    check_equal(third.redeliveries, 2, "redeliveries");
    check_equal(third.calls, 6, "calls");
    check_equal(third.generation, 1, "generation");
}

void not_before_its_time(transport_lab& in) {
    const event_user user(in);
    user.subscribe();
    user.publish("");
    const store_time began = in.now();
    user.done(user.receive_one(), kind::redeliver, 300ms);
    std::vector<delivery> got;
    while (got.empty()) {
        got = user.receive(1);
        if (got.empty()) in.pass(20ms);
        check(in.now() - began < 30s, "it comes again within 30 seconds");
    }
    check(in.now() - began >= 300ms, "it did not come before its time");
}

void released(transport_lab& in) {
    const event_user user(in);
    user.subscribe();
    const identifier id = user.publish("k");
    user.done(user.receive_one(), kind::release, 0s, 3);
    const delivery again = user.receive_one();
    check_equal(again.message.id, id, "id");
    check_equal(again.redeliveries, 0, "redeliveries");
    check_equal(again.calls, 0, "calls");
    check_equal(again.crashes, 0, "crashes");
    user.done(again, kind::release, a_while);
    check_equal(user.waiting_for(), std::size_t{0}, "messages while it waits");
    in.pass(a_while);
    check_equal(user.drain(1), std::vector{id}, "what is received when it is due");
}

void told_in_advance(transport_lab& in) {
    const event_user user(in);
    user.subscribe();
    const auto next = [&] { return in.ok(user.transport().next_due("billing"), "next_due"); };
    check(!next(), "nothing is open");
    user.publish("");
    check_equal(next(), std::optional<duration>(0s), "something is due now");
    const delivery got = user.receive_one(10s);
    check(!next() || (*next() > 0s && *next() <= 10s), "a lease that may run out, or nothing");
    user.done(got, kind::redeliver, 20s);
    check(next().has_value(), "something is open");
    check_between(*next(), duration(10s), duration(20s), "when it is due");
}

void over_a_restart(transport_lab& in) {
    const event_user user(in);
    user.subscribe();
    const auto ids = user.publish(2, "k");
    user.done(user.receive_one(), kind::redeliver, a_while, 3);
    in.reopen();
    check_equal(user.view().waiting, std::uint64_t{2}, "waiting");
    in.pass(a_while);
    const auto got = user.receive(10);
    check_equal(ids_of(got), ids, "what is received when it is due");
    check_equal(got[0].redeliveries, 1, "redeliveries");
    check_equal(got[0].calls, 3, "calls");
}

void leases_over_a_restart(transport_lab& in) {
    const event_user user(in);
    user.subscribe();
    user.publish("k");
    const delivery got = user.receive_one(1min);
    in.reopen();
    check_equal(user.waiting_for(), std::size_t{0}, "messages while it is leased");
    user.done(got);
    check_equal(user.view().acknowledged, std::uint64_t{1}, "acknowledged");
}

} // namespace

transport_case_list redelivery_cases() {
    return {
        {"a redelivery is counted, with its calls", counted},
        {"it does not come before its time", not_before_its_time},
        {"a release counts nothing", released},
        {"next_due() tells when", told_in_advance},
        {"redeliveries survive a restart", over_a_restart},
        {"leases survive a restart", leases_over_a_restart},
    };
}

} // namespace holdfast::conformance
