// Replay: what is kept, once more, from a point on.
#include "transport_lab.hpp"

namespace holdfast::conformance {

namespace {

using kind = delivery_settlement::kind;

std::uint64_t replay(transport_lab& in, replay_point from = {}, std::string name = "billing") {
    return in.ok(in.transport().replay(std::move(name), from), "replay");
}

void everything(transport_lab& in) {
    const event_user user(in);
    user.subscribe();
    user.subscribe("mail");
    const auto ids = user.publish(3, "k");
    const auto got = user.receive(3);
    user.done(got[0]);
    user.done(got[1], kind::discard);
    user.bury(got[2]);
    check_equal(replay(in), std::uint64_t{3}, "messages replayed");
    check_equal(user.dead().size(), std::size_t{0}, "dead letters: it is open again");
    const auto again = user.receive(10);
    check_equal(ids_of(again), ids, "what is received, in order");
    for (const delivery& each : again) {
        check_equal(each.generation, 2, "generation");
        check_equal(each.redeliveries, 0, "redeliveries");
        check_equal(each.calls, 0, "calls");
        user.done(each);
    }
    check_equal(replay(in), std::uint64_t{3}, "messages replayed, once more");
    check_equal(user.receive_one().generation, 3, "generation, once more");
    check_equal(user.view("mail").waiting, std::uint64_t{3}, "messages of another subscription");
}

void what_is_open_stays_as_it_is(transport_lab& in) {
    const event_user user(in);
    user.subscribe();
    const auto ids = user.publish(4, "");
    const auto got = user.receive(3);
    user.done(got[0]);
    user.done(got[1], kind::redeliver, 1h);
    check_equal(replay(in), std::uint64_t{1}, "messages replayed: the settled one");
    check_equal(ids_of(user.receive(10)), std::vector{ids[0], ids[3]}, "what is received");
    user.done(got[2]);
}

void from_a_position(transport_lab& in) {
    const event_user user(in);
    user.subscribe();
    const auto ids = user.publish(4, "k");
    std::uint64_t third = 0;
    for (const delivery& each : user.receive(4)) {
        if (each.message.id == ids[2]) third = each.position;
        user.done(each);
    }
    check_equal(replay(in, {.position = third}), std::uint64_t{2}, "messages replayed");
    check_equal(user.drain(10), std::vector{ids[2], ids[3]}, "what is received: that one and what came later");
    check_equal(replay(in, {.position = third + 1000}), std::uint64_t{0}, "messages replayed from beyond the end");
}

void from_a_time(transport_lab& in) {
    const event_user user(in);
    user.subscribe();
    const identifier early = user.publish("k");
    in.pass(50ms);
    const store_time between = in.now();
    in.pass(50ms);
    const identifier late = user.publish("k");
    check_equal(user.drain(10), std::vector{early, late}, "what is received at first");
    check_equal(replay(in, {.time = between}), std::uint64_t{1}, "messages replayed");
    check_equal(user.drain(10), std::vector{late}, "what is received");
    check_equal(replay(in, {.time = in.now() + 1h}), std::uint64_t{0}, "messages replayed from the future");
}

void what_it_never_saw(transport_lab& in) {
    const event_user user(in);
    const identifier before = user.publish("k");
    user.publish("k", "parcels");
    user.subscribe();
    const identifier after = user.publish("k");
    check_equal(replay(in), std::uint64_t{1}, "messages replayed: what was published before the subscription");
    const auto got = user.receive(10);
    check_equal(ids_of(got), std::vector{before, after}, "what is received, in order");
    check_equal(got[0].generation, 2, "generation of what is replayed");
    check_equal(got[1].generation, 1, "generation of what is not");
}

void over_a_restart(transport_lab& in) {
    const event_user user(in);
    user.subscribe();
    const auto ids = user.publish(3, "k");
    user.drain(10);
    in.reopen();
    check_equal(replay(in), std::uint64_t{3}, "messages replayed");
    in.reopen();
    check_equal(user.drain(10), ids, "what is received");
}

} // namespace

transport_case_list replay_cases() {
    return {
        {"everything that is kept, settled or dead, in order", everything},
        {"what is open stays as it is", what_is_open_stays_as_it_is},
        {"from a position on", from_a_position},
        {"from a time on", from_a_time},
        {"also what the subscription never saw", what_it_never_saw},
        {"a replay survives a restart", over_a_restart},
    };
}

} // namespace holdfast::conformance
